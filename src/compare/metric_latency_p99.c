/*
 * latency_p99: what 99 of 100 requests do not exceed, of each 100 requests that arrive after each
 * other.
 */
#include "base/sort.h"
#include "compare/metric.h"
#include "compare/request_values.h"
#include "request/summary.h"

/* Requests that have one 99th percentile. */
#define GROUP 100u

static u64 value_of(const struct lull_one_request *one)
{
	return lull_request_ns(one);
}

static int sample(struct lull_reader *r, struct lull_samples *to, struct lull_err *err)
{
	struct lull_vec values;
	u64 *at;
	int rc;

	lull_vec_init(&values, sizeof(u64));
	rc = lull_request_values(&values, r, value_of, err);
	at = values.at;
	if (!rc && values.n < GROUP)
		rc = lull_fail(err, LULL_E_NOT_FOUND,
			       "a 99th percentile needs %u requests, there are %zu", GROUP,
			       values.n);
	for (size_t i = 0; !rc && i + GROUP <= values.n; i += GROUP) {
		lull_sort_u64(at + i, GROUP);
		lull_samples_add(to, (f64)lull_quantile(at + i, GROUP, 0.99));
	}
	lull_vec_release(&values);
	return rc;
}

const struct lull_metric lull_metric_latency_p99 = {
	.name = "latency_p99",
	.summary = "the 99th percentile of each 100 requests",
	.kind = LULL_OUT_NS,
	.sample = sample,
	.each = "hundreds of requests",
};
