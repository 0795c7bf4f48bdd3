/*
 * why_json - the answer as JSON, and the schema of it.
 */
#include <string.h>

#include "text/json.h"
#include "model/window.h"
#include "cmd/why_print.h"

#include "cmd/schema_json.h"

/* Intervals in the document: the longest are what a reader jumps to; the page asks for all. */
#define MAX_STEPS 1000

void lull_why_put_prediction(struct lull_json *j, const struct lull_prediction *p,
			     const struct lull_finding *f)
{
	lull_json_key(j, "prediction");
	if (!p->is_known) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_fixed(j, "step_ns", p->step_ns, 0);
	lull_json_key_fixed(j, "low_ns", p->low_ns, 0);
	lull_json_key_fixed(j, "high_ns", p->high_ns, 0);
	lull_json_key_fixed(j, "speedup", p->ratio, 6);
	if (f) {
		lull_json_key(j, "is_ceiling");
		lull_json_bool(j, lull_causes[f->cause]->is_ceiling);
		lull_json_key_text(j, "assumes", *f->advice.assumes ? f->advice.assumes : NULL);
	}
	lull_json_end(j);
}

static void put_location(struct lull_json *j, const struct lull_location *at)
{
	lull_json_key(j, "location");
	lull_json_object(j);
	lull_json_key_text(j, "file", at->file);
	lull_json_key(j, "line");
	if (at->file)
		lull_json_u64(j, at->line);
	else
		lull_json_null(j);
	lull_json_key_text(j, "function", at->function);
	lull_json_key_text(j, "range", at->range);
	lull_json_key_text(j, "what", at->what);
	lull_json_end(j);
}

static void put_evidence(struct lull_json *j, const struct lull_finding *f)
{
	const struct lull_evidence *e = f->evidence.at;

	lull_json_key(j, "evidence");
	lull_json_array(j);
	for (size_t i = 0; i < f->evidence.n; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "text", e[i].text);
		lull_json_key_text(j, "table", e[i].table);
		lull_json_key(j, "from_ns");
		lull_json_u64(j, e[i].from_ns);
		lull_json_key(j, "to_ns");
		lull_json_u64(j, e[i].to_ns);
		lull_json_key(j, "rows");
		lull_json_u64(j, e[i].n_rows);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_finding(struct lull_json *j, const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];

	lull_json_object(j);
	lull_json_key_text(j, "cause", cause->id);
	lull_json_key_text(j, "title", cause->title);
	lull_json_key_fixed(j, "cost_ns", f->cost_ns, 0);
	lull_json_key_fixed(j, "share", f->share, 6);
	lull_json_key_fixed(j, "gain_ns", f->gain_ns, 0);
	lull_json_key_fixed(j, "confidence", f->confidence, 6);
	put_location(j, &f->at);
	put_evidence(j, f);
	lull_json_key_text(j, "fix", f->advice.fix);
	lull_why_put_prediction(j, &f->prediction, f);
	lull_json_end(j);
}

/* The device's time in each step, by what it did and by cause. */
static void put_step(struct lull_json *j, const struct lull_subject *s, u32 step)
{
	u32 round = s->rounds.first_steady + step;

	lull_json_object(j);
	lull_json_key(j, "from_ns");
	lull_json_u64(j, lull_round_begin_ns(&s->rounds, round));
	lull_json_key(j, "to_ns");
	lull_json_u64(j, lull_round_end_ns(&s->rounds, round));
	lull_json_key(j, "causes");
	lull_json_object(j);
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		u64 ns = s->step_cost_ns[(size_t)step * LULL_SUBJECT_CAUSES + i];

		if (!ns)
			continue;
		lull_json_key(j, lull_causes[i]->id);
		lull_json_u64(j, ns);
	}
	lull_json_end(j);
	lull_json_end(j);
}

static void put_kinds(struct lull_json *j, const struct lull_rounds *rounds)
{
	lull_json_key(j, "kinds");
	lull_json_array(j);
	for (u32 i = 0; i < rounds->n_kinds; i++) {
		const struct lull_round_kind *kind = &rounds->kinds[i];

		lull_json_object(j);
		lull_json_key(j, "steps");
		lull_json_u64(j, kind->n);
		lull_json_key_fixed(j, "launches", (f64)kind->n_launches / kind->n, 1);
		lull_json_key_fixed(j, "mean_ns", (f64)kind->dur_ns / kind->n, 0);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_longer(struct lull_json *j, const struct lull_why *why)
{
	struct lull_longer l = lull_why_longer(why);

	lull_json_key(j, "longer");
	if (!l.n) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key(j, "steps");
	lull_json_u64(j, l.n);
	lull_json_key_fixed(j, "beyond_ns", l.beyond_ns, 0);
	lull_json_end(j);
}

static void put_steps(struct lull_json *j, const struct lull_why *why)
{
	static const char *const sources[LULL_N_ROUNDS_SOURCES] = {
		[LULL_ROUNDS_NONE] = "none",	   [LULL_ROUNDS_STEP] = "step",
		[LULL_ROUNDS_RANGE] = "range",	   [LULL_ROUNDS_OPTIMIZER] = "optimizer",
		[LULL_ROUNDS_PERIOD] = "period",   [LULL_ROUNDS_HOOK] = "hook",
		[LULL_ROUNDS_FORWARD] = "forward", [LULL_ROUNDS_NAMED] = "name",
		[LULL_ROUNDS_OPS] = "operator",	   [LULL_ROUNDS_WAITS] = "wait",
		[LULL_ROUNDS_GROUP] = "group",
	};
	const struct lull_subject *s = why->lead;
	u32 n = lull_why_n_steps(why);
	char how[256];

	lull_json_key(j, "steps");
	lull_json_object(j);
	lull_json_key_text(j, "source", sources[s->rounds.source]);
	lull_json_key_text(j, "found", lull_rounds_how(&s->rounds, how, sizeof(how)));
	lull_json_key(j, "steady");
	lull_json_u64(j, n);
	lull_json_key(j, "warm_up");
	lull_json_u64(j, s->rounds.first_steady);
	lull_json_key_fixed(j, "mean_ns", why->step_ns, 0);
	lull_json_key_fixed(j, "median_ns", why->median_ns, 0);
	lull_json_key_fixed(j, "unrecorded_ns", why->free_ns, 0);
	put_kinds(j, &s->rounds);
	put_longer(j, why);
	lull_json_key(j, "each");
	lull_json_array(j);
	for (u32 i = 0; s->step_cost_ns && i < n && i < MAX_STEPS; i++)
		put_step(j, s, i);
	lull_json_end(j);
	lull_json_end(j);
}

/* Of a long recording a part is looked at. */
static void put_window(struct lull_json *j, struct lull_span window)
{
	lull_json_key(j, "window");
	if (lull_window_is_all(window)) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key(j, "from_ns");
	lull_json_u64(j, window.from_ns);
	lull_json_key(j, "to_ns");
	lull_json_u64(j, window.to_ns);
	lull_json_end(j);
}

static void put_split(struct lull_json *j, const struct lull_why *why)
{
	static const char *const names[] = { "compute_ns", "exposed_collective_ns",
					     "exposed_copy_ns", "idle_ns" };
	const struct lull_subject *s = why->lead;

	lull_json_key(j, "device");
	lull_json_object(j);
	lull_json_key(j, "window_ns");
	lull_json_u64(j, s->window_ns);
	for (int i = 0; i < LULL_N_SPLITS; i++) {
		lull_json_key(j, names[i]);
		lull_json_u64(j, s->split_ns[i]);
	}
	lull_json_key(j, "costs_ns");
	lull_json_object(j);
	for (int i = 0; i < LULL_N_CAUSES; i++) {
		if (!s->cost_ns[i])
			continue;
		lull_json_key(j, lull_causes[i]->id);
		lull_json_u64(j, s->cost_ns[i]);
	}
	lull_json_end(j);
	lull_json_key(j, "kernels_ns");
	lull_json_object(j);
	for (int i = 0; i < LULL_N_KERNEL_CLASSES; i++) {
		lull_json_key(j, lull_kernel_class_name((enum lull_kernel_class)i));
		lull_json_u64(j, s->class_ns[i]);
	}
	lull_json_end(j);
	lull_json_end(j);
}

static void put_replay(struct lull_json *j, const struct lull_why *why)
{
	lull_json_key(j, "replay");
	if (!why->has_replay) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_fixed(j, "measured_ns", why->replay.measured_ns, 0);
	lull_json_key_fixed(j, "replayed_ns", why->replay.as_is_ns, 0);
	lull_json_key_fixed(j, "error", why->replay.error, 6);
	lull_json_key(j, "steps");
	lull_json_u64(j, why->replay.n_rounds);
	lull_json_key_text(j, "no_prediction", *why->no_prediction ? why->no_prediction : NULL);
	lull_json_end(j);
}

static void put_answers(struct lull_json *j, const struct lull_vec *answers)
{
	const struct lull_why_answer *a = answers->at;

	lull_json_key(j, "what_if");
	lull_json_array(j);
	for (size_t i = 0; i < answers->n; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "question", a[i].question);
		lull_why_put_prediction(j, &a[i].prediction, NULL);
		lull_json_end(j);
	}
	lull_json_end(j);
}

void lull_why_print_json(FILE *to, const struct lull_why *why, const struct lull_vec *answers,
			 const char *path)
{
	const struct lull_finding *first = lull_why_first(why), *all = why->findings.at;
	const char *const *missing = why->missing.at;
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key_text(&j, "file", path);
	lull_json_key(&j, "is_simulated");
	lull_json_bool(&j, why->is_simulated);
	lull_json_key_text(&j, "first", first ? lull_causes[first->cause]->id : NULL);
	lull_json_key(&j, "is_probable");
	lull_json_bool(&j, why->is_probable);
	lull_json_key_text(&j, "unsure", *why->unsure ? why->unsure : NULL);
	lull_json_key_text(&j, "settle", *why->settle ? why->settle : NULL);
	lull_json_key_text(&j, "cannot_tell", *why->cannot ? why->cannot : NULL);
	lull_json_key_text(&j, "guess", *why->guess ? why->guess : NULL);
	lull_json_key(&j, "missing");
	lull_json_array(&j);
	for (size_t i = 0; i < why->missing.n; i++)
		lull_json_text(&j, missing[i]);
	lull_json_end(&j);
	put_window(&j, why->window);
	put_steps(&j, why);
	put_split(&j, why);
	put_replay(&j, why);
	lull_json_key(&j, "findings");
	lull_json_array(&j);
	if (first)
		put_finding(&j, first);
	for (size_t i = 0; i < why->findings.n; i++) {
		if ((int)i != why->first)
			put_finding(&j, &all[i]);
	}
	lull_json_end(&j);
	lull_why_put_opportunities(&j, why);
	put_answers(&j, answers);
	lull_json_end(&j);
	fputc('\n', to);
}

/* ---- the schema ---- */

static const struct lull_property prediction[] = {
	{ "step_ns", "number", "the step after the fix", NULL },
	{ "low_ns", "number", "if the fix works well", NULL },
	{ "high_ns", "number", "if it works less well", NULL },
	{ "speedup", "number", "steps.unrecorded_ns over step_ns", NULL },
	{ "is_ceiling", "boolean", "step_ns takes all of the cause as gone", NULL },
	{ "assumes", "string|null", "what it assumes", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property location[] = {
	{ "file", "string|null", "source file", NULL },
	{ "line", "integer|null", "line in it", NULL },
	{ "function", "string|null", "innermost function of the program itself", NULL },
	{ "range", "string|null", "innermost named range", NULL },
	{ "what", "string|null", "innermost operator or call of the C library", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property evidence[] = {
	{ "text", "string", "one fact", NULL },
	{ "table", "string|null", "table of the report whose rows show it", NULL },
	{ "from_ns", "integer", "where to look, 0 if everywhere", NULL },
	{ "to_ns", "integer", "end of it", NULL },
	{ "rows", "integer", "how many, in the steady steps; 0 if not counted", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property findings[] = {
	{ "cause", "string", "id, as in lull-causes(7)", NULL },
	{ "title", "string", "a phrase", NULL },
	{ "cost_ns", "number", "of each step", NULL },
	{ "share", "number", "of the step", NULL },
	{ "gain_ns", "number", "predicted gain of the fix, per step", NULL },
	{ "confidence", "number",
	  "that this cause should come first: of answers with 0.8, about 8 of 10 should be right",
	  NULL },
	{ "location", "object", "where in the program", location },
	{ "evidence", "array", "the evidence", evidence },
	{ "fix", "string", "one thing to try", NULL },
	{ "prediction", "object|null", "null if none can be made", prediction },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property opportunities[] = {
	{ "opportunity", "string", "id, as in lull-causes(7)", NULL },
	{ "title", "string", "a phrase", NULL },
	{ "text", "string", "what was seen", NULL },
	{ "touched_ns", "number", "time of each step that it is about", NULL },
	{ "share", "number", "of the step", NULL },
	{ "gain_ns", "number", "predicted gain per step", NULL },
	{ "fix", "string", "one thing to try", NULL },
	{ "assumes", "string", "what the prediction assumes", NULL },
	{ "is_ceiling", "boolean", "the gain is an upper bound", NULL },
	{ "prediction", "object|null", "null if none can be made", prediction },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property longer[] = {
	{ "steps", "integer", "how many", NULL },
	{ "beyond_ns", "number", "of each step on average: what they take beyond the usual ones",
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property each[] = {
	{ "from_ns", "integer", "start of the step on the device", NULL },
	{ "to_ns", "integer", "its end", NULL },
	{ "causes", "object", "ns by cause", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property window[] = {
	{ "from_ns", "integer", "its start", NULL },
	{ "to_ns", "integer", "its end", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property kinds[] = {
	{ "steps", "integer", "steady steps of this kind", NULL },
	{ "launches", "number", "kernels, graphs, copies and memsets of one", NULL },
	{ "mean_ns", "number", "how long one takes on the device", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property steps[] = {
	{ "source", "string",
	  "none, step, range, hook, optimizer, period, forward, name, operator, wait or group",
	  NULL },
	{ "found", "string", "the same in words", NULL },
	{ "steady", "integer", "steps that count", NULL },
	{ "warm_up", "integer", "steps left out before them", NULL },
	{ "mean_ns", "number", "of the steady steps", NULL },
	{ "median_ns", "number", "of the steady steps", NULL },
	{ "unrecorded_ns", "number", "what a step takes without recording, estimated", NULL },
	{ "kinds", "array", "by what they launch, copy and wait for; the usual one first", kinds },
	{ "longer", "object|null", "few steps that are longer than the usual ones, as text has it",
	  longer },
	{ "each", "array", "the first 1000 steady steps", each },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property device[] = {
	{ "window_ns", "integer", "all steady steps; the four below add up to it", NULL },
	{ "compute_ns", "integer", "kernels and memsets", NULL },
	{ "exposed_collective_ns", "integer", "collectives without a kernel at the same time",
	  NULL },
	{ "exposed_copy_ns", "integer", "copies with nothing else at the same time", NULL },
	{ "idle_ns", "integer", "nothing", NULL },
	{ "costs_ns", "object", "ns by cause; adds up to the last three", NULL },
	{ "kernels_ns", "object", "ns by class of kernel", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property replay[] = {
	{ "measured_ns", "number", "the step of the replayed steps", NULL },
	{ "replayed_ns", "number", "the same, replayed unchanged", NULL },
	{ "error", "number", "replayed over measured, less 1", NULL },
	{ "steps", "integer", "how many were replayed", NULL },
	{ "no_prediction", "string|null", "why nothing is predicted", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property what_if[] = {
	{ "question", "string", "as given on the command line", NULL },
	{ "prediction", "object|null", "the answer", prediction },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "file", "string", "what was analysed", NULL },
	{ "is_simulated", "boolean", "no GPU did the work", NULL },
	{ "first", "string|null", "the cause to fix first; null if not known", NULL },
	{ "is_probable", "boolean", "the first cause is a guess", NULL },
	{ "unsure", "string|null", "why it is a guess; or why `guess` is one", NULL },
	{ "settle", "string|null", "the command whose recording would tell", NULL },
	{ "cannot_tell", "string|null", "why there is no first cause", NULL },
	{ "guess", "string|null", "then: what most of the GPU's time goes to", NULL },
	{ "missing", "array", "sources that would tell more", NULL },
	{ "window", "object|null", "the part of a long recording that was looked at; null if all",
	  window },
	{ "steps", "object", "the steps", steps },
	{ "device", "object", "the device's time in the steady steps; the parts do not overlap",
	  device },
	{ "replay", "object|null", "how well the recorded step could be replayed", replay },
	{ "findings", "array", "causes, the one to fix first at the start", findings },
	{ "opportunities", "array", "what would make a busy device faster, the largest gain first",
	  opportunities },
	{ "utilization", "string|null", "what the device's utilisation means, if it was recorded",
	  NULL },
	{ "what_if", "array", "answers to --what-if", what_if },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_why(struct lull_json *j)
{
	lull_schema_json_object(j, "lull why --format json", document);
}

void lull_why_print_schema(FILE *to)
{
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_schema_of_why(&j);
	fputc('\n', to);
}
