/*
 * sort - like qsort(), but stable: equal elements keep their order.
 *
 * qsort() does not promise that: implementations differ, and one may depend on how much memory
 * there is. Much is sorted by time alone and then printed, nested or numbered, and the same
 * recording has to give the same answer everywhere. So all of src/ sorts with these.
 *
 * Cost:           O(n log runs); sorted input costs one pass. As much memory again as the
 *                 elements take, while it runs.
 */
#ifndef LULL_BASE_SORT_H
#define LULL_BASE_SORT_H

#include "base/types.h"

/* As for qsort() and qsort_r(); `at` may be NULL if there is nothing. */
void lull_sort(void *at, size_t n, size_t elem_bytes, int (*compare)(const void *, const void *));
void lull_sort_r(void *at, size_t n, size_t elem_bytes,
		 int (*compare)(const void *, const void *, void *), void *ctx);

/* Numbers, the least first. */
void lull_sort_u64(u64 *at, size_t n);
void lull_sort_f64(f64 *at, size_t n);

#endif
