#include "cmd/why_print.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "model/device.h"
#include "report/duty_windows.h"
#include "model/window.h"
#include "text/term.h"
#include "cause/thresholds.h"

/* Causes after the first that are named: more is a list, not an answer. */
#define MAX_THEN 3
/* Recording costs this part of the step or more: said. */
#define OVERHEAD_SAID 0.05
/* Less of the step is left out. */
#define LEAST_SAID 0.0005
/* Kinds of steps, if there are so few. */
#define MAX_KINDS_SAID 4
/* Kinds of as many launches whose times differ by less are one to the reader. */
#define KINDS_ALIKE 0.1
/* Warm-up of several steps with this share of the time is told: the answer is about the rest. */
#define LONG_WARM_UP 0.5

/* Width of the text of manual pages. */
#define PAGE_WIDTH 118

struct printer {
	FILE *to;
	int width;
};

/* A paragraph, indented and wrapped. */
#define say(p, indent, ...) lull_term_say((p)->to, indent, (p)->width, __VA_ARGS__)

/* Whether recording costs enough to tell the recorded step from the one without it. */
static bool is_slowed(const struct lull_why *why)
{
	return 1 - why->free_ns / why->step_ns >= OVERHEAD_SAID;
}

/* A sentence of an answer that is a guess starts with that. */
static void say_headline(const struct printer *p, const struct lull_why *why,
			 const struct lull_str *text)
{
	const char *sentence = lull_str_text(text);

	if (why->is_probable)
		say(p, 0, "Probably %s. %s", lull_causes[lull_why_first(why)->cause]->id, sentence);
	else
		say(p, 0, "%s", sentence);
}

static void headline_busy(struct lull_str *text, const struct lull_why *why, const char *because)
{
	f64 busy_ns = why->compute_share * why->step_ns;
	/* Where recording slows the host alone, it is the step without it that the device fills. */
	f64 step_ns = is_slowed(why) ? fmax(why->free_ns, busy_ns) : why->step_ns;

	lull_str_addf(text, "%s GPU is busy %.0f %% of each step (%s): %s.",
		      is_slowed(why) ? "Without recording, the" : "The", busy_ns / step_ns * 100,
		      lull_why_part(busy_ns, step_ns).text, because);
}

/* Why the cause with most of the time is not the first. */
static const char *why_later(const struct lull_finding *first, const struct lull_finding *most)
{
	if (lull_causes[most->cause]->kind == LULL_CAUSE_RESIDUE)
		return ", but that is what is left over where no other cause holds: ask again "
		       "after the fix";
	return most->gain_ns > 0 && most->gain_ns < first->gain_ns ? ", but its fix brings less"
								   : "";
}

/* The first cause has less than half of the time: no "because". */
static void headline_shared(struct lull_str *text, const struct lull_why *why,
			    const struct lull_finding *first)
{
	const struct lull_finding *most = lull_why_most(why);
	f64 waste_ns = lull_why_waste_ns(why);

	lull_str_addf(text,
		      "The GPU does not compute for %s %% of each step (%s). For %s of that %s",
		      lull_format_share(waste_ns / why->step_ns).text,
		      lull_why_part(waste_ns, why->step_ns).text,
		      lull_why_time(first->cost_ns).text, lull_why_because(why, first));
	if (most && lull_causes[most->cause]->kind == LULL_CAUSE_BLIND)
		lull_str_addf(text, ". %s of it are not explained.",
			      lull_why_time(most->cost_ns).text);
	else if (most)
		lull_str_addf(text, ": fix this first. %s has more of it, %s%s.",
			      lull_causes[most->cause]->id, lull_why_time(most->cost_ns).text,
			      why_later(first, most));
	else
		lull_str_puts(text, "; no other cause has more of it.");
}

/*
 * The causes share the time without compute: idle, copies and collectives with nothing else at the
 * same time. Pages may also move while kernels run, and so take longer than that.
 */
static void headline(const struct printer *p, const struct lull_why *why,
		     const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	f64 waste_ns = lull_why_waste_ns(why);
	struct lull_str text = LULL_STR_INIT;

	if (cause->kind == LULL_CAUSE_BUSY)
		headline_busy(&text, why, lull_why_because(why, f));
	else if (lull_why_is_beside(why, f))
		lull_str_addf(&text, "For %.0f %% of each step (%s) %s.", f->share * 100,
			      lull_why_part(f->cost_ns, why->step_ns).text,
			      lull_why_because(why, f));
	else if (f->cost_ns * 2 < waste_ns)
		headline_shared(&text, why, f);
	else
		lull_str_addf(&text,
			      "The GPU does not compute for %s %% of each step (%s) because %s.",
			      lull_format_share(waste_ns / why->step_ns).text,
			      lull_why_part(waste_ns, why->step_ns).text, lull_why_because(why, f));
	say_headline(p, why, &text);
	lull_str_release(&text);
}

static struct lull_number at_least(const struct lull_why *why, const struct lull_finding *f)
{
	struct lull_number out = { "" };
	f64 ratio = lull_why_at_least(why, f);

	if (ratio > 0)
		snprintf(out.text, sizeof(out.text), ", at least %.1f x", ratio);
	return out;
}

static void predict(const struct printer *p, const struct lull_why *why,
		    const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	const struct lull_prediction *pr = &f->prediction;

	if (!cause->apply)
		return;
	if (!pr->is_known) {
		say(p, 2, "No prediction: %s.", why->no_prediction);
		return;
	}
	say(p, 2, "Predicted step after the fix: %s (%.1f x%s; between %s)%s.",
	    lull_why_time(pr->step_ns).text, pr->ratio, at_least(why, f).text,
	    lull_why_range(pr).text, cause->is_ceiling && !cause->moves ? " at best" : "");
	if (*f->advice.assumes)
		say(p, 2, "It assumes that %s.", f->advice.assumes);
}

static void finding(const struct printer *p, const struct lull_why *why,
		    const struct lull_finding *f)
{
	const struct lull_evidence *e = f->evidence.at;
	char confidence[32] = "";

	/* It says how reliable the choice of the first cause is, and nothing about the others. */
	if (f == lull_why_first(why))
		snprintf(confidence, sizeof(confidence), " (confidence %.2f)", f->confidence);
	say(p, 2, "%s: %s/step, %.0f %% of the %sstep%s", lull_causes[f->cause]->id,
	    lull_why_time(f->cost_ns).text, f->share * 100, is_slowed(why) ? "recorded " : "",
	    confidence);
	for (size_t i = 0; i < f->evidence.n; i++)
		say(p, 4, "%s", e[i].text);
	say(p, 2, "Fix: %s", f->advice.fix);
	predict(p, why, f);
}

/* What its fix alone would bring. */
static void add_ratio(struct lull_str *text, const struct lull_finding *f)
{
	if (f->prediction.is_known)
		lull_str_addf(text, " (fix: %s%.1f x)",
			      lull_causes[f->cause]->is_ceiling ? "up to " : "",
			      f->prediction.ratio);
}

static void then(const struct printer *p, const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at;
	struct lull_str text = LULL_STR_INIT;
	int n = 0;

	for (size_t i = 0; i < why->findings.n && n < MAX_THEN; i++) {
		if ((int)i == why->first)
			continue;
		lull_str_addf(&text, "%s%s %s/step", n++ ? ", " : "", lull_causes[all[i].cause]->id,
			      lull_why_time(all[i].cost_ns).text);
		if (why->first >= 0)
			add_ratio(&text, &all[i]);
	}
	if (n)
		say(p, 0, "Then: %s.", lull_str_text(&text));
	lull_str_release(&text);
}

/* (74 % matmul, 26 % elementwise): of the time of kernels that compute. */
static void classes(const struct lull_why *why, struct lull_str *text)
{
	u64 sum = 0, left[LULL_N_KERNEL_CLASSES];

	memcpy(left, why->lead->class_ns, sizeof(left));
	left[LULL_KERNEL_COLLECTIVE] = 0;
	for (int i = 0; i < LULL_N_KERNEL_CLASSES; i++)
		sum += left[i];
	for (int n = 0; sum && n < LULL_N_KERNEL_CLASSES; n++) {
		int best = 0;

		for (int i = 1; i < LULL_N_KERNEL_CLASSES; i++)
			best = left[i] > left[best] ? i : best;
		if (left[best] * 100 < sum)
			break;
		lull_str_addf(text, "%s%.0f %% %s", n ? ", " : " (",
			      (f64)left[best] / (f64)sum * 100,
			      lull_kernel_class_name((enum lull_kernel_class)best));
		left[best] = 0;
	}
	lull_str_puts(text, sum ? ")" : "");
}

/* What the device does in a step: the parts add up to it. */
static void parts(const struct printer *p, const struct lull_why *why)
{
	const struct {
		const char *does;
		f64 share;
	} rest[] = { { "only exchanges data for", why->collective_share },
		     { "only copies for", why->copy_share },
		     { "is idle for", why->idle_share } };
	struct lull_str text = LULL_STR_INIT;
	size_t n = 0, n_said = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(rest); i++)
		n += rest[i].share >= LEAST_SAID;
	lull_str_addf(&text, "The GPU computes for %s of each step",
		      lull_why_time(why->compute_share * why->step_ns).text);
	classes(why, &text);
	for (size_t i = 0; i < LULL_COUNT_OF(rest); i++)
		if (rest[i].share >= LEAST_SAID)
			lull_str_addf(&text, "%s %s %s", ++n_said < n ? "," : " and", rest[i].does,
				      lull_why_time(rest[i].share * why->step_ns).text);
	say(p, 0, "%s.", lull_str_text(&text));
	lull_str_release(&text);
}

/* Whether kinds differ in what a reader would care about: launches, or time. */
static bool do_kinds_differ(const struct lull_rounds *rounds)
{
	const struct lull_round_kind *a = &rounds->kinds[0];

	for (u32 i = 1; i < rounds->n_kinds; i++) {
		const struct lull_round_kind *b = &rounds->kinds[i];

		if (b->n > 1 && (b->n_launches * a->n != a->n_launches * b->n ||
				 fabs((f64)b->dur_ns / b->n - (f64)a->dur_ns / a->n) >
					 KINDS_ALIKE * (f64)a->dur_ns / a->n))
			return true;
	}
	return false;
}

/* "They are of 2 kinds: 36 with 12 launches in 3.10 ms, 4 with 30 launches in 8.02 ms." If so. */
static bool kinds(const struct printer *p, const struct lull_rounds *rounds)
{
	struct lull_str text = LULL_STR_INIT;
	u32 n_others = 0, n = 0;

	for (u32 i = 0; i < rounds->n_kinds; i++)
		n += rounds->kinds[i].n > 1;
	if (n < 2 || n > MAX_KINDS_SAID || !do_kinds_differ(rounds))
		return false;
	for (u32 i = 0; i < rounds->n_kinds; i++) {
		const struct lull_round_kind *kind = &rounds->kinds[i];
		f64 launches = kind->n ? (f64)kind->n_launches / kind->n : 0;

		if (kind->n < 2) {
			n_others += kind->n;
			continue;
		}
		lull_str_addf(&text, "%s%s with %.0f launch%s in %s", i ? ", " : "",
			      lull_format_grouped(kind->n).text, launches,
			      round(launches) == 1 ? "" : "es",
			      lull_why_time((f64)kind->dur_ns / kind->n).text);
	}
	if (n_others)
		lull_str_addf(&text, ", %u other%s", n_others, n_others == 1 ? "" : "s");
	say(p, 0, "They are of %u kinds, by their launches and waits: %s.", n,
	    lull_str_text(&text));
	lull_str_release(&text);
	return true;
}

static void longer(const struct printer *p, const struct lull_why *why)
{
	struct lull_longer l = lull_why_longer(why);

	if (l.n)
		say(p, 0,
		    "What the %s longer ones do beyond the others takes %s of each step on average "
		    "(%.0f %%): if it can be done less often, a step takes %s at best.",
		    lull_format_grouped(l.n).text, lull_why_time(l.beyond_ns).text,
		    l.beyond_ns / why->step_ns * 100,
		    lull_why_time(why->step_ns - l.beyond_ns).text);
}

/* How the steps were found, what was left out, and what recording cost. */
static void basis(const struct printer *p, const struct lull_why *why)
{
	const struct lull_rounds *rounds = &why->lead->rounds;
	u32 n = lull_why_n_steps(why);
	char how[256], took[64] = "";

	if (rounds->first_steady > 1 && lull_why_warm_share(why) >= LONG_WARM_UP)
		snprintf(took, sizeof(took), ", with %.0f %% of the time of all steps",
			 lull_why_warm_share(why) * 100);
	say(p, 0, "%s step%s of %s on average (%s); %s before %s left out as warm-up%s.",
	    lull_format_grouped(n).text, n == 1 ? "" : "s", lull_why_time(why->step_ns).text,
	    lull_rounds_how(rounds, how, sizeof(how)),
	    lull_format_grouped(rounds->first_steady).text,
	    rounds->first_steady == 1 ? "is" : "are", took);
	if (kinds(p, rounds))
		longer(p, why);
	if (!lull_window_is_all(why->window))
		say(p, 0,
		    "The recording is long: these are the steps from %s to %s, in its middle; the "
		    "others were not looked at.",
		    lull_format_ns(why->window.from_ns).text,
		    lull_format_ns(why->window.to_ns).text);
	if (why->is_calibrated)
		say(p, 0, "Predictions are compared with the step time given, %s.",
		    lull_why_time(why->free_ns).text);
	else if (why->has_replay && is_slowed(why))
		say(p, 0,
		    "Recording made them slower: without it about %s (estimated), which "
		    "predictions are compared with; --step-time makes it exact.",
		    lull_why_time(why->free_ns).text);
}

static void others(const struct printer *p, const struct lull_why *why)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);

	for (u32 i = 0; i < why->n_subjects; i++) {
		const struct lull_subject *s = &why->subjects[i];
		int best = 0;

		if (s == why->lead || !s->window_ns)
			continue;
		for (int k = 1; k < LULL_N_CAUSES; k++)
			best = s->cost_ns[k] > s->cost_ns[best] ? k : best;
		say(p, 0,
		    "Process %u, device %u: computes %.0f %% of its step; most of the rest is %s.",
		    processes[s->process - 1].pid, lull_device_number(why->reader, s->device),
		    (f64)s->split_ns[LULL_SPLIT_COMPUTE] / (f64)s->window_ns * 100,
		    lull_causes[best]->id);
	}
}

/* Why it is a guess, and what would tell. */
static void doubt(const struct printer *p, const struct lull_why *why)
{
	if (!why->is_probable && why->guessed < 0)
		return;
	say(p, 2, "Not sure: %s.", why->unsure);
	say(p, 2, "To be sure: %s%s%s%s", why->settle, *why->settle_how ? " (" : "",
	    why->settle_how, *why->settle_how ? ")" : "");
}

/* There is no answer: a guess, if there is one, and else why. */
static void cannot(const struct printer *p, const struct lull_why *why)
{
	const char *const *missing = why->missing.at;

	if (why->guessed < 0)
		say(p, 0, "Cannot tell why: %s", why->cannot);
	if (*why->guess)
		say(p, 0, "%s", why->guess);
	doubt(p, why);
	for (size_t i = 0; i < why->missing.n; i++)
		say(p, 2, "not recorded: %s", missing[i]);
}

static void all_findings(const struct printer *p, const struct lull_why *why)
{
	const struct lull_finding *all = why->findings.at;

	for (size_t i = 0; i < why->findings.n; i++) {
		if ((int)i == why->first)
			continue;
		fputc('\n', p->to);
		finding(p, why, &all[i]);
	}
}

void lull_why_print_first(FILE *to, const struct lull_why *why, int width)
{
	const struct printer p = { to, width };
	const struct lull_finding *first = lull_why_first(why);

	if (why->is_simulated)
		say(&p, 0, "Simulated device: no GPU did this work, and its times are made up.");
	if (first) {
		headline(&p, why, first);
		finding(&p, why, first);
		doubt(&p, why);
	} else {
		cannot(&p, why);
	}
}

void lull_why_print_finding(FILE *to, const struct lull_why *why, const struct lull_finding *f,
			    int width)
{
	const struct printer p = { to, width };

	finding(&p, why, f);
}

/* How much of the run this is about, of a recording in windows. */
static void windows(const struct printer *p, const struct lull_why *why)
{
	struct lull_duty_windows w;

	if (lull_duty_windows_read(&w, why->reader))
		say(p, 0,
		    "Recorded in %zu window%s: %.2f %% of %s. lull stats -r windows says what that "
		    "means for the whole run, and how sure it is.",
		    w.all.n, w.all.n == 1 ? "" : "s", 100 * (f64)w.recorded_ns / (f64)w.elapsed_ns,
		    lull_why_time((f64)w.elapsed_ns).text);
	lull_duty_windows_release(&w);
}

void lull_why_print_numbers(FILE *to, const struct lull_why *why, int width)
{
	const struct printer p = { to, width };

	if (why->step_ns > 0) {
		parts(&p, why);
		basis(&p, why);
	}
	windows(&p, why);
	others(&p, why);
}

void lull_why_print(FILE *to, const struct lull_why *why, const struct lull_vec *answers, int width,
		    bool has_all)
{
	struct printer p = { to, width };
	const struct lull_why_answer *a = answers->at;

	lull_why_print_first(to, why, width);
	if (why->findings.n && !has_all)
		then(&p, why);
	if (has_all)
		all_findings(&p, why);
	lull_why_print_opportunities(to, why, width, has_all);
	lull_why_print_numbers(to, why, width);
	for (size_t i = 0; i < answers->n; i++)
		say(&p, 0, "What if %s: %s instead of %s (%.2f x; between %s)", a[i].question,
		    lull_why_time(a[i].prediction.step_ns).text, lull_why_time(why->free_ns).text,
		    a[i].prediction.ratio, lull_why_range(&a[i].prediction).text);
}

static void print_list(FILE *to, const struct lull_threshold *t, size_t n)
{
	for (size_t i = 0; i < n; i++, t++) {
		struct lull_str line = LULL_STR_INIT;

		lull_str_addf(&line, "%s %.10g %s: %s", t->name, t->value, t->unit, t->origin);
		fputs("- ", to);
		lull_term_wrap(to, lull_str_text(&line), 2, PAGE_WIDTH);
		lull_str_release(&line);
	}
}

/* The numbers that decide, with where they come from. */
static void print_thresholds(FILE *to)
{
	fputs("## Thresholds\n\n", to);
	lull_term_wrap(
		to,
		"The numbers by which causes are told and steps predicted. \"Chosen\" is a choice "
		"without a measurement; \"fitted\" is not independent of what it was tried "
		"on. Each is held by tests (src/cause/thresholds.def).",
		0, PAGE_WIDTH);
	fputc('\n', to);
	print_list(to, lull_thresholds, LULL_N_THRESHOLDS);
	fputs("\n## Thresholds of steps\n\n", to);
	lull_term_wrap(
		to,
		"The numbers by which all commands find the steps of a program, and say what "
		"threads "
		"and calls are. They were tried together: the steps of 29 recordings on an H200, "
		"with "
		"all marks taken away, are those of their marks or of the program's own measure "
		"(src/model/limits.def, which also names those that no test holds).",
		0, PAGE_WIDTH);
	fputc('\n', to);
	print_list(to, lull_limits, LULL_N_LIMITS);
}

void lull_why_print_causes(FILE *to)
{
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		const struct lull_cause *cause = lull_causes[i];

		fprintf(to, "## %s\n\n%c%s.\n\n", cause->id, toupper((unsigned char)*cause->title),
			cause->title + 1);
		lull_term_wrap(to, cause->why, 0, PAGE_WIDTH);
		fputs("\nTry: ", to);
		lull_term_wrap(to, cause->fix, 5, PAGE_WIDTH);
		if (cause->fix_torch) {
			fputs("\nWith PyTorch: ", to);
			lull_term_wrap(to, cause->fix_torch, 14, PAGE_WIDTH);
		}
		if (cause->fix_more) {
			fputs("\nIf it waits for others: ", to);
			lull_term_wrap(to, cause->fix_more, 24, PAGE_WIDTH);
		}
		if (cause->fix_more_torch) {
			fputs("\nWith PyTorch: ", to);
			lull_term_wrap(to, cause->fix_more_torch, 14, PAGE_WIDTH);
		}
		fputc('\n', to);
	}
	lull_why_print_opportunity_kinds(to);
	print_thresholds(to);
}
