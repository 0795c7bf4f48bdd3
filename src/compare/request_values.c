#include "compare/request_values.h"

int lull_request_values(struct lull_vec *values, struct lull_reader *r, lull_request_value *value,
			struct lull_err *err)
{
	const struct lull_one_request *all;
	struct lull_requests q;
	int rc = lull_requests_init(&q, r, LULL_SPAN_ALL, 0, err);

	if (!rc)
		rc = lull_requests_keep_answered(&q, err);
	all = q.all.at;
	for (size_t i = 0; !rc && i < q.all.n; i++) {
		u64 ns = value(&all[i]);

		if (ns != UINT64_MAX)
			*(u64 *)lull_vec_push(values) = ns;
	}
	lull_requests_release(&q);
	return rc;
}

int lull_request_samples(struct lull_samples *to, struct lull_reader *r, lull_request_value *value,
			 struct lull_err *err)
{
	struct lull_vec values;
	const u64 *at;
	int rc;

	lull_vec_init(&values, sizeof(u64));
	rc = lull_request_values(&values, r, value, err);
	at = values.at;
	for (size_t i = 0; i < values.n; i++)
		lull_samples_add(to, (f64)at[i]);
	lull_vec_release(&values);
	return rc;
}
