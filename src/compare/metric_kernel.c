/*
 * kernel:NAME: time of the kernels of a name in a step.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/metric.h"
#include "model/work.h"

/* A name or pattern counts for the whole name, and for the name up to its arguments. */
static bool is_named(const char *name, const char *pattern)
{
	size_t len = strcspn(name, "(<");
	char *base;
	bool is;

	if (fnmatch(pattern, name, 0) == 0)
		return true;
	base = lull_strndup(name, len);
	is = fnmatch(pattern, base, 0) == 0;
	free(base);
	return is;
}

/* Per launch id, whether it is one of the kernels that are asked for. */
static bool *find_launches(struct lull_reader *r, const char *pattern, bool *has_any)
{
	size_t n;
	const struct lull_launch_row *rows = lull_reader_dim(r, LULL_TABLE_launch, &n);
	bool *is = lull_alloc(n + 1, sizeof(*is));

	is[0] = false;
	*has_any = false;
	for (size_t i = 0; i < n; i++) {
		is[i + 1] = is_named(lull_reader_string(r, rows[i].name, NULL), pattern);
		*has_any |= is[i + 1];
	}
	return is;
}

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	struct lull_work_cursor c;
	struct lull_work work;
	bool has_any;
	bool *is = find_launches(r, arg, &has_any);

	if (!has_any) {
		free(is);
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no kernel is named '%s'; lull stats -r cuda_gpu_kern_sum lists "
				 "them",
				 arg);
	}
	lull_work_begin(&c, r, LULL_WORK_KERNEL, 0, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work)) {
		size_t ix = is[work.what] ? lull_metric_window(windows, work.start_ns) : SIZE_MAX;

		if (ix != SIZE_MAX)
			value[ix] += (f64)work.dur_ns;
	}
	lull_work_end(&c);
	free(is);
	return LULL_OK;
}

const struct lull_metric lull_metric_kernel = {
	.name = "kernel",
	.arg = "NAME",
	.summary = "time of the kernels of this name (or pattern, such as *gemm*) in a step",
	.kind = LULL_OUT_NS,
	.measure = measure,
};
