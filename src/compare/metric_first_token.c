/*
 * first_token: how long a request waits for the first token of its answer.
 */
#include "compare/metric.h"
#include "compare/request_values.h"

static u64 value_of(const struct lull_one_request *one)
{
	return one->n_tokens ? one->first_token_ns - one->start_ns : UINT64_MAX;
}

static int sample(struct lull_reader *r, struct lull_samples *to, struct lull_err *err)
{
	size_t n = to->values.n;
	int rc = lull_request_samples(to, r, value_of, err);

	if (!rc && to->values.n == n)
		rc = lull_fail(
			err, LULL_E_NOT_FOUND,
			"no request has tokens; mark them with lull.token() or lull_token()");
	return rc;
}

const struct lull_metric lull_metric_first_token = {
	.name = "first_token",
	.summary = "how long a request waits for its first token",
	.kind = LULL_OUT_NS,
	.sample = sample,
	.each = "requests",
};
