/*
 * predict - what a value most likely is, given the rows before it, so that only the difference is
 * stored.
 *
 * Pure functions on arrays, in place. Arithmetic wraps, so any input is fine; the results are
 * signed values. Rows of several lanes may follow each other: a change of lane is one large
 * difference, not a special case.
 */
#ifndef LULL_TRACE_PREDICT_H
#define LULL_TRACE_PREDICT_H

#include "base/types.h"

/* The columns that a prediction of start_ns looks at. */
struct lull_predict_by {
	const u64 *dur_ns; /* GAP and DEPTH */
	const u8 *depth;   /* DEPTH */
};

/* Replace n values by their differences to what `predictor` (enum lull_encoding) expects; `first`
 * seeds it. */
void lull_predict(u8 predictor, const struct lull_predict_by *by, u64 first, u64 *v, size_t n);

/* Undo lull_predict(). */
void lull_restore(u8 predictor, const struct lull_predict_by *by, u64 first, u64 *v, size_t n);

#endif
