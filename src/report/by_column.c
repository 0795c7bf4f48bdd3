#include "report/by_column.h"

#include <stdlib.h>

#include "base/mem.h"

void lull_by_column_scan(void *ctx, struct lull_sum *sum)
{
	const struct lull_by_column *by = ctx;
	const struct lull_table_desc *table = lull_table_find((u16)by->table);
	const void **cols = lull_alloc(table->n_cols, sizeof(*cols));
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, by->reader, by->table, by->options->from_ns, by->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, by->column);
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const u64 *start_ns = cols[lull_table_column(table, "start_ns")];
		const u64 *dur_ns = cols[lull_table_column(table, "dur_ns")];
		const u32 *key = cols[lull_table_column(table, by->column)];

		for (size_t i = 0; i < n; i++) {
			if (lull_report_covers(by->options, start_ns[i], dur_ns[i]))
				lull_sum_add(sum, lull_sum_group(sum, key[i]), dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
	free(cols);
}

void lull_by_column_put(struct lull_by_column *by, struct lull_out *out, lull_sum_names *names)
{
	struct lull_sum sum;

	lull_sum_init(&sum);
	lull_sum_run(&sum, lull_by_column_scan, by);
	lull_sum_write(&sum, out, names, by);
	lull_sum_release(&sum);
}

void lull_by_column_put_string(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct lull_by_column *by = ctx;

	lull_out_text(out, lull_reader_string(by->reader, (u32)group->key, NULL));
}
