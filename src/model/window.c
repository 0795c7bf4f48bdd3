#include "model/window.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "trace/file_frame.h"

/* 3.7 million kernels with a call each and an operator around every second one. */
u64 lull_window_limit_bytes = 400000000;

/* What a row takes in memory: model/unit.h, chain.h and host.h. */
static u32 row_bytes(u16 table)
{
	switch (table) {
	case LULL_TABLE_kernel:
	case LULL_TABLE_memcpy:
	case LULL_TABLE_memset:
	case LULL_TABLE_graph:
		return 36;
	case LULL_TABLE_cuda_call:
		return 40;
	case LULL_TABLE_range:
	case LULL_TABLE_op:
	case LULL_TABLE_pycall:
	case LULL_TABLE_oscall:
		return 64;
	default:
		return 0;
	}
}

struct part {
	u64 from_ns;
	u64 size_bytes;
};

static int by_from(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* When the parts before it add up to this. */
static u64 moment_of(const struct part *parts, size_t n, u64 size_bytes)
{
	u64 sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (sum >= size_bytes)
			return parts[i].from_ns;
		sum += parts[i].size_bytes;
	}
	return UINT64_MAX;
}

struct lull_span lull_window_of(const struct lull_reader *r)
{
	struct lull_span window = LULL_SPAN_ALL;
	size_t n_blocks, n = 0;
	const struct lull_entry *blocks = lull_reader_blocks(r, &n_blocks);
	struct part *parts = lull_alloc(n_blocks + 1, sizeof(*parts));
	u64 sum = 0, skipped;

	for (size_t i = 0; i < n_blocks; i++) {
		u64 size_bytes = (u64)row_bytes(blocks[i].table_id) * blocks[i].n_rows;

		if (!size_bytes)
			continue;
		parts[n++] = (struct part){ blocks[i].min_start, size_bytes };
		sum += size_bytes;
	}
	if (sum > lull_window_limit_bytes) {
		skipped = (sum - lull_window_limit_bytes) / 2;
		lull_sort(parts, n, sizeof(*parts), by_from);
		window.from_ns = moment_of(parts, n, skipped);
		window.to_ns = moment_of(parts, n, skipped + lull_window_limit_bytes);
	}
	free(parts);
	return window;
}
