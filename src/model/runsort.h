/*
 * runsort - bring records into the order of their first field, a u64.
 *
 * Records come in ascending runs: the blocks of a table are sorted by lane and by time inside a
 * lane. Runs are found and merged two by two, so what is sorted already costs one look.
 *
 * Cost:           O(n log runs); as much memory again as the records take, while it runs.
 */
#ifndef LULL_MODEL_RUNSORT_H
#define LULL_MODEL_RUNSORT_H

#include "base/types.h"

/* Sort `n` records of `elem_bytes` each by the u64 they begin with; stable. */
void lull_runsort(void *at, size_t n, size_t elem_bytes);

#endif
