/*
 * latency: how long a request to a server takes.
 */
#include "compare/metric.h"
#include "compare/request_values.h"

static u64 value_of(const struct lull_one_request *one)
{
	return lull_request_ns(one);
}

static int sample(struct lull_reader *r, struct lull_samples *to, struct lull_err *err)
{
	struct lull_vec values;
	const u64 *at;
	int rc;

	lull_vec_init(&values, sizeof(u64));
	rc = lull_request_values(&values, r, value_of, err);
	at = values.at;
	for (size_t i = 0; i < values.n; i++)
		lull_samples_add(to, (f64)at[i]);
	lull_vec_release(&values);
	return rc;
}

const struct lull_metric lull_metric_latency = {
	.name = "latency",
	.summary = "how long a request to a server takes",
	.kind = LULL_OUT_NS,
	.sample = sample,
	.each = "requests",
};
