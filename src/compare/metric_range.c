/*
 * range:NAME: time of the ranges of a name that began in a step.
 */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/mem.h"
#include "compare/metric.h"
#include "model/nest.h"

static bool *find_labels(struct lull_reader *r, const char *pattern, bool *has_any)
{
	size_t n;
	const struct lull_label_row *rows = lull_reader_dim(r, LULL_TABLE_label, &n);
	bool *is = lull_alloc(n + 1, sizeof(*is));

	is[0] = false;
	*has_any = false;
	for (size_t i = 0; i < n; i++) {
		is[i + 1] = !lull_nest_is_shadow(rows, (u32)i + 1) &&
			    fnmatch(pattern, lull_reader_string(r, rows[i].name, NULL), 0) == 0;
		*has_any |= is[i + 1];
	}
	return is;
}

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	struct lull_cursor c;
	struct lull_range_cols cols;
	bool has_any;
	bool *is = find_labels(r, arg, &has_any);
	size_t n;

	if (!has_any) {
		free(is);
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no range is named '%s'; lull stats -r nvtx_sum lists them", arg);
	}
	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			size_t ix = is[cols.label[i]]
					    ? lull_metric_window(windows, cols.start_ns[i])
					    : SIZE_MAX;

			if (ix != SIZE_MAX)
				value[ix] += (f64)cols.dur_ns[i];
		}
	lull_cursor_release(&c);
	free(is);
	return LULL_OK;
}

const struct lull_metric lull_metric_range = {
	.name = "range",
	.arg = "NAME",
	.summary = "time of the ranges of this name (or pattern) that started in a step",
	.kind = LULL_OUT_NS,
	.is_of_host = true,
	.measure = measure,
};
