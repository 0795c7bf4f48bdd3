/*
 * request_values - numbers of the requests of a report, for the metrics of a gate.
 */
#ifndef LULL_COMPARE_REQUEST_VALUES_H
#define LULL_COMPARE_REQUEST_VALUES_H

#include "base/err.h"
#include "base/vec.h"
#include "compare/metric.h"
#include "request/requests.h"

/* The number of a request, in ns; UINT64_MAX if it has none. */
typedef u64 lull_request_value(const struct lull_one_request *one);

/*
 * Fill `values` (u64) with that of each request that was answered, by arrival. LULL_E_NOT_FOUND
 * with a sentence if there is no request.
 */
int lull_request_values(struct lull_vec *values, struct lull_reader *r, lull_request_value *value,
			struct lull_err *err);

/* The same, each as a sample. */
int lull_request_samples(struct lull_samples *to, struct lull_reader *r, lull_request_value *value,
			 struct lull_err *err);

#endif
