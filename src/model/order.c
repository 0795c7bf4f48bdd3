#include "model/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/file_frame.h"

/* ---- merging ---- */

static void *elem(const struct lull_vec *v, size_t ix)
{
	return (u8 *)v->at + ix * v->elem_bytes;
}

/* Where the run that begins at `from` ends. */
static size_t end_of_run(const struct lull_vec *rows, size_t from, lull_order_compare *compare)
{
	size_t end = from + 1;

	while (end < rows->n && compare(elem(rows, end - 1), elem(rows, end)) <= 0)
		end++;
	return end;
}

/* Merge two runs that follow each other into `to`, at the same place. */
static void merge(const struct lull_vec *from, struct lull_vec *to, const size_t ends[3],
		  lull_order_compare *compare)
{
	size_t left = ends[0], right = ends[1], at = ends[0], size = from->elem_bytes;

	while (left < ends[1] && right < ends[2]) {
		bool is_right = compare(elem(from, right), elem(from, left)) < 0;

		memcpy(elem(to, at++), elem(from, is_right ? right++ : left++), size);
	}
	if (left < ends[1])
		memcpy(elem(to, at), elem(from, left), (ends[1] - left) * size);
	if (right < ends[2])
		memcpy(elem(to, at), elem(from, right), (ends[2] - right) * size);
}

/* One round: each pair of runs becomes one. The ends of the runs are halved. */
static void merge_pairs(const struct lull_vec *from, struct lull_vec *to, struct lull_vec *ends,
			lull_order_compare *compare)
{
	size_t *end = ends->at, n = 0, first = 0;

	for (size_t i = 0; i < ends->n; i += 2) {
		size_t last = i + 1 < ends->n ? end[i + 1] : end[i];

		merge(from, to, (size_t[]){ first, end[i], last }, compare);
		first = last;
		end[n++] = last;
	}
	ends->n = n;
}

void lull_order_sort(struct lull_vec *rows, struct lull_vec *spare, lull_order_compare *compare)
{
	struct lull_vec ends;

	lull_vec_init(&ends, sizeof(size_t));
	for (size_t at = 0; at < rows->n;) {
		at = end_of_run(rows, at, compare);
		*(size_t *)lull_vec_push(&ends) = at;
	}
	while (ends.n > 1) {
		struct lull_vec swap;

		if (spare->n < rows->n)
			lull_vec_extend(spare, rows->n - spare->n);
		spare->n = rows->n;
		merge_pairs(rows, spare, &ends, compare);
		swap = *rows;
		*rows = *spare;
		*spare = swap;
	}
	lull_vec_release(&ends);
}

/* ---- reading ---- */

void lull_order_begin(struct lull_order *o, const struct lull_order_source *source)
{
	*o = (struct lull_order){ .source = *source, .is_open = true };
	o->cols = lull_alloc(LULL_MAX_COLS, sizeof(*o->cols));
	lull_vec_init(&o->rows, source->elem_bytes);
	lull_vec_init(&o->spare, source->elem_bytes);
	lull_cursor_init(&o->cursor, source->reader, source->table, source->window.from_ns,
			 source->window.to_ns);
	for (const char *const *column = source->columns; *column; column++)
		lull_cursor_want(&o->cursor, *column);
}

/* No row that is not read yet begins before this. */
static u64 horizon_ns(const struct lull_order *o)
{
	size_t n;
	const struct lull_entry *blocks = lull_reader_blocks(o->source.reader, &n);
	size_t next = o->cursor.next_ix;

	return next < n && blocks[next].table_id == (u16)o->source.table ? blocks[next].min_start
									 : UINT64_MAX;
}

static u64 start_of(const struct lull_order *o, size_t ix)
{
	u64 start_ns;

	memcpy(&start_ns, elem(&o->rows, ix), sizeof(start_ns));
	return start_ns;
}

/* How many rows begin before the horizon. */
static size_t count_ready(const struct lull_order *o, u64 before_ns)
{
	size_t low = 0, high = o->rows.n;

	if (before_ns == UINT64_MAX)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (start_of(o, middle) < before_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget_given(struct lull_order *o)
{
	size_t left = o->rows.n - o->at;

	if (left)
		memmove(o->rows.at, elem(&o->rows, o->at), left * o->rows.elem_bytes);
	o->rows.n = left;
	o->at = 0;
}

/* The rows of the block that was decoded. */
static void add_rows(struct lull_order *o, size_t n)
{
	u8 *to = n ? lull_vec_extend(&o->rows, n) : NULL;

	o->rows.n -= n;
	for (size_t i = 0; i < n; i++) {
		if (o->source.fill(o->source.ctx, to, o->cols, i)) {
			to += o->rows.elem_bytes;
			o->rows.n++;
		}
	}
}

/* Read blocks until there are rows to give out; false at the end. */
static bool read_more(struct lull_order *o)
{
	size_t n;

	forget_given(o);
	o->n_ready = 0;
	while (o->is_open && !o->n_ready) {
		n = lull_cursor_next(&o->cursor, o->cols);
		o->is_open = n > 0;
		add_rows(o, n);
		lull_order_sort(&o->rows, &o->spare, o->source.compare);
		o->n_ready = count_ready(o, o->is_open ? horizon_ns(o) : UINT64_MAX);
	}
	return o->n_ready > 0;
}

const void *lull_order_next(struct lull_order *o)
{
	if (o->at == o->n_ready && !read_more(o))
		return NULL;
	return elem(&o->rows, o->at++);
}

void lull_order_end(struct lull_order *o)
{
	lull_cursor_release(&o->cursor);
	lull_vec_release(&o->rows);
	lull_vec_release(&o->spare);
	free(o->cols);
	o->cols = NULL;
}
