/*
 * windows - the steps of a report that are fit to be compared.
 */
#ifndef LULL_COMPARE_WINDOWS_H
#define LULL_COMPARE_WINDOWS_H

#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

/*
 * Add the steps (struct lull_span, by time, not overlapping) without those of the warm-up; returns
 * how many were left out.
 */
size_t lull_compare_windows(struct lull_reader *r, struct lull_vec *steps);

#endif
