/*
 * scan - the least that a reader of a report has to do: decode every column of every row.
 *
 * Benchmarks of what reads reports compare with it, in the same run: it takes longer on a slower or
 * a busy machine, too.
 */
#ifndef LULL_BENCH_SCAN_H
#define LULL_BENCH_SCAN_H

#include "base/time.h"
#include "trace/block.h"
#include "trace/reader.h"

/* Rows of all tables of facts. */
static inline u64 bench_n_rows(const struct lull_reader *r)
{
	u64 n = 0;

	for (const struct lull_table_desc *t = lull_tables; t->name; t++)
		if (t->kind == LULL_KIND_FACT)
			n += lull_reader_stats(r, t->id).n_rows;
	return n;
}

/* CPU seconds for decoding all of them; *n_rows receives how many there were. */
static inline f64 bench_scan_s(struct lull_reader *r, u64 *n_rows)
{
	u64 begin_ns = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const u64 *cols[LULL_MAX_COLS];
	u64 sum = 0; /* of something of each block, so that it has to be read */
	struct lull_cursor c;
	size_t n;

	*n_rows = 0;
	for (const struct lull_table_desc *t = lull_tables; t->name; t++) {
		if (t->kind != LULL_KIND_FACT)
			continue;
		lull_cursor_init(&c, r, (enum lull_table)t->id, 0, UINT64_MAX);
		while ((n = lull_cursor_next(&c, cols)) > 0) {
			*n_rows += n;
			sum += cols[0][n - 1];
		}
		lull_cursor_release(&c);
	}
	__asm__ volatile("" : : "r"(sum));
	return (f64)(lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / 1e9;
}

#endif
