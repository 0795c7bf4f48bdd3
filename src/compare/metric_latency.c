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
	return lull_request_samples(to, r, value_of, err);
}

const struct lull_metric lull_metric_latency = {
	.name = "latency",
	.summary = "how long a request to a server takes",
	.kind = LULL_OUT_NS,
	.sample = sample,
	.each = "requests",
};
