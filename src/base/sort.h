/*
 * sort - like qsort(), but what compares equal keeps its order.
 *
 * qsort() promises no such thing: libraries differ, and the same one by how much memory there is.
 * Many of our orders are by time alone, and what is sorted by them is printed, nested or numbered:
 * the same recording has to give the same answer everywhere. So all of src/ sorts with these.
 *
 * Cost:           O(n log runs); what is sorted already costs one look. As much memory again as the
 *                 elements take, while it runs.
 */
#ifndef LULL_BASE_SORT_H
#define LULL_BASE_SORT_H

#include "base/types.h"

/* As for qsort() and qsort_r(); `at` may be NULL if there is nothing. */
void lull_sort(void *at, size_t n, size_t elem_bytes, int (*compare)(const void *, const void *));
void lull_sort_r(void *at, size_t n, size_t elem_bytes,
		 int (*compare)(const void *, const void *, void *), void *ctx);

#endif
