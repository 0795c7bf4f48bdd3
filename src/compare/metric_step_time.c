/*
 * step_time: how long a step takes.
 */
#include "compare/metric.h"
#include "model/span.h"

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	const struct lull_span *at = windows->at;

	(void)r;
	(void)arg;
	(void)err;
	for (size_t i = 0; i < windows->n; i++)
		value[i] = (f64)(at[i].to_ns - at[i].from_ns);
	return LULL_OK;
}

const struct lull_metric lull_metric_step_time = {
	.name = "step_time",
	.alias = "step",
	.summary = "how long a step takes",
	.kind = LULL_OUT_NS,
	.measure = measure,
};
