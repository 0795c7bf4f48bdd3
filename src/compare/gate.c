#include "compare/gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/bound.h"
#include "compare/gate_int.h"

#define DEFAULT_THRESHOLD 0.05

void lull_gate_init(struct lull_gate *gate)
{
	*gate = (struct lull_gate){ .threshold = DEFAULT_THRESHOLD,
				    .why = LULL_STR_INIT,
				    .note = LULL_STR_INIT };
	lull_vec_init(&gate->before, sizeof(struct lull_gate_run));
	lull_vec_init(&gate->after, sizeof(struct lull_gate_run));
	lull_vec_init(&gate->checks, sizeof(struct lull_gate_check));
	lull_vec_init(&gate->queries, sizeof(struct lull_gate_named));
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
		free(checks[i].owned);
	}
	lull_vec_release(&gate->checks);
	lull_vec_release(&gate->queries);
	lull_str_release(&gate->why);
	lull_str_release(&gate->note);
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

/* What a query gives is a number like any other. */
static const struct lull_metric sql_metric = {
	.name = "sql",
	.arg = "NAME",
	.summary = "the result of a query",
	.kind = LULL_OUT_FLOAT,
};

void lull_gate_name_query(struct lull_gate *gate, const char *name, const char *sql)
{
	*(struct lull_gate_named *)lull_vec_push(&gate->queries) =
		(struct lull_gate_named){ name, sql };
}

/* A check of a spec: the name of a query, or a metric. */
static int find(const struct lull_gate *gate, const char *spec, struct lull_gate_check *check,
		struct lull_err *err)
{
	const struct lull_gate_named *queries = gate->queries.at;

	*check = (struct lull_gate_check){ .spec = spec };
	for (size_t i = 0; i < gate->queries.n; i++)
		if (strcmp(queries[i].name, spec) == 0) {
			check->metric = &sql_metric;
			check->sql = queries[i].sql;
			return LULL_OK;
		}
	return lull_metric_find(spec, &check->metric, &check->arg, err);
}

static void add_check(struct lull_gate *gate, struct lull_gate_check check)
{
	lull_samples_init(&check.before);
	lull_samples_init(&check.after);
	*(struct lull_gate_check *)lull_vec_push(&gate->checks) = check;
}

int lull_gate_watch(struct lull_gate *gate, const char *spec, struct lull_err *err)
{
	struct lull_gate_check check;

	if (find(gate, spec, &check, err))
		return err->code;
	add_check(gate, check);
	return LULL_OK;
}

int lull_gate_bound(struct lull_gate *gate, const char *text, enum lull_gate_weight weight,
		    struct lull_err *err)
{
	struct lull_bound_text parts;
	struct lull_gate_check check;
	char *spec;

	if (lull_bound_split(text, &parts, err))
		return err->code;
	spec = lull_strndup(text + parts.spec_off, parts.spec_len);
	if (find(gate, spec, &check, err)) {
		lull_err_wrap(err, "'%s'", text);
	} else if (!lull_bound_limit(&parts, check.metric, &check.limit, err)) {
		check.kind = LULL_GATE_BOUND;
		check.spec = text;
		check.owned = spec;
		check.is_inclusive = parts.is_inclusive;
		check.weight = weight;
		add_check(gate, check);
		return LULL_OK;
	}
	free(spec);
	return err->code;
}

void lull_gate_speedup(struct lull_gate *gate, const char *text, f64 factor)
{
	struct lull_gate_check check = { .kind = LULL_GATE_SPEEDUP,
					 .spec = text,
					 .metric = &lull_metric_step_time,
					 .limit = factor };

	add_check(gate, check);
}

int lull_gate_warn(struct lull_gate *gate, const char *spec, struct lull_err *err)
{
	struct lull_gate_check *checks = gate->checks.at, check;
	bool is_there = false;

	if (find(gate, spec, &check, err))
		return err->code;
	for (size_t i = 0; i < gate->checks.n; i++)
		if (checks[i].kind == LULL_GATE_CHANGE && checks[i].metric == check.metric &&
		    checks[i].sql == check.sql &&
		    (!check.arg || strcmp(check.arg, checks[i].arg) == 0)) {
			checks[i].weight = LULL_GATE_WARNS;
			is_there = true;
		}
	check.weight = LULL_GATE_WARNS;
	if (!is_there)
		add_check(gate, check);
	return LULL_OK;
}

int lull_gate_measure(const struct lull_gate *gate, const char *spec,
		      const struct lull_metric **metric, struct lull_samples *to,
		      struct lull_err *err)
{
	struct lull_gate_check check;

	if (find(gate, spec, &check, err))
		return err->code;
	*metric = check.metric;
	return lull_gate_sample(gate, &check, &gate->after, to, err);
}

size_t lull_gate_n_steps(const struct lull_vec *side)
{
	const struct lull_gate_run *runs = side->at;
	size_t n = 0;

	for (size_t i = 0; i < side->n; i++)
		n += lull_windows_len(&runs[i].steps);
	return n;
}

/* Which of two verdicts says more. */
static enum lull_verdict worse(enum lull_verdict a, enum lull_verdict b)
{
	static const int weight[] = { [LULL_PASS] = 0,
				      [LULL_INCONCLUSIVE] = 1,
				      [LULL_NOT_COMPARABLE] = 2,
				      [LULL_FAILED] = 3,
				      [LULL_REGRESSED] = 4 };

	return weight[a] >= weight[b] ? a : b;
}

/*
 * Whether a step takes less time than before: by more than noise (1 false alarm in 20), and by as
 * much as would be a regression the other way round.
 */
static int step_is_faster(const struct lull_gate *gate, bool *is, struct lull_err *err)
{
	struct lull_gate_check step = { .spec = "step_time", .metric = &lull_metric_step_time };
	int rc;

	lull_samples_init(&step.before);
	lull_samples_init(&step.after);
	rc = lull_gate_judge(gate, &step, err);
	*is = !rc && step.decision.has_change && step.decision.high < 0 &&
	      -step.decision.change >= LULL_DECIDE_LEAST_SHIFT * gate->threshold;
	lull_samples_release(&step.before);
	lull_samples_release(&step.after);
	return rc;
}

/* More launches or idle time are no regression of a step that takes less time than before. */
static int weigh(const struct lull_gate *gate, struct lull_gate_check *checks, struct lull_err *err)
{
	bool is_asked = false, is_faster = false;

	for (size_t i = 0; i < gate->checks.n; i++) {
		if (checks[i].kind != LULL_GATE_CHANGE || !checks[i].metric->is_means ||
		    checks[i].weight != LULL_GATE_DECIDES ||
		    checks[i].decision.verdict != LULL_REGRESSED)
			continue;
		if (!is_asked && step_is_faster(gate, &is_faster, err))
			return err->code;
		is_asked = true;
		if (is_faster)
			checks[i].weight = LULL_GATE_REMARK;
	}
	return LULL_OK;
}

int lull_gate_run(struct lull_gate *gate, struct lull_err *err)
{
	struct lull_gate_check *checks = gate->checks.at;

	if (!lull_gate_may_compare(gate)) {
		gate->verdict = LULL_NOT_COMPARABLE;
		return LULL_OK;
	}
	for (size_t i = 0; i < gate->checks.n; i++)
		if (lull_gate_judge(gate, &checks[i], err))
			return err->code;
	if (weigh(gate, checks, err))
		return err->code;
	for (size_t i = 0; i < gate->checks.n; i++)
		gate->verdict = worse(gate->verdict, lull_gate_counted(&checks[i]));
	return LULL_OK;
}
