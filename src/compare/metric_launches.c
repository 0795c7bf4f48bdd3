/*
 * launches: kernels and graphs that began in a step.
 */
#include "compare/metric.h"
#include "model/work.h"

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	struct lull_work_cursor c;
	struct lull_work work;

	(void)arg;
	(void)err;
	lull_work_begin(&c, r, LULL_WORK_COMPUTE, 0, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work)) {
		size_t ix = lull_metric_window(windows, work.start_ns);

		if (ix != SIZE_MAX)
			value[ix]++;
	}
	lull_work_end(&c);
	return LULL_OK;
}

const struct lull_metric lull_metric_launches = {
	.name = "launches",
	.summary = "kernels and graphs that started on a device in a step",
	.kind = LULL_OUT_INT,
	.is_means = true,
	.measure = measure,
};
