/*
 * lull diff - did the bottleneck move: two reports, before and after a change.
 */
#include "cmd/cmd.h"

#include <math.h>
#include <stdio.h>

#include "base/convert.h"
#include "text/json.h"
#include "text/opt.h"
#include "text/out.h"
#include "text/term.h"
#include "cause/why.h"
#include "cmd/diff_json.h"
#include "cmd/diff_profiled.h"
#include "cmd/diff_requests.h"
#include "cmd/job/job_diff.h"
#include "cmd/losses.h"
#include "cmd/schema_json.h"
#include "compare/cause_change.h"
#include "compare/decide.h"
#include "compare/diff.h"
#include "compare/metric.h"
#include "compare/windows.h"
#include "import/import.h"
#include "job/job.h"
#include "model/span.h"
#include "report/step_window.h"

/* Rows of each table unless --top says otherwise. */
#define DEFAULT_TOP 8

struct side {
	const char *path;
	struct lull_reader *reader;
	struct lull_windows steps;
	struct lull_why why;
	bool has_why;
};

struct diff {
	struct side side[2];
	struct lull_step_option asked;
	u64 top;
	int format;
	bool has_all;		/* also what did not change */
	bool is_per_step;	/* both sides have steps */
	struct lull_vec parts;	/* struct lull_diff, one for each kind */
	struct lull_vec causes; /* struct lull_cause_change */
	struct lull_decision step_time;
	struct lull_decision idle;
	bool has_idle;
	struct lull_diff_profiled profiled;
	struct lull_diff_requests requests;
};

static const struct lull_out_column columns[] = {
	{ .name = "Change", .kind = LULL_OUT_TEXT },
	{ .name = "Before", .kind = LULL_OUT_FLOAT, .decimals = 1 },
	{ .name = "After", .kind = LULL_OUT_FLOAT, .decimals = 1 },
	{ .name = "Time Before", .kind = LULL_OUT_NS, .decimals = 1 },
	{ .name = "Time After", .kind = LULL_OUT_NS, .decimals = 1 },
	{ .name = "Difference", .kind = LULL_OUT_NS, .decimals = 1 },
	{ .name = "Bytes Before", .kind = LULL_OUT_BYTES, .is_spare = true },
	{ .name = "Bytes After", .kind = LULL_OUT_BYTES, .is_spare = true },
	{ .name = "Name", .kind = LULL_OUT_TEXT },
};

/* ---- collecting ---- */

/* Which of the spans lie in the window, edges included. */
static void keep_spans(struct lull_vec *spans, const struct lull_vec *host, struct lull_span window)
{
	const struct lull_span *marks = host->at;
	struct lull_span *at = spans->at;
	size_t n_kept = 0;

	for (size_t i = 0; i < spans->n; i++) {
		if (lull_span_holds(window, marks[i].from_ns, marks[i].to_ns - marks[i].from_ns))
			at[n_kept++] = at[i];
	}
	spans->n = n_kept;
}

/* Only the steps that are asked for; those that are compared are steady ones already. */
static int keep_steps(struct side *side, const struct lull_step_option *asked, struct lull_err *err)
{
	struct lull_step_window window;

	if (!lull_step_option_given(asked))
		return LULL_OK;
	if (lull_step_window_find(&window, asked, side->reader, err))
		return lull_err_wrap(err, "%s", side->path);
	keep_spans(&side->steps.device, &side->steps.host, window.span);
	keep_spans(&side->steps.host, &side->steps.host, window.span);
	if (!lull_windows_len(&side->steps))
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "%s: only warm-up is in these steps, which is not compared",
				 side->path);
	lull_step_window_say(&window, side->path);
	return LULL_OK;
}

static int open_side(struct side *side, const char *path, const struct lull_step_option *asked,
		     struct lull_err *err)
{
	struct lull_err ignored;

	side->path = path;
	if (lull_import_open(path, &side->reader, err))
		return err->code;
	lull_losses_warn(side->reader, path);
	/* A report without work of a device has no causes, and is still compared. */
	side->has_why = lull_why_run(&side->why, side->reader, NULL, &ignored) == LULL_OK;
	lull_windows_init_why(&side->steps, side->reader, side->has_why ? &side->why : NULL);
	return keep_steps(side, asked, err);
}

/* A metric on both sides; false if one has it not. */
static bool decide(struct diff *d, const char *spec, struct lull_decision *to)
{
	struct lull_samples samples[2];
	struct lull_decide_rule rule = { .threshold = 0.05, .alpha = LULL_DECIDE_ALPHA };
	const struct lull_metric *metric;
	struct lull_err ignored;
	const char *arg;
	int rc = lull_metric_find(spec, &metric, &arg, &ignored);

	for (int i = 0; i < 2; i++) {
		lull_samples_init(&samples[i]);
		if (!rc)
			rc = lull_metric_sample(metric, arg, d->side[i].reader, &d->side[i].steps,
						&samples[i], &ignored);
	}
	rule.is_share = metric && metric->is_share;
	if (!rc)
		lull_decide(&samples[0], &samples[1], &rule, to);
	lull_samples_release(&samples[0]);
	lull_samples_release(&samples[1]);
	return !rc && to->verdict != LULL_NOT_COMPARABLE;
}

static void collect(struct diff *d)
{
	d->is_per_step = lull_windows_len(&d->side[0].steps) && lull_windows_len(&d->side[1].steps);
	for (const struct lull_diff_kind *const *kind = lull_diff_kinds; *kind; kind++) {
		struct lull_diff *part = lull_vec_push(&d->parts);

		lull_diff_init(part, *kind);
		for (int i = 0; i < 2; i++)
			lull_diff_add(part, d->side[i].reader, i,
				      d->is_per_step ? &d->side[i].steps : NULL);
		lull_diff_finish(part,
				 d->is_per_step ? (f64)lull_windows_len(&d->side[0].steps) : 1,
				 d->is_per_step ? (f64)lull_windows_len(&d->side[1].steps) : 1);
	}
	lull_cause_changes(d->side[0].has_why ? &d->side[0].why : NULL,
			   d->side[1].has_why ? &d->side[1].why : NULL, &d->causes);
	lull_diff_profiled_init(&d->profiled, d->side[0].reader, d->side[1].reader);
	lull_diff_requests_init(&d->requests, d->side[0].reader, d->side[1].reader);
	if (d->is_per_step) {
		decide(d, "step_time", &d->step_time);
		d->has_idle = decide(d, "idle_share", &d->idle);
	}
}

/* ---- for people ---- */

/* Long steps that come now and then, such as those that write a checkpoint. */
static void print_tail(const struct lull_decision *step)
{
	f64 times = step->mean_after / step->mean_before;
	struct lull_str text = LULL_STR_INIT;

	if (!lull_decide_is_tail(step))
		return;
	lull_str_addf(&text, "All steps together: %s a step before, %s after (means), %.2f x %s",
		      lull_format_ns(lull_u64_of(step->mean_before)).text,
		      lull_format_ns(lull_u64_of(step->mean_after)).text,
		      times > 1 ? times : 1 / times, times > 1 ? "slower" : "faster");
	lull_str_puts(&text, ": here long steps count");
	lull_term_line(stdout, lull_str_text(&text), 0);
	lull_str_release(&text);
}

static void print_steps(const struct diff *d)
{
	const struct lull_decision *step = &d->step_time;
	struct lull_str text = LULL_STR_INIT;

	if (!d->is_per_step) {
		printf("No steps on both sides: whole recordings are compared.\n");
		return;
	}
	lull_str_addf(&text, "Step: %s before, %s after (medians); ",
		      lull_format_ns(lull_u64_of(step->before)).text,
		      lull_format_ns(lull_u64_of(step->after)).text);
	if (step->n_needed && step->verdict == LULL_INCONCLUSIVE)
		lull_str_addf(&text, "%s (%s and %s steps, %s would tell)", step->why,
			      lull_format_grouped((i64)step->n_before).text,
			      lull_format_grouped((i64)step->n_after).text,
			      lull_format_grouped((i64)step->n_needed).text);
	else if (!step->has_change)
		lull_str_puts(&text, "not compared");
	else
		lull_decide_say(step, &text);
	lull_term_line(stdout, lull_str_text(&text), 0);
	lull_str_release(&text);
	print_tail(step);
	if (d->has_idle)
		printf("GPU idle: %.1f %% of the median step before, %.1f %% after\n",
		       100 * d->idle.before, 100 * d->idle.after);
}

/* The first cause, or NULL if it is not known. */
static const char *first_cause(const struct side *side)
{
	const struct lull_finding *first = side->has_why ? lull_why_first(&side->why) : NULL;

	return first ? lull_causes[first->cause]->id : NULL;
}

/* Where the first cause does not have most of the time: which one has. */
static void print_most(const struct side *side, const char *when)
{
	const struct lull_finding *first = lull_why_first(&side->why);
	const struct lull_finding *most = lull_why_most(&side->why);

	if (most)
		printf("%s, %s has more time: %s of each step, %s has %s.\n", when,
		       lull_causes[most->cause]->id, lull_why_time(most->cost_ns).text,
		       lull_causes[first->cause]->id, lull_why_time(first->cost_ns).text);
}

static void print_verdict(const struct diff *d)
{
	const char *before = first_cause(&d->side[0]), *after = first_cause(&d->side[1]);
	const char *what = "The bottleneck";

	if (!d->side[0].has_why || !d->side[1].has_why)
		return;
	if (lull_why_most(&d->side[0].why) || lull_why_most(&d->side[1].why))
		what = "What to fix first";
	if (before && after && before != after)
		printf("%s moved from %s to %s.\n", what, before, after);
	else if (before && after)
		printf("%s is still %s.\n", what, after);
	else if (before)
		printf("%s was %s; what it is now is not known: %s\n", what, before,
		       d->side[1].why.cannot);
	else
		printf("What the bottleneck was is not known: %s\n", d->side[0].why.cannot);
	print_most(&d->side[0], "Before");
	print_most(&d->side[1], "After");
}

/* "-31.2 ms and -29.5 ms"; nothing where there are too few steps to tell. */
static void put_interval(struct lull_out *out, const struct lull_cause_change *c)
{
	struct lull_str text = LULL_STR_INIT;
	const f64 ends[2] = { c->low_ns, c->high_ns };

	for (int i = 0; i < 2 && c->has_interval; i++)
		lull_str_addf(&text, "%s%s%s", i ? " and " : "", ends[i] < 0 ? "-" : "",
			      lull_format_ns(lull_u64_of(fabs(ends[i]))).text);
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&text);
}

static int print_causes(const struct diff *d, struct lull_err *err)
{
	static const struct lull_out_column cause_columns[] = {
		{ .name = "Cause", .kind = LULL_OUT_TEXT },
		{ .name = "Before", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "After", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "Difference", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "Between", .kind = LULL_OUT_TEXT },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const struct lull_cause_change *c = d->causes.at;
	struct lull_out out;
	int rc = LULL_OK;

	lull_out_init(&out, cause_columns, LULL_COUNT_OF(cause_columns));
	for (size_t i = 0; i < d->causes.n; i++) {
		lull_out_row(&out);
		lull_out_text(&out, lull_causes[c[i].cause]->id);
		lull_out_f64(&out, c[i].cost_ns[0]);
		lull_out_f64(&out, c[i].cost_ns[1]);
		lull_out_f64(&out, c[i].cost_ns[1] - c[i].cost_ns[0]);
		put_interval(&out, &c[i]);
	}
	options.is_human = true;
	options.sort_ix = 1;
	if (lull_out_len(&out)) {
		printf("\nTime without compute by cause, per step%s:\n",
		       d->asked.steps ? " (of all steady steps)" : "");
		rc = lull_out_write(&out, &options, stdout, err);
	}
	lull_out_release(&out);
	return rc;
}

static void put_row(struct lull_out *out, const struct lull_diff *part,
		    const struct lull_diff_item *item)
{
	lull_out_row(out);
	lull_out_text(out, lull_diff_state(item));
	lull_out_f64(out, item->n[0]);
	lull_out_f64(out, item->n[1]);
	lull_out_f64(out, item->total_ns[0]);
	lull_out_f64(out, item->total_ns[1]);
	lull_out_f64(out, item->total_ns[1] - item->total_ns[0]);
	if (part->kind->has_bytes) {
		lull_out_i64(out, lull_i64_of(item->size_bytes[0]));
		lull_out_i64(out, lull_i64_of(item->size_bytes[1]));
	}
	lull_out_text(out, lull_diff_name(part, item));
}

static bool is_shown(const struct diff *d, const struct lull_diff_item *item)
{
	return d->has_all || *lull_diff_state(item) != 's';
}

static int print_part(const struct diff *d, const struct lull_diff *part, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out_column shown[LULL_COUNT_OF(columns)];
	const struct lull_diff_item *items = part->items.at;
	struct lull_out out;
	size_t n = 0;
	int rc = LULL_OK;

	for (size_t i = 0; i < LULL_COUNT_OF(columns); i++)
		if (part->kind->has_bytes || columns[i].kind != LULL_OUT_BYTES)
			shown[n++] = columns[i];
	shown[n - 1].is_kernel = !strcmp(part->kind->name, "kernels");
	lull_out_init(&out, shown, n);
	for (size_t i = 0; i < part->items.n; i++)
		if (is_shown(d, &items[i]))
			put_row(&out, part, &items[i]);
	options.is_human = true;
	options.top = d->top;
	if (lull_out_len(&out)) {
		printf("\n%s, %s:\n", part->kind->title,
		       d->is_per_step ? "per step" : "whole recordings");
		rc = lull_out_write(&out, &options, stdout, err);
	}
	lull_out_release(&out);
	return rc;
}

static int print_text(const struct diff *d, struct lull_err *err)
{
	const struct lull_diff *parts = d->parts.at;

	print_verdict(d);
	print_steps(d);
	if (lull_diff_requests_print(&d->requests, err) || print_causes(d, err))
		return err->code;
	for (size_t i = 0; i < d->parts.n; i++)
		if (print_part(d, &parts[i], err))
			return err->code;
	lull_diff_profiled_print(&d->profiled, d->top);
	return LULL_OK;
}

/* ---- for scripts ---- */

static void put_pair(struct lull_json *j, const char *key, const f64 pair[2])
{
	lull_json_key(j, key);
	lull_json_array(j);
	lull_json_f64(j, pair[0]);
	lull_json_f64(j, pair[1]);
	lull_json_end(j);
}

static void put_decision(struct lull_json *j, const char *key, const struct lull_decision *d)
{
	lull_json_key(j, key);
	lull_json_object(j);
	put_pair(j, "value", (const f64[2]){ d->before, d->after });
	put_pair(j, "mean", (const f64[2]){ d->mean_before, d->mean_after });
	lull_json_key(j, "change");
	lull_json_f64(j, d->has_change ? d->change : NAN);
	if (d->has_change)
		put_pair(j, "interval", (const f64[2]){ d->low, d->high });
	lull_json_key(j, "is_certain");
	lull_json_bool(j, d->verdict == LULL_PASS || d->verdict == LULL_REGRESSED);
	lull_json_end(j);
}

static void put_part(struct lull_json *j, const struct diff *d, const struct lull_diff *part)
{
	const struct lull_diff_item *items = part->items.at;
	size_t n = 0;

	lull_json_key(j, part->kind->name);
	lull_json_array(j);
	for (size_t i = 0; i < part->items.n && (!d->top || n < d->top); i++) {
		if (!is_shown(d, &items[i]))
			continue;
		n++;
		lull_json_object(j);
		lull_json_key(j, "name");
		lull_json_text(j, lull_diff_name(part, &items[i]));
		lull_json_key(j, "change");
		lull_json_text(j, lull_diff_state(&items[i]));
		put_pair(j, "n", items[i].n);
		put_pair(j, "time_ns", items[i].total_ns);
		if (part->kind->has_bytes)
			put_pair(j, "bytes", items[i].size_bytes);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_causes(struct lull_json *j, const struct diff *d)
{
	const struct lull_cause_change *c = d->causes.at;

	lull_json_key(j, "first_cause");
	lull_json_array(j);
	lull_json_text(j, first_cause(&d->side[0]));
	lull_json_text(j, first_cause(&d->side[1]));
	lull_json_end(j);
	lull_json_key(j, "causes");
	lull_json_array(j);
	for (size_t i = 0; i < d->causes.n; i++) {
		lull_json_object(j);
		lull_json_key(j, "cause");
		lull_json_text(j, lull_causes[c[i].cause]->id);
		put_pair(j, "cost_ns", c[i].cost_ns);
		if (c[i].has_interval)
			put_pair(j, "interval_ns", (const f64[2]){ c[i].low_ns, c[i].high_ns });
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void print_json(const struct diff *d, FILE *to)
{
	const struct lull_diff *parts = d->parts.at;
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key(&j, "before");
	lull_json_text(&j, d->side[0].path);
	lull_json_key(&j, "after");
	lull_json_text(&j, d->side[1].path);
	lull_json_key(&j, "is_per_step");
	lull_json_bool(&j, d->is_per_step);
	put_pair(&j, "steps",
		 (const f64[2]){ (f64)lull_windows_len(&d->side[0].steps),
				 (f64)lull_windows_len(&d->side[1].steps) });
	if (d->is_per_step)
		put_decision(&j, "step_time_ns", &d->step_time);
	if (d->has_idle)
		put_decision(&j, "idle_share", &d->idle);
	put_causes(&j, d);
	for (size_t i = 0; i < d->parts.n; i++)
		put_part(&j, d, &parts[i]);
	lull_diff_profiled_json(&d->profiled, &j);
	lull_diff_requests_json(&d->requests, &j);
	lull_json_end(&j);
	putc('\n', to);
}

static const struct lull_property decision[] = {
	{ "value", "array", "median before and after", NULL },
	{ "mean", "array", "of all steps before and after, long ones too", NULL },
	{ "change", "number",
	  "of the geometric mean, in which single long steps have little weight, as a share of it "
	  "before; of shares: difference; null with few steps",
	  NULL },
	{ "interval", "array", "90 % interval of the change; missing with few steps", NULL },
	{ "is_certain", "boolean", "whether there were enough steps to tell", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property causes[] = {
	{ "cause", "string", "as in lull-causes(7)", NULL },
	{ "cost_ns", "array", "of a step, before and after", NULL },
	{ "interval_ns", "array", "90 % interval of the difference; missing with few steps", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property items[] = {
	{ "name", "string", "what", NULL },
	{ "change", "string", "appeared, vanished, changed or same", NULL },
	{ "n", "array", "how many, before and after", NULL },
	{ "time_ns", "array", "how long in all, before and after", NULL },
	{ "bytes", "array", "how much, before and after; copies only", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property profiled[] = {
	{ "name", "string", "kernel", NULL },
	{ "was", "string|null", "what it was called before; null if the same", NULL },
	{ "n", "array", "launches whose counters were read, before and after", NULL },
	{ "time_ns", "array", "mean of a launch, before and after", NULL },
	{ "verdict", "array", "of lull kernel, before and after; null if missing", NULL },
	{ "why", "string", "how much faster and what explains it", NULL },
	{ "stalls", "object", "shares of the warps' time by reason, before and after", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property requests[] = {
	{ "n", "array", "requests that were answered, before and after", NULL },
	{ "latency_p50_ns", "array", "median latency", NULL },
	{ "latency_p90_ns", "array", "90th percentile", NULL },
	{ "latency_p99_ns", "array", "99th percentile", NULL },
	{ "latency_mean_ns", "array", "average", NULL },
	{ "first_token_p50_ns", "array", "median time to the first token, if there are tokens",
	  NULL },
	{ "parts", "object", "what the average goes to, by the words of lull requests", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "before", "string", "the first report", NULL },
	{ "after", "string", "the second report", NULL },
	{ "is_per_step", "boolean", "numbers are per step; else of whole recordings", NULL },
	{ "steps", "array", "steps before and after", NULL },
	{ "step_time_ns", "object", "if both have steps", decision },
	{ "idle_share", "object", "if both have work of a device", decision },
	{ "first_cause", "array", "the bottleneck before and after; null if not known", NULL },
	{ "causes", "array", "what the idle time is spent on", causes },
	{ "kernels", "array", "by name", items },
	{ "copies", "array", "by direction and memory", items },
	{ "calls", "array", "CUDA calls by function", items },
	{ "ranges", "array", "by name", items },
	{ "ops", "array", "operators by name", items },
	{ "oscalls", "array", "C library calls by function", items },
	{ "profiled", "array",
	  "kernels whose counters were read on both sides, with values by the keys of lull kernel",
	  profiled },
	{ "requests", "object", "if both have requests of a server; before and after", requests },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_diff(struct lull_json *j)
{
	lull_schema_json_object(j, "lull diff --format json", document);
}

static int run(struct diff *d, const char *const words[2], FILE *to, struct lull_err *err)
{
	for (int i = 0; i < 2; i++)
		if (open_side(&d->side[i], words[i], &d->asked, err))
			return err->code;
	collect(d);
	if (d->format) {
		print_json(d, to);
		return LULL_OK;
	}
	return print_text(d, err);
}

static void release(struct diff *d)
{
	struct lull_diff *parts = d->parts.at;

	for (size_t i = 0; i < d->parts.n; i++)
		lull_diff_release(&parts[i]);
	lull_vec_release(&d->parts);
	lull_vec_release(&d->causes);
	if (d->side[1].reader)
		lull_diff_profiled_release(&d->profiled);
	lull_diff_requests_release(&d->requests);
	for (int i = 0; i < 2; i++) {
		if (d->side[i].has_why)
			lull_why_release(&d->side[i].why);
		lull_windows_release(&d->side[i].steps);
		lull_losses_close(d->side[i].reader, d->side[i].path);
	}
}

int lull_diff_json(const char *before, const char *after, FILE *to, struct lull_err *err)
{
	struct diff d = { .format = 1 };
	int rc;

	lull_vec_init(&d.parts, sizeof(struct lull_diff));
	lull_vec_init(&d.causes, sizeof(struct lull_cause_change));
	rc = run(&d, (const char *const[]){ before, after }, to, err);
	release(&d);
	return rc;
}

int cmd_diff(int argc, char **argv, struct lull_err *err)
{
	static const char *const formats[] = { "text", "json", NULL };
	struct diff d = { .top = DEFAULT_TOP };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull diff [OPTIONS] BEFORE AFTER",
			  "Say what changed between two reports, or two folders of rank reports: "
			  "the step, its idle time and the "
			  "causes of it, kernels, copies, calls, ranges."),
		OPT_U64(0, "top", "N", &d.top, "rows of each table, 0 for all (default: 8)"),
		OPT_FLAG('a', "all", &d.has_all, "also show what did not change"),
		OPT_ENUM('f', "format", &d.format, formats, "format of the answer"),
		LULL_STEP_OPTIONS(&d.asked),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), rc;

	if (first < 0)
		return first;
	if (argc - first != 2)
		return lull_fail(err, LULL_E_USAGE,
				 "give two reports, such as lull diff before.lull after.lull");
	if (lull_job_is_folder(argv[first]) != lull_job_is_folder(argv[first + 1]))
		return lull_fail(err, LULL_E_USAGE,
				 "a report cannot be compared with a folder of rank reports; give "
				 "two reports or two folders");
	if (lull_step_option_check(&d.asked, err))
		return err->code;
	if (lull_job_is_folder(argv[first]) && lull_step_option_given(&d.asked))
		return lull_fail(err, LULL_E_USAGE,
				 "--steps and --steady are for reports, not for folders of rank "
				 "reports");
	if (lull_job_is_folder(argv[first]))
		return lull_job_diff(argv[first], argv[first + 1], d.format != 0, err);
	lull_vec_init(&d.parts, sizeof(struct lull_diff));
	lull_vec_init(&d.causes, sizeof(struct lull_cause_change));
	rc = run(&d, (const char *const[]){ argv[first], argv[first + 1] }, stdout, err);
	release(&d);
	return rc;
}
