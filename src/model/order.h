/*
 * order - the rows of a table by time, one after the other, in bounded memory.
 *
 * Blocks overlap in time, and the rows of a block come lane by lane. All blocks after the next one
 * start no earlier than it, so rows that start before it can be returned once the blocks so far are
 * sorted. Runs that are already in order are merged, not sorted again.
 *
 *	lull_order_begin(&o, &(struct lull_order_source){ ... });
 *	while ((row = lull_order_next(&o)))
 *		...
 *	lull_order_end(&o);
 *
 * Memory:         the rows of the blocks that overlap, usually two or three.
 */
#ifndef LULL_MODEL_ORDER_H
#define LULL_MODEL_ORDER_H

#include "base/vec.h"
#include "model/span.h"
#include "trace/reader.h"

/*
 * Turn row `ix` of the columns into an element, which begins with its start_ns; false leaves it
 * out. Called for each row of a block from 0 on; `cols` is an array of LULL_MAX_COLS pointers.
 */
typedef bool lull_order_fill(void *ctx, void *element, const void *cols, size_t ix);

/* Below, equal or above zero: the order of two elements, by their start first. */
typedef int lull_order_compare(const void *a, const void *b);

/* What to read. */
struct lull_order_source {
	struct lull_reader *reader;
	enum lull_table table;
	struct lull_span window;    /* blocks outside are not read */
	const char *const *columns; /* NULL at the end */
	size_t elem_bytes;
	lull_order_fill *fill;
	lull_order_compare *compare;
	void *ctx; /* of fill */
};

struct lull_order {
	struct lull_order_source source;
	struct lull_cursor cursor;
	const void **cols;
	struct lull_vec rows;  /* sorted */
	struct lull_vec spare; /* for merging */
	size_t at;	       /* the next row to give out */
	size_t n_ready;	       /* rows that may be given out */
	bool is_open;
};

/* Begin to read. */
void lull_order_begin(struct lull_order *o, const struct lull_order_source *source);

/* The next element, valid until the next call; NULL at the end. */
const void *lull_order_next(struct lull_order *o);

/* Free everything. */
void lull_order_end(struct lull_order *o);

/*
 * Sort elements by merging the runs that are in order; stable. `spare` is room for as many, of the
 * same vector kind.
 */
void lull_order_sort(struct lull_vec *rows, struct lull_vec *spare, lull_order_compare *compare);

#endif
