/*
 * bench_make - write the report that benchmarks read (gen_report.h), and say what it costs.
 *
 *	bench_make FILE [KERNELS [bare|host]]	(default 10 million)
 *
 * "bare" leaves out all but kernels, copies and calls; "host" is the other one (gen_host.h), with
 * that many rows of each table.
 *
 * Each line is "name value unit".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "bench/gen_host.h"
#include "bench/gen_report.h"
#include "trace/reader.h"

int main(int argc, char **argv)
{
	bool is_bare = argc > 3 && strcmp(argv[3], "bare") == 0;
	bool is_host = argc > 3 && strcmp(argv[3], "host") == 0;
	struct gen_report_options options = { .n_kernels = 10000000,
					      .has_ranges = !is_bare,
					      .has_oscalls = !is_bare };
	u64 begin_ns = lull_now_ns(), n_rows = 0;
	struct lull_reader *r;
	struct lull_err err;

	if (argc > 2)
		options.n_kernels = strtoull(argv[2], NULL, 10);
	if (argc < 2)
		lull_fail(&err, LULL_E_USAGE, "usage: bench_make FILE [KERNELS [bare|host]]");
	if (argc < 2 ||
	    (is_host ? gen_host(argv[1], options.n_kernels, &err)
		     : gen_report(argv[1], &options, &err)) ||
	    lull_reader_open(&r, argv[1], &err)) {
		fprintf(stderr, "bench_make: %s\n", err.msg);
		return 1;
	}
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		struct lull_table_stats s = lull_reader_stats(r, t->id);

		if (t->kind != LULL_KIND_FACT || !s.n_rows)
			continue;
		n_rows += s.n_rows;
		printf("made_%s %.2f B/event (%.2f M)\n", t->name,
		       (f64)s.size_bytes / (f64)s.n_rows, (f64)s.n_rows / 1e6);
	}
	if (!n_rows) {
		fprintf(stderr, "bench_make: there is nothing in %s\n", argv[1]);
		return 1;
	}
	printf("made_size %.2f B/event (%.2f M events in %.1f s)\n",
	       (f64)lull_reader_size_bytes(r) / (f64)n_rows, (f64)n_rows / 1e6,
	       (f64)(lull_now_ns() - begin_ns) / 1e9);
	lull_reader_close(r);
	return 0;
}
