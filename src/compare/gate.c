#include "compare/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "text/term.h"
#include "trace/issue.h"

#define DEFAULT_THRESHOLD 0.05

void lull_gate_init(struct lull_gate *gate)
{
	*gate = (struct lull_gate){ .threshold = DEFAULT_THRESHOLD, .why = LULL_STR_INIT };
	lull_vec_init(&gate->before, sizeof(struct lull_gate_run));
	lull_vec_init(&gate->after, sizeof(struct lull_gate_run));
	lull_vec_init(&gate->checks, sizeof(struct lull_gate_check));
}

static void release_side(struct lull_vec *side)
{
	struct lull_gate_run *runs = side->at;

	for (size_t i = 0; i < side->n; i++) {
		lull_windows_release(&runs[i].steps);
		lull_reader_close(runs[i].reader);
	}
	lull_vec_release(side);
}

void lull_gate_release(struct lull_gate *gate)
{
	struct lull_gate_check *checks = gate->checks.at;

	release_side(&gate->before);
	release_side(&gate->after);
	for (size_t i = 0; i < gate->checks.n; i++) {
		lull_samples_release(&checks[i].before);
		lull_samples_release(&checks[i].after);
	}
	lull_vec_release(&gate->checks);
	lull_str_release(&gate->why);
}

void lull_gate_add(struct lull_vec *side, const char *path, struct lull_reader *reader)
{
	struct lull_gate_run *run = lull_vec_push(side);

	run->path = path;
	run->reader = reader;
	lull_windows_init(&run->steps, reader);
}

void lull_gate_add_rank(struct lull_vec *side, const char *path, struct lull_reader *reader,
			u32 job)
{
	lull_gate_add(side, path, reader);
	((struct lull_gate_run *)lull_vec_get(side, side->n - 1))->job = job;
}

int lull_gate_watch(struct lull_gate *gate, const char *spec, struct lull_err *err)
{
	struct lull_gate_check check = { .spec = spec };

	if (lull_metric_find(spec, &check.metric, &check.arg, err))
		return err->code;
	lull_samples_init(&check.before);
	lull_samples_init(&check.after);
	*(struct lull_gate_check *)lull_vec_push(&gate->checks) = check;
	return LULL_OK;
}

/* What a query gives is a number like any other. */
static const struct lull_metric sql_metric = {
	.name = "sql",
	.arg = "NAME",
	.summary = "the result of a query",
	.kind = LULL_OUT_FLOAT,
};

void lull_gate_watch_sql(struct lull_gate *gate, const char *name, const char *sql)
{
	struct lull_gate_check check = { .spec = name, .metric = &sql_metric, .sql = sql };

	lull_samples_init(&check.before);
	lull_samples_init(&check.after);
	*(struct lull_gate_check *)lull_vec_push(&gate->checks) = check;
}

size_t lull_gate_n_steps(const struct lull_vec *side)
{
	const struct lull_gate_run *runs = side->at;
	size_t n = 0;

	for (size_t i = 0; i < side->n; i++)
		n += lull_windows_len(&runs[i].steps);
	return n;
}

/* ---- may they be compared ---- */

/* The program of the first process: its name without the folder, and a script's name. */
static const char *program_of(struct lull_reader *r)
{
	size_t n;
	const struct lull_process_row *rows = lull_reader_dim(r, LULL_TABLE_process, &n);
	const char *exe = n ? lull_reader_string(r, rows[0].exe, NULL) : "";
	const char *slash = strrchr(exe, '/');

	return slash ? slash + 1 : exe;
}

static const char *device_of(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *rows = lull_reader_dim(r, LULL_TABLE_device, &n);

	return n ? lull_reader_string(r, rows[0].name, NULL) : "";
}

/* Rows that were lost, so that counts and times of what is left are too small. */
static u64 n_lost(struct lull_reader *r, const char **what)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);
	u64 sum = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].severity >= LULL_SEVERITY_LOSS) {
			sum += rows[i].count;
			*what = lull_reader_string(r, rows[i].name, NULL);
		}
	return sum;
}

static bool is_whole(const struct lull_gate *gate, const struct lull_gate_run *run,
		     struct lull_str *why)
{
	const char *what = "";
	u64 lost = n_lost(run->reader, &what);

	if (!lull_reader_is_sealed(run->reader))
		lull_str_addf(why, "%s is truncated; lull recover completes it", run->path);
	else if (lull_reader_n_damaged(run->reader))
		lull_str_addf(why, "%s is damaged", run->path);
	else if (!lull_windows_len(&run->steps))
		lull_str_addf(why,
			      "%s has no steps to compare; mark them (lull_step(), an NVTX range "
			      "around each), or record more of them",
			      run->path);
	else if (lost && !gate->allows_losses)
		lull_str_addf(why, "%s lost %llu events (%s); record again, or use --allow-losses",
			      run->path, (unsigned long long)lost, what);
	return !why->len;
}

static bool is_same(const struct lull_gate *gate, const struct lull_gate_run *a,
		    const struct lull_gate_run *b, struct lull_str *why)
{
	if (!gate->allows_other_program &&
	    strcmp(program_of(a->reader), program_of(b->reader)) != 0)
		lull_str_addf(why, "%s ran '%s', %s ran '%s'; --any-program compares them anyway",
			      a->path, program_of(a->reader), b->path, program_of(b->reader));
	else if (!gate->allows_other_device &&
		 strcmp(device_of(a->reader), device_of(b->reader)) != 0)
		lull_str_addf(
			why,
			"%s was recorded on '%s', %s on '%s'; --any-device compares them anyway",
			a->path, device_of(a->reader), b->path, device_of(b->reader));
	return !why->len;
}

/* False, with the reason, if there is nothing to decide. */
static bool are_comparable(struct lull_gate *gate)
{
	const struct lull_vec *const sides[] = { &gate->before, &gate->after };
	const struct lull_gate_run *first = gate->before.at;

	for (size_t k = 0; k < LULL_COUNT_OF(sides); k++) {
		const struct lull_gate_run *runs = sides[k]->at;

		for (size_t i = 0; i < sides[k]->n; i++)
			if (!is_whole(gate, &runs[i], &gate->why) ||
			    !is_same(gate, first, &runs[i], &gate->why))
				return false;
	}
	return true;
}

/* ---- measure and decide ---- */

static int measure_run(const struct lull_gate *gate, const struct lull_gate_check *check,
		       const struct lull_gate_run *run, struct lull_samples *to,
		       struct lull_err *err)
{
	int rc;

	if (!check->sql)
		return lull_metric_sample(check->metric, check->arg, run->reader, &run->steps, to,
					  err);
	rc = gate->run_sql(run->reader, check->sql, to, err);
	lull_samples_end_run(to);
	return rc;
}

/* Of ranks that have different numbers of steps the last ones are compared. */
static void average(const struct lull_vec *ranks, struct lull_samples *to)
{
	const struct lull_samples *all = ranks->at;
	size_t n = SIZE_MAX;

	for (size_t i = 0; i < ranks->n; i++)
		n = all[i].values.n < n ? all[i].values.n : n;
	for (size_t k = 0; k < n && ranks->n; k++) {
		f64 sum = 0;

		for (size_t i = 0; i < ranks->n; i++)
			sum += ((const f64 *)all[i].values.at)[all[i].values.n - n + k];
		lull_samples_add(to, sum / (f64)ranks->n);
	}
	lull_samples_end_run(to);
}

/* All ranks of the job that begins with runs[0]; *n receives how many. */
static int measure_job(const struct lull_gate *gate, const struct lull_gate_check *check,
		       const struct lull_gate_run *runs, size_t *n, struct lull_samples *to,
		       struct lull_err *err)
{
	struct lull_samples *all;
	struct lull_vec ranks;
	int rc = LULL_OK;

	lull_vec_init(&ranks, sizeof(struct lull_samples));
	for (size_t i = 0; !rc && i < *n && runs[i].job == runs[0].job; i++) {
		struct lull_samples *own = lull_vec_push(&ranks);

		lull_samples_init(own);
		rc = measure_run(gate, check, &runs[i], own, err);
		if (rc)
			lull_err_wrap(err, "%s", runs[i].path);
	}
	*n = ranks.n;
	if (!rc)
		average(&ranks, to);
	all = ranks.at;
	for (size_t i = 0; i < ranks.n; i++)
		lull_samples_release(&all[i]);
	lull_vec_release(&ranks);
	return rc;
}

static int measure(const struct lull_gate *gate, const struct lull_gate_check *check,
		   const struct lull_vec *side, struct lull_samples *to, struct lull_err *err)
{
	const struct lull_gate_run *runs = side->at;

	for (size_t i = 0, n; i < side->n; i += n) {
		int rc;

		n = side->n - i;
		if (runs[i].job) {
			rc = measure_job(gate, check, &runs[i], &n, to, err);
			if (rc)
				return rc;
			continue;
		}
		n = 1;
		rc = measure_run(gate, check, &runs[i], to, err);
		if (rc)
			return lull_err_wrap(err, "%s", runs[i].path);
	}
	return LULL_OK;
}

/* What is not there on one side cannot be compared; anything else is the caller's mistake. */
static int decide(const struct lull_gate *gate, struct lull_gate_check *check, struct lull_err *err)
{
	const struct lull_decide_rule rule = { .threshold = gate->threshold,
					       .alpha = LULL_DECIDE_ALPHA,
					       .is_share = check->metric->is_share };
	struct lull_err missing = { LULL_OK, "" };
	int rc = measure(gate, check, &gate->before, &check->before, &missing);

	if (!rc)
		rc = measure(gate, check, &gate->after, &check->after, &missing);
	if (rc && rc != LULL_E_NOT_FOUND)
		return lull_fail(err, (enum lull_code)rc, "%s", missing.msg);
	if (rc) {
		check->decision = (struct lull_decision){ .verdict = LULL_NOT_COMPARABLE, .p = 1 };
		snprintf(check->decision.why, sizeof(check->decision.why), "%s", missing.msg);
		return LULL_OK;
	}
	lull_decide(&check->before, &check->after, &rule, &check->decision);
	return LULL_OK;
}

/* Which of two verdicts says more. */
static enum lull_verdict worse(enum lull_verdict a, enum lull_verdict b)
{
	static const int weight[] = { [LULL_PASS] = 0,
				      [LULL_INCONCLUSIVE] = 1,
				      [LULL_NOT_COMPARABLE] = 2,
				      [LULL_REGRESSED] = 3 };

	return weight[a] >= weight[b] ? a : b;
}

int lull_gate_run(struct lull_gate *gate, struct lull_err *err)
{
	struct lull_gate_check *checks = gate->checks.at;

	if (!are_comparable(gate)) {
		gate->verdict = LULL_NOT_COMPARABLE;
		return LULL_OK;
	}
	for (size_t i = 0; i < gate->checks.n; i++) {
		if (decide(gate, &checks[i], err))
			return err->code;
		gate->verdict = worse(gate->verdict, checks[i].decision.verdict);
	}
	return LULL_OK;
}

/* ---- words ---- */

void lull_gate_value(const struct lull_gate_check *check, f64 value, char *to, size_t cap_bytes)
{
	const char *text;
	struct lull_number number;

	switch (check->metric->kind) {
	case LULL_OUT_NS:
		number = lull_format_ns(lull_u64_of(round(value)));
		text = number.text;
		break;
	case LULL_OUT_BYTES:
		number = lull_format_bytes(lull_u64_of(round(value)));
		text = number.text;
		break;
	case LULL_OUT_PERCENT:
		snprintf(to, cap_bytes, "%.1f %%", 100 * value);
		return;
	default:
		snprintf(to, cap_bytes, "%.6g", value);
		return;
	}
	snprintf(to, cap_bytes, "%s", text);
}

void lull_gate_change(const struct lull_gate_check *check, struct lull_str *to)
{
	const struct lull_decision *d = &check->decision;
	const char *unit = check->metric->is_share ? "points" : "%";

	if (!d->has_change)
		lull_str_puts(to, "not compared");
	else if (d->low == 0 && d->high == 0)
		lull_str_puts(to, "the same");
	else if (d->low == d->high)
		lull_str_addf(to, "%+.1f %s", 100 * d->change, unit);
	else
		lull_str_addf(to, "%+.1f %s on average (%+.1f to %+.1f)", 100 * d->change, unit,
			      100 * d->low, 100 * d->high);
}

void lull_gate_sentence(const struct lull_gate_check *check, struct lull_str *to)
{
	const struct lull_decision *d = &check->decision;
	char before[48], after[48];

	if (d->verdict == LULL_NOT_COMPARABLE) {
		lull_str_addf(to, "%s: %s", check->spec, d->why);
		return;
	}
	lull_gate_value(check, d->before, before, sizeof(before));
	lull_gate_value(check, d->after, after, sizeof(after));
	lull_str_addf(to, "%s: %s, was %s%s: ", check->spec, after, before,
		      !d->has_change || d->low != d->high ? " (medians)" : "");
	lull_gate_change(check, to);
	if (d->verdict == LULL_INCONCLUSIVE)
		lull_str_addf(to, "; %s: needs %zu %s per side, there are %zu and %zu", d->why,
			      d->n_needed, d->by_run ? "runs" : "steps", d->n_before, d->n_after);
}
