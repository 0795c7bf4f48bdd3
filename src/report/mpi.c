#include "report/mpi.h"

void lull_mpi_each(struct lull_reader *r, const struct lull_report_options *options,
		   lull_mpi_visit *visit, void *ctx)
{
	struct lull_mpi_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_mpi_call, options->from_ns, options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (lull_report_covers(options, cols.start_ns[i], cols.dur_ns[i]))
				visit(ctx, &cols, i);
		}
	}
	lull_cursor_release(&c);
}
