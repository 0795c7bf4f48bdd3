#include "compare/gate_int.h"

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

int lull_gate_sample(const struct lull_gate *gate, const struct lull_gate_check *check,
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
