/*
 * peak_memory: the most memory of devices that was in use during a step.
 *
 * What the framework's allocator had handed out (table alloc) where that is recorded, for that is
 * what a program needs; else what was allocated from CUDA (table cuda_memory).
 */
#include <stdlib.h>

#include "base/sort.h"
#include "compare/metric.h"
#include "model/span.h"

/* memcpy.src_kind of what lies on a device. */
#define MEMORY_DEVICE  3
#define MEMORY_MANAGED 5

struct change {
	u64 at_ns;
	u64 order; /* of rows at the same time */
	i64 size_bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void add(struct lull_vec *changes, u64 at_ns, i64 size_bytes)
{
	struct change *c = lull_vec_push(changes);

	*c = (struct change){ at_ns, changes->n, size_bytes };
}

static void collect_alloc(struct lull_reader *r, struct lull_vec *changes)
{
	struct lull_cursor c;
	struct lull_alloc_cols cols;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_alloc, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.device_kind[i])
				add(changes, cols.start_ns[i], cols.size_bytes[i]);
	lull_cursor_release(&c);
}

static void collect_cuda(struct lull_reader *r, struct lull_vec *changes)
{
	struct lull_cursor c;
	struct lull_cuda_memory_cols cols;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_cuda_memory, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			if (cols.memory_kind[i] == MEMORY_DEVICE ||
			    cols.memory_kind[i] == MEMORY_MANAGED)
				add(changes, cols.start_ns[i],
				    cols.operation[i] == 1 ? (i64)cols.size_bytes[i]
							   : -(i64)cols.size_bytes[i]);
	lull_cursor_release(&c);
}

/* What was released before it was seen to be allocated was there from the beginning. */
static i64 least_level(const struct lull_vec *changes)
{
	const struct change *at = changes->at;
	i64 level = 0, least = 0;

	for (size_t i = 0; i < changes->n; i++) {
		level += at[i].size_bytes;
		least = level < least ? level : least;
	}
	return least;
}

static void find_peaks(const struct lull_vec *changes, const struct lull_vec *windows, f64 *value)
{
	const struct change *at = changes->at;
	const struct lull_span *window = windows->at;
	i64 level = -least_level(changes);
	size_t next = 0;

	for (size_t i = 0; i < windows->n; i++) {
		for (; next < changes->n && at[next].at_ns < window[i].from_ns; next++)
			level += at[next].size_bytes;
		value[i] = (f64)level;
		for (; next < changes->n && at[next].at_ns < window[i].to_ns; next++) {
			level += at[next].size_bytes;
			value[i] = (f64)level > value[i] ? (f64)level : value[i];
		}
	}
}

static int measure(struct lull_reader *r, const struct lull_vec *windows, const char *arg,
		   f64 *value, struct lull_err *err)
{
	struct lull_vec changes;
	int rc = LULL_OK;

	(void)arg;
	lull_vec_init(&changes, sizeof(struct change));
	collect_alloc(r, &changes);
	if (!changes.n)
		collect_cuda(r, &changes);
	if (changes.n) {
		lull_sort(changes.at, changes.n, sizeof(struct change), by_time);
		find_peaks(&changes, windows, value);
	} else {
		rc = lull_fail(err, LULL_E_NOT_FOUND,
			       "no memory was recorded; record with --cuda-memory-usage=true");
	}
	lull_vec_release(&changes);
	return rc;
}

const struct lull_metric lull_metric_peak_memory = {
	.name = "peak_memory",
	.alias = "memory",
	.summary = "peak device memory in use during a step",
	.kind = LULL_OUT_BYTES,
	.measure = measure,
};
