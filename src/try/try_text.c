/*
 * The answer as text, and the words that all outputs share.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cause/why.h"
#include "text/term.h"
#include "try/try_int.h"

/* The name of an entry takes this many columns. */
#define NAME_COLUMNS 24

/* Its step this many. */
#define STEP_COLUMNS 10

/* A smaller prediction is none. */
#define LEAST_PREDICTED 1.005

/* More memory of the device than this is worth a word. */
#define NOTABLE_BYTES (64ULL << 20)

/* Start-up that takes so much longer than that of the program as it is. */
#define NOTABLE_START_NS 2000000000ULL

const char *lull_try_verdict(const struct lull_try_entry *e)
{
	static const char *const ends[] = {
		[LULL_TRY_NOTHING] = "nothing to change",
		[LULL_TRY_DIFFERS] = "differs",
		[LULL_TRY_FAILED] = "failed",
		[LULL_TRY_HUNG] = "hung",
		[LULL_TRY_NOT_REACHED] = "not tried",
	};
	static const char *const gains[] = {
		[LULL_GAIN_UNKNOWN] = "unsure", [LULL_GAIN_YES] = "gain",
		[LULL_GAIN_NONE] = "none",	[LULL_GAIN_SLOWER] = "slower",
		[LULL_GAIN_HIDDEN] = "unsure",
	};

	return e->end == LULL_TRY_MEASURED ? gains[e->gain.verdict] : ends[e->end];
}

void lull_try_say_losses(const struct lull_try_entry *e, struct lull_str *to)
{
	const char *what = e->last.seen.has_loss ? "losses" : "outputs";

	if (!e->has_values)
		lull_str_puts(to, "results not compared");
	else if (e->is_equal)
		lull_str_addf(to, "same %s to the bit", what);
	else
		lull_str_addf(to, "same %s to %.0e", what, e->difference);
}

static void say_gain(const struct lull_try_entry *e, struct lull_str *to)
{
	const struct lull_gain *g = &e->gain;

	switch (g->verdict) {
	case LULL_GAIN_YES:
		lull_str_addf(to, "%.2f x (%.2f to %.2f)", g->ratio, g->low, g->high);
		break;
	case LULL_GAIN_NONE:
		lull_str_puts(to, "none");
		break;
	case LULL_GAIN_SLOWER:
		lull_str_addf(to, "slower, %.2f x", g->ratio);
		break;
	default:
		lull_str_addf(to, "unsure (%.2f x after %u run%s)", g->ratio, e->n_runs,
			      e->n_runs == 1 ? "" : "s");
	}
}

static void say_costs(const struct lull_try *t, const struct lull_try_entry *e, struct lull_str *to)
{
	i64 more_ns = (i64)e->ready_ns - (i64)t->base.ready_ns;
	i64 more_bytes = (i64)e->device_bytes - (i64)t->base.device_bytes;

	if (more_ns > (i64)NOTABLE_START_NS)
		lull_str_addf(to, ", warm-up +%s", lull_format_ns((u64)more_ns).text);
	if (more_bytes > (i64)NOTABLE_BYTES)
		lull_str_addf(to, ", +%s", lull_format_bytes((u64)more_bytes).text);
	else if (-more_bytes > (i64)NOTABLE_BYTES)
		lull_str_addf(to, ", -%s", lull_format_bytes((u64)-more_bytes).text);
}

/* Why it may have brought nothing. */
static void say_notes(const struct lull_try_entry *e, struct lull_str *to)
{
	char *const *notes = e->last.seen.notes.at;

	for (size_t i = 0; i < e->last.seen.notes.n; i++)
		lull_str_addf(to, "; %s", notes[i]);
}

/* What is said after the step of an entry. */
static void say_entry(const struct lull_try *t, const struct lull_try_entry *e,
		      struct lull_str *text)
{
	if (e->end == LULL_TRY_NOT_REACHED) {
		lull_str_puts(text, "not tried: the time was over");
	} else if (e->end == LULL_TRY_DIFFERS) {
		lull_str_puts(text, "out: ");
		lull_try_say_losses(e, text);
		lull_str_puts(text, " only");
	} else if (e->end != LULL_TRY_MEASURED) {
		lull_str_addf(text, "%s%s",
			      e->end == LULL_TRY_NOTHING ? "" : "out: ", lull_str_text(&e->why));
	} else {
		say_gain(e, text);
		if (e->p99_ns > 0)
			lull_str_addf(text, ", p99 %s", lull_why_time(e->p99_ns).text);
		if (e->gain.verdict == LULL_GAIN_YES) {
			lull_str_puts(text, ", ");
			lull_try_say_losses(e, text);
			say_costs(t, e, text);
		}
		if (e->predicted >= LEAST_PREDICTED)
			lull_str_addf(text, " (predicted: %.2f x)", e->predicted);
		if (e->gain.verdict != LULL_GAIN_YES)
			say_notes(e, text);
	}
}

static void print_entry(const struct lull_try *t, const struct lull_try_entry *e, FILE *to,
			int width)
{
	struct lull_str text = LULL_STR_INIT;
	bool has_step = e->end == LULL_TRY_MEASURED || e->end == LULL_TRY_DIFFERS;

	say_entry(t, e, &text);
	fprintf(to, "%-*s", NAME_COLUMNS, lull_str_text(&e->name));
	if (e->name.len >= NAME_COLUMNS)
		fprintf(to, "\n%*s", NAME_COLUMNS, "");
	fprintf(to, "%-*s", STEP_COLUMNS,
		has_step && e->step_ns > 0 ? lull_why_time(e->step_ns).text : "");
	lull_term_wrap(to, lull_str_text(&text), NAME_COLUMNS + STEP_COLUMNS, width);
	lull_str_release(&text);
}

/* What is measured. */
static const char *unit(const struct lull_try *t)
{
	if (t->options->client)
		return "request";
	return t->how.is_whole ? "run" : t->how.by_calls ? "call" : "step";
}

static void print_base(const struct lull_try *t, FILE *to)
{
	fprintf(to, "%-*s%s a %s   (%u run%s", NAME_COLUMNS, "as it is",
		lull_why_time(t->base.step_ns).text, unit(t), t->base.n_runs,
		t->base.n_runs == 1 ? "" : "s");
	if (!t->how.is_whole)
		fprintf(to, " of %llu %ss", (unsigned long long)t->n_measured, unit(t));
	if (t->base.p99_ns > 0)
		fprintf(to, ", p99 %s", lull_why_time(t->base.p99_ns).text);
	if (t->base.n_runs > 1)
		fprintf(to, ", +-%.1f %%", 100 * t->noise);
	fputs(")\n", to);
}

/* A line of the user's file, without the blanks around it. */
static void print_line(FILE *to, const char *path, u64 number)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	for (u64 i = 0; f && i < number; i++)
		if (getline(&line, &cap, f) <= 0)
			break;
	if (line) {
		line[strcspn(line, "\r\n")] = '\0';
		fprintf(to, "   %.70s", line + strspn(line, " \t"));
	}
	if (f)
		fclose(f);
	free(line);
}

/* A path below the current folder is shown without it. */
static const char *short_path(const char *path)
{
	static char here[4096];
	size_t n;

	if (!getcwd(here, sizeof(here)))
		return path;
	n = strlen(here);
	return strncmp(path, here, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void print_places(const struct lull_try_entry *e, FILE *to)
{
	const struct lull_try_place *places = e->last.seen.places.at;

	for (size_t i = 0; i < e->n; i++) {
		bool has_place = false;

		for (size_t n = 0; n < e->last.seen.places.n; n++) {
			const struct lull_try_place *p = &places[n];

			if (strcmp(p->remedy, e->remedies[i]->name) != 0)
				continue;
			has_place = true;
			fprintf(to, "  %s:%llu", short_path(p->file), (unsigned long long)p->line);
			print_line(to, p->file, p->line);
			fprintf(to, "\n      %s\n", p->text);
		}
		if (!has_place && *e->remedies[i]->write)
			fprintf(to, "  %s\n", e->remedies[i]->write);
	}
}

static void print_best(const struct lull_try *t, FILE *to, int width)
{
	const struct lull_try_entry *best = lull_try_best(t);

	if (best) {
		fprintf(to, "Best: %s, %.2f x (%.2f to %.2f). In your program:\n",
			lull_str_text(&best->name), best->gain.ratio, best->gain.low,
			best->gain.high);
		print_places(best, to);
	} else if (t->entries.n && !t->is_stopped && !t->is_over_budget) {
		lull_term_say(to, 0, width,
			      "Nothing gains: no remedy makes a %s %.1f %% faster, "
			      "as far as %u runs tell.",
			      unit(t), 100 * LULL_DECIDE_LEAST_SHIFT * LULL_CONTEST_LEAST,
			      t->n_trials);
	} else if (!t->entries.n) {
		lull_term_say(to, 0, width,
			      "Nothing to try: there is no remedy for what was found.");
	}
}

static void print_notes(const struct lull_try *t, FILE *to, int width)
{
	const struct lull_vec *kept = &t->base.last.seen.kept;

	if (t->is_stopped)
		lull_term_say(to, 0, width, "Stopped; this is what was measured until then.");
	if (t->is_over_budget)
		lull_term_say(to, 0, width,
			      "The budget is spent; --budget gives more time, --only fewer "
			      "remedies.");
	if (t->how.by_calls)
		lull_term_say(to, 0, width,
			      "No steps were found, so calls of the model are compared, each with "
			      "what comes before the next.");
	if (t->how.is_whole && !t->how.has_start)
		lull_term_say(
			to, 0, width,
			"No steps were found, so whole runs are compared, from where PyTorch "
			"is loaded. A program that runs for a set time takes as long with any "
			"remedy; lull.step() in its loop shows more.");
	if (kept->n)
		lull_term_say(to, 0, width,
			      "Files that the program saves went to a scratch folder: %s%s",
			      short_path(*(char *const *)kept->at), kept->n > 1 ? ", ..." : "");
	if (t->drift > 0)
		lull_term_say(to, 0, width,
			      "Losses of the program itself differ from run to run, by up to %.0e.",
			      t->drift);
}

static void print_plan(const struct lull_try *t, FILE *to)
{
	size_t n_left_out = 0;

	fprintf(to, "Would run the program as it is and with each of these, %llu times each:\n",
		(unsigned long long)t->options->n_runs);
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct lull_try_entry *e = lull_vec_get(&t->entries, i);

		if (e->end == LULL_TRY_NOTHING) {
			n_left_out++;
			continue;
		}
		fprintf(to, "  %-*s %s", NAME_COLUMNS - 2, lull_str_text(&e->name),
			e->n == 1 ? e->remedies[0]->title : "these together");
		if (e->predicted >= LEAST_PREDICTED)
			fprintf(to, " (predicted: %.2f x)", e->predicted);
		fputc('\n', to);
	}
	if (n_left_out)
		fputs("Not with these:\n", to);
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct lull_try_entry *e = lull_vec_get(&t->entries, i);

		if (e->end == LULL_TRY_NOTHING)
			fprintf(to, "  %-*s %s\n", NAME_COLUMNS - 2, lull_str_text(&e->name),
				lull_str_text(&e->why));
	}
}

void lull_try_text(const struct lull_try *t, FILE *to, int width)
{
	if (t->chosen_by.len)
		lull_term_say(to, 0, width, "%s", t->chosen_by.at);
	if (t->steps_by.len)
		lull_term_say(to, 0, width, "%s", t->steps_by.at);
	if (t->options->is_dry) {
		print_plan(t, to);
		return;
	}
	print_base(t, to);
	for (size_t i = 0; i < t->entries.n; i++)
		print_entry(t, lull_vec_get(&t->entries, i), to, width);
	print_best(t, to, width);
	print_notes(t, to, width);
}
