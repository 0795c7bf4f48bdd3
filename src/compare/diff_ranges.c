/*
 * ranges: NVTX and lull.h ranges, by name.
 */
#include "compare/diff.h"
#include "model/nest.h"

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	size_t n, n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);
	struct lull_range_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 label = cols.label[i], name = label ? labels[label - 1].name : 0;

			if (!lull_nest_is_shadow(labels, label))
				lull_diff_count(to, lull_reader_string(r, name, NULL),
						cols.start_ns[i], cols.dur_ns[i], 0);
		}
	}
	lull_cursor_release(&c);
}

const struct lull_diff_kind lull_diff_ranges = {
	.name = "ranges",
	.title = "Ranges",
	.is_of_host = true,
	.collect = collect,
};
