/*
 * why_agent - the answer of `lull why` as one page for a language model.
 *
 * The model has no browser and asks as little as possible. So the page has what it takes to change
 * the program and to check the change: the cause and what it means, the lines of source around each
 * place, the fix, the commands that show whether it worked, and the numbers to expect.
 */
#include <string.h>

#include "base/str.h"
#include "cause/opportunity.h"
#include "cmd/why_print.h"
#include "model/device.h"
#include "text/source_lines.h"
#include "text/term.h"

#define WIDTH 100
/* Causes after the first; more is a list, not an answer. */
#define MAX_NEXT 3
/* Lines before and after a place: a loop with its body fits. */
#define AROUND 12

struct agent_page {
	FILE *to;
	const struct lull_why *why;
	const char *path;
	const char *folders[4]; /* where sources may be; NULL at the end */
	struct lull_str folder; /* of the report */
	struct lull_str quoted; /* its path as a word of a shell */
	const struct lull_location *shown;
};

#define say(p, indent, ...) lull_term_say((p)->to, indent, WIDTH, __VA_ARGS__)

static void heading(const struct agent_page *p, const char *text)
{
	fprintf(p->to, "\n## %s\n\n", text);
}

/* Where the program's sources may be: here, where it ran, beside the report. */
static void set_folders(struct agent_page *p)
{
	const char *slash = strrchr(p->path, '/');

	lull_str_add(&p->folder, p->path, slash ? (size_t)(slash - p->path) : 0);
	p->folders[0] = ".";
	p->folders[1] = lull_reader_fact(p->why->reader, "environment.PWD");
	p->folders[2] = lull_str_text(&p->folder);
	p->folders[3] = NULL;
}

/* A path as one word of a shell, so that commands can be copied. */
static void add_quoted(struct lull_str *to, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./+=:,@%";

	if (!path[strspn(path, plain)]) {
		lull_str_puts(to, path);
		return;
	}
	lull_str_puts(to, "'");
	for (; *path; path++) {
		if (*path == '\'')
			lull_str_puts(to, "'\\''");
		else
			lull_str_add(to, path, 1);
	}
	lull_str_puts(to, "'");
}

/* The name of a function without its class or namespace, as its file spells it. */
static const char *last_name(const char *function)
{
	const char *dot = function ? strrchr(function, '.') : NULL;
	const char *colon = function ? strrchr(function, ':') : NULL;
	const char *last = dot > colon ? dot : colon;

	return last ? last + 1 : function;
}

/* Places are named as elsewhere; a place without a file is found by its range. */
static void where(struct agent_page *p, const struct lull_location *at)
{
	const struct lull_source_place place = { at->file, at->line, last_name(at->function) };
	struct lull_str path = LULL_STR_INIT;
	char text[512] = "";

	lull_location_format(at, text, sizeof(text));
	if (*text)
		say(p, 2, "Where: %s", text);
	if (!at->file && at->range)
		say(p, 2, "No file and line was recorded: search the program for the range \"%s\".",
		    at->range);
	if (!at->file ||
	    (p->shown && p->shown->line == at->line && strcmp(p->shown->file, at->file) == 0))
		return;
	p->shown = at;
	if (lull_source_find(&place, p->folders, &path)) {
		say(p, 2, "Source: %s", lull_str_text(&path));
		fputs("```\n", p->to);
		lull_source_print(p->to, lull_str_text(&path), at->line, AROUND);
		fputs("```\n", p->to);
	} else {
		say(p, 2, "The file is not here; look at line %u of %s.", at->line, at->file);
	}
	lull_str_release(&path);
}

static void first(struct agent_page *p)
{
	const struct lull_finding *f = lull_why_first(p->why);
	const struct lull_cause *cause = f ? lull_causes[f->cause] : NULL;

	fprintf(p->to, "# Why the GPU waits: %s\n\n", p->path);
	lull_why_print_first(p->to, p->why, WIDTH);
	if (!f)
		return;
	where(p, &f->at);
	heading(p, "What this cause means");
	say(p, 0, "%s: %s. %s", cause->id, cause->title, cause->why);
	if (cause->fix_more)
		say(p, 0, "If it waits for others: %s.", cause->fix_more);
}

static void next(struct agent_page *p)
{
	const struct lull_finding *all = p->why->findings.at;
	int n = 0;

	for (size_t i = 0; i < p->why->findings.n && n < MAX_NEXT; i++) {
		if ((int)i == p->why->first)
			continue;
		if (!n++)
			heading(p, "Next causes, each as if it alone were fixed");
		else
			fputc('\n', p->to);
		lull_why_print_finding(p->to, p->why, &all[i], WIDTH);
		where(p, &all[i].at);
	}
}

static void faster_kernels(const struct agent_page *p)
{
	if (!p->why->opportunities.n)
		return;
	heading(p, "Make the busy time shorter");
	lull_why_print_opportunities(p->to, p->why, WIDTH, false);
}

/* The step to expect, if one was predicted. */
static void expectation(const struct agent_page *p, const struct lull_finding *f)
{
	const struct lull_prediction *pr = &f->prediction;

	if (pr->is_known)
		say(p, 3,
		    "The fix worked if the step is near %s (between %s); it is %s now, of which "
		    "%s has %s.",
		    lull_why_time(pr->step_ns).text, lull_why_range(pr).text,
		    lull_why_time(p->why->step_ns).text, lull_causes[f->cause]->id,
		    lull_why_time(f->cost_ns).text);
	else
		say(p, 3, "The fix worked if the step is shorter than %s, and %s has less than %s.",
		    lull_why_time(p->why->step_ns).text, lull_causes[f->cause]->id,
		    lull_why_time(f->cost_ns).text);
}

static void check(const struct agent_page *p)
{
	const struct lull_finding *f = lull_why_first(p->why);
	const char *command = lull_reader_fact(p->why->reader, "recording.command");

	if (!*command)
		command = lull_device_command(p->why->reader);
	if (f && lull_causes[f->cause]->kind == LULL_CAUSE_BUSY)
		f = NULL;
	heading(p, "Check");
	if (!lull_why_first(p->why)) {
		fprintf(p->to, "1. Add what is missing above.\n2. lull profile -o again %s\n",
			command);
		fprintf(p->to, "3. lull why --agent again.lull\n");
		return;
	}
	if (!f) {
		fprintf(p->to, "1. lull profile -o after %s\n2. lull diff %s after.lull\n", command,
			p->quoted.at);
		say(p, 3, "Record again after each change, and compare.");
		return;
	}
	fprintf(p->to, "1. Change one thing, the fix above. Results must stay the same.\n");
	fprintf(p->to, "2. lull profile -o after %s\n", command);
	fprintf(p->to, "3. lull diff %s after.lull\n", p->quoted.at);
	expectation(p, f);
	fprintf(p->to, "4. lull gate --baseline %s after.lull\n", p->quoted.at);
	say(p, 3, "Exit status 0: not slower; 1: slower; 2: too few steps to decide.");
	fprintf(p->to, "5. lull why --agent after.lull\n");
	say(p, 3, "It names the next cause.");
}

void lull_why_print_agent(FILE *to, const struct lull_why *why, const char *path)
{
	struct agent_page p = { .to = to, .why = why, .path = path };

	set_folders(&p);
	add_quoted(&p.quoted, path);
	first(&p);
	next(&p);
	faster_kernels(&p);
	check(&p);
	if (why->step_ns > 0) {
		heading(&p, "Numbers");
		lull_why_print_numbers(to, why, WIDTH);
	}
	lull_str_release(&p.folder);
	lull_str_release(&p.quoted);
}
