/*
 * lull kernel - why a kernel is slow: read its counters, or show what was read.
 */
#include "cmd/cmd.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/json.h"
#include "base/mem.h"
#include "text/opt.h"
#include "cmd/kernel/kernel_metrics.h"
#include "cmd/kernel/kernel_show.h"
#include "cmd/kernel/kernel_usual.h"
#include "cmd/losses.h"
#include "cmd/open.h"
#include "cmd/schema_json.h"
#include "counter/kset.h"
#include "counter/section.h"
#include "counter/tell.h"
#include "model/device.h"

/* ---- which launches ---- */

static bool name_matches(const char *name, const char *wanted, const regex_t *regex)
{
	size_t len = strlen(wanted);
	const char *at;

	if (regex)
		return regexec(regex, name, 0, NULL, 0) == 0;
	/* The name alone, without return type, namespaces and arguments. */
	for (at = name; (at = strstr(at, wanted)); at++)
		if ((at == name || strchr(" :", at[-1])) && (!at[len] || strchr("<( ", at[len])))
			return true;
	return false;
}

static int compile(const char *wanted, regex_t *regex, bool *has_regex, struct lull_err *err)
{
	static const char prefix[] = "regex:";
	char why[128];
	int rc;

	*has_regex = wanted && strncmp(wanted, prefix, sizeof(prefix) - 1) == 0;
	if (!*has_regex)
		return LULL_OK;
	rc = regcomp(regex, wanted + sizeof(prefix) - 1, REG_EXTENDED | REG_NOSUB);
	if (!rc)
		return LULL_OK;
	*has_regex = false;
	regerror(rc, regex, why, sizeof(why));
	return lull_fail(err, LULL_E_USAGE, "--kernel-name: '%s' is not a regular expression: %s",
			 wanted + sizeof(prefix) - 1, why);
}

static int choose(struct lull_kernel_choice *c, const struct lull_kernel_options *o,
		  struct lull_err *err)
{
	struct lull_profile *all = c->all.items.at;
	u64 n_seen = 0;
	bool has_regex;
	regex_t regex;

	if (compile(o->which->kernel_name, &regex, &has_regex, err))
		return err->code;
	for (size_t i = 0; i < c->all.items.n; i++) {
		struct lull_profile *p = &all[i];

		if (o->which->kernel_name &&
		    !name_matches(p->name, o->which->kernel_name, has_regex ? &regex : NULL))
			continue;
		if (n_seen++ < o->which->skip ||
		    (o->which->count && c->chosen.n >= o->which->count))
			continue;
		lull_vec_add(&c->chosen, &p, 1);
	}
	if (has_regex)
		regfree(&regex);
	return LULL_OK;
}

/* ---- JSON ---- */

static void print_json(const struct lull_kernel_choice *c)
{
	struct lull_profile *const *p = c->chosen.at;
	struct lull_json j;

	lull_json_init(&j, stdout);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key(&j, "launches");
	lull_json_array(&j);
	for (size_t i = 0; i < c->chosen.n; i++)
		lull_tell_launch(&j, p[i]);
	lull_json_end(&j);
	lull_json_end(&j);
	putchar('\n');
}

static const struct lull_property claim_members[] = {
	{ "id", "string", "its id; never changes", NULL },
	{ "detail", "string", "which level, pipe, resource or stall; empty if none", NULL },
	{ "title", "string", "the same as a sentence", NULL },
	{ "gain", "number|null", "times faster, at most", NULL },
	{ "proofs", "array", "sentences with the numbers it is based on", NULL },
	{ "fix", "string", "what to try", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property stall_members[] = {
	{ "reason", "string", "as the counters call it", NULL },
	{ "title", "string", "for people", NULL },
	{ "share", "number", "of the time of all warps, 0 to 1", NULL },
	{ "meaning", "string", "what the warps did", NULL },
	{ "help", "string", "what helps against it", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property section_members[] = {
	{ "name", "string", "as --section takes it", NULL },
	{ "title", "string", "for people", NULL },
	{ "lines", "array", "label, key, value, unit and note of each value", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property launch_members[] = {
	{ "id", "integer", "number of the launch in the report", NULL },
	{ "kernel", "string", "its name", NULL },
	{ "range", "string|null", "innermost range around the launch", NULL },
	{ "device", "string", "model", NULL },
	{ "start_ns", "integer", "when the program launched it", NULL },
	{ "duration_ns", "integer", "time on the device", NULL },
	{ "ordinal", "integer", "which launch of the process it was", NULL },
	{ "passes", "integer", "how often it ran to read all counters", NULL },
	{ "n_launches", "integer", "launches in a range that was measured as one; absent if not",
	  NULL },
	{ "n_launches_least", "integer", "the same for the run with the fewest", NULL },
	{ "trouble", "string|null", "why counters are missing", NULL },
	{ "grid", "array", "blocks in x, y, z", NULL },
	{ "block", "array", "threads in x, y, z", NULL },
	{ "registers", "integer", "of a thread", NULL },
	{ "shared_bytes", "integer", "shared memory of a block", NULL },
	{ "limited_by", "string", "resource that limits the occupancy; absent if not known", NULL },
	{ "verdict", "object|null", "why it takes so long; null if not known", claim_members },
	{ "also", "array", "other findings, in their order", claim_members },
	{ "missing", "string", "verdicts that could not be checked, and the metric they lack",
	  NULL },
	{ "loads", "object", "how busy each part of the chip was, 0 to 1", NULL },
	{ "stalls", "array", "stall reasons of warps, largest first", stall_members },
	{ "roofline", "object|null", "rate, ceilings and slopes; null if not measured", NULL },
	{ "curves", "object",
	  "occupancy (0 to 1) by threads, registers and shared_bytes; absent if not known", NULL },
	{ "sections", "array", "what --page details shows", section_members },
	{ "samples", "integer", "samples of the program counter", NULL },
	{ "source", "array", "hottest lines: file, line, function, offset, samples, stall", NULL },
	{ "metrics", "object", "all metrics and values by key", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "launches", "array", "launches whose counters were read", launch_members },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_kernel(struct lull_json *j)
{
	lull_schema_json_object(j, "lull kernel --format json", document);
}

/* ---- showing ---- */

bool lull_kernel_wants(const struct lull_kernel_options *options, const char *section)
{
	char *const *names = options->which->sections.at;

	for (size_t i = 0; i < options->which->sections.n; i++) {
		const struct lull_section *s = lull_section_find(names[i]);

		if (s && strcmp(s->name, section) == 0)
			return true;
	}
	return !options->which->sections.n;
}

bool lull_kernel_is_asked(const struct lull_kernel_options *options)
{
	const struct lull_kernel_collect *which = options->which;

	return which->metrics.n && !which->sets.n && !which->sections.n &&
	       options->page != LULL_KERNEL_PAGE_DETAILS &&
	       options->page != LULL_KERNEL_PAGE_SOURCE;
}

static int print(const struct lull_kernel_choice *c, const struct lull_kernel_options *o,
		 struct lull_err *err)
{
	if (o->is_json && !o->summary) {
		print_json(c);
		return LULL_OK;
	}
	if (o->summary)
		return lull_kernel_print_summary(c, o, stdout, err);
	if (o->page == LULL_KERNEL_PAGE_RAW || o->is_csv || o->format)
		return lull_kernel_print_table(c, o, stdout, err);
	return lull_kernel_print(c, o, stdout, err);
}

static int show(struct lull_reader *r, const char *path, const struct lull_kernel_options *o,
		struct lull_err *err)
{
	struct lull_kernel_choice c;
	int rc;

	c.reader = r;
	lull_profiles_read(&c.all, r);
	lull_vec_init(&c.chosen, sizeof(struct lull_profile *));
	rc = choose(&c, o, err);
	if (!rc && !c.all.items.n)
		rc = lull_fail(err, LULL_E_NOT_FOUND,
			       "the report has no counters of kernels; `lull kernel --from %s -- "
			       "%.100s` measures them",
			       path, lull_device_command(r));
	else if (!rc && !c.chosen.n)
		rc = lull_fail(
			err, LULL_E_NOT_FOUND,
			"the options select none of the %zu measured launches; the first is %.120s",
			c.all.items.n, ((const struct lull_profile *)c.all.items.at)->name);
	if (!rc)
		rc = lull_kernel_metrics_check_shown(&o->which->metrics, &c.all.items, err);
	if (!rc && c.all.n_left)
		fprintf(stderr, "%llu more launches are in the report than can be shown\n",
			(unsigned long long)c.all.n_left);
	if (!rc)
		rc = print(&c, o, err);
	lull_vec_release(&c.chosen);
	lull_profiles_release(&c.all);
	return rc;
}

int lull_kernel_show(const char *path, const struct lull_kernel_options *options,
		     struct lull_err *err)
{
	const char *from = options->which->from;
	struct lull_kernel_options shown = *options;
	struct lull_str used = LULL_STR_INIT;
	struct lull_reader *r;
	struct lull_vec usual;
	int rc;

	lull_vec_init(&usual, sizeof(struct lull_kernel_usual));
	rc = lull_open(path, &r, &used, err);
	if (!rc) {
		lull_losses_warn(r, path);
		if (from && strcmp(from, path) != 0)
			rc = lull_kernel_usual_read(from, &usual, err);
		shown.usual = &usual;
		if (!rc)
			rc = show(r, path, &shown, err);
		lull_losses_close(r, path);
	}
	lull_kernel_usual_release(&usual);
	lull_str_release(&used);
	return rc;
}

/* ---- the command ---- */

/* Sections by the names other tools give them; those only measured are shown as part of others. */
static int settle_sections(struct lull_kernel_collect *k, struct lull_err *err)
{
	char **names = k->sections.at;

	for (size_t i = 0; i < k->sections.n; i++) {
		const struct lull_section *s = lull_section_find(names[i]);
		bool is_known = s != NULL;

		if (s) {
			free(names[i]);
			names[i] = lull_strdup(s->name);
		}
		for (size_t n = 0; n < lull_n_ksections; n++)
			is_known |= strcmp(lull_ksections[n].name, names[i]) == 0;
		if (!is_known)
			return lull_fail(err, LULL_E_USAGE,
					 "--section: no section %s; --list-sections names them",
					 names[i]);
	}
	return LULL_OK;
}

static int settle(struct lull_kernel_options *o, struct lull_err *err)
{
	o->out.top = o->top;
	o->out.is_human = true;
	if (o->is_csv && lull_out_options_parse(&o->out, "csv", err))
		return err->code;
	if (o->format && strcmp(o->format, "json") == 0)
		o->is_json = true;
	if (o->format && strcmp(o->format, "text") == 0)
		o->format = NULL;
	else if (o->format && lull_out_options_parse(&o->out, o->format, err))
		return lull_err_wrap(err, "option --format");
	return LULL_OK;
}

/* A report instead of a program: `lull kernel run.lull`. */
static bool is_report(const char *word)
{
	size_t len = strlen(word);
	bool has_suffix = (len > 5 && strcmp(word + len - 5, ".lull") == 0) ||
			  (len > 8 && strcmp(word + len - 8, ".ncu-rep") == 0);

	return has_suffix && access(word, X_OK) != 0;
}

/* Say why there may be nothing to show, and which command says more. */
static void say_nothing_measured(int exit_status)
{
	if (exit_status)
		fprintf(stderr,
			"lull: no kernel was measured; the program ended with status %d. Does it "
			"work without lull?\n",
			exit_status);
	else
		fputs("lull: no kernel was measured; `lull profile` shows which kernels the "
		      "program launches, `lull doctor` whether counters can be read\n",
		      stderr);
}

/* Measure, then show; the exit status is the program's. */
static int measure(struct lull_kernel_collect *k, char **argv, const struct lull_kernel_options *o,
		   struct lull_err *err)
{
	struct lull_kernel_done done = { NULL, 0 };
	struct lull_kernel_collect all = *k;
	struct lull_kernel_options shown = *o;
	int rc = lull_kernel_collect(k, argv, &done, err);

	/* What is in the report was chosen already. */
	all.kernel_name = NULL;
	all.skip = all.count = 0;
	shown.which = &all;
	shown.top = shown.out.top = 0;

	if (!rc && done.report) {
		fflush(stderr);
		rc = lull_kernel_show(done.report, &shown, err);
		/* A program without a launch that was asked for is no failure of the report. */
		if (rc == LULL_E_NOT_FOUND) {
			say_nothing_measured(done.exit_status);
			rc = LULL_OK;
		}
	}
	free(done.report);
	return rc ? rc : done.exit_status;
}

static int run(struct lull_kernel_collect *k, struct lull_kernel_options *o, int argc, char **argv,
	       struct lull_err *err)
{
	const char *report = o->import ? o->import : argc ? NULL : k->from;

	if (lull_kernel_collect_is_list(k))
		return lull_kernel_collect_list(k, err);
	if (o->wants_manual) {
		lull_kernel_print_manual(stdout);
		return LULL_OK;
	}
	if (settle(o, err) || settle_sections(k, err))
		return err->code;
	if (o->import && argc)
		return lull_fail(err, LULL_E_USAGE,
				 "%s is a report, which is shown, and nothing is run; remove '%s'",
				 o->import, argv[0]);
	if (report)
		return lull_kernel_show(report, o, err);
	if (!argc)
		return lull_fail(err, LULL_E_USAGE,
				 "give a program to run, or a report with --import");
	k->top = o->top ? o->top : k->top;
	return measure(k, argv, o, err);
}

/* Our own options after those of the other half. */
static void add_options(struct lull_opt *to, struct lull_kernel_collect *k,
			struct lull_kernel_options *o)
{
	static const char *const pages[] = { "verdict", "details", "raw", "source", NULL };
	static const char *const summaries[] = { "none", "per-kernel", "per-gpu", "per-nvtx",
						 NULL };
	const struct lull_opt opts[] = {
		OPT_GROUP("What is shown"),
		OPT_STR('i', "import", "REPORT", &o->import, "show this report; run nothing"),
		OPT_STR(0, "from", "REPORT", &k->from,
			"measure the kernels that take most time in this report of lull profile, "
			"and show their time there; without a program the same as --import"),
		OPT_U64(0, "top", "N", &o->top,
			"number of kernels that --from measures (default: 3); number of rows or "
			"launches to show, 0 for all (default: 0)"),
		OPT_ENUM(0, "page", &o->page, pages,
			 "verdict, details (all sections), raw (all metrics) or source (hottest "
			 "lines) (default: verdict)"),
		OPT_ENUM(0, "print-summary", &o->summary, summaries,
			 "a table with one row for each kernel, device and kernel, or range and "
			 "kernel"),
		OPT_FLAG(0, "csv", &o->is_csv, "comma-separated values"),
		OPT_STR(0, "format", "NAME", &o->format,
			"text, json, or a format of lull stats (default: text)"),
		OPT_FLAG(0, "verdicts", &o->wants_manual,
			 "print what each verdict, stall reason and value means, and exit"),
		OPT_END(),
	};

	memcpy(to, opts, sizeof(opts));
}

#define MAX_OPTIONS 160
#define OWN_OPTIONS 11

int cmd_kernel(int argc, char **argv, struct lull_err *err)
{
	struct lull_opt opts[MAX_OPTIONS] = {
		OPT_USAGE("lull kernel [OPTIONS] PROGRAM [ARGS], or lull kernel [OPTIONS] REPORT",
			  "Say why a kernel is slow: how close it came to the limits of the chip, "
			  "what limits it, what its warps waited for, and what to try."),
	};
	struct lull_kernel_collect k;
	struct lull_kernel_options o = { .which = &k, .out = LULL_OUT_OPTIONS_INIT };
	int first, rc;

	lull_kernel_collect_init(&k);
	add_options(opts + 1 +
			    lull_kernel_collect_opts(&k, opts + 1, MAX_OPTIONS - OWN_OPTIONS - 1),
		    &k, &o);
	first = lull_opt_parse_program(argc, argv, opts, err);
	/* Options of our own may follow a report. */
	if (first >= 0 && first < argc && !o.import && is_report(argv[first])) {
		int more = lull_opt_parse(argc - first, argv + first, opts, err);

		o.import = argv[first];
		first = more < 0 ? more : first + more;
	}
	rc = first < 0 ? first : run(&k, &o, argc - first, argv + first, err);
	lull_kernel_collect_release(&k);
	return rc;
}
