/*
 * runsort - sort records by their first field, a u64.
 *
 * Records come in ascending runs: the blocks of a table are sorted by lane and by time inside a
 * lane. Runs are found and merged in pairs, so sorted input costs one pass; blocks that follow each
 * other in time cost as many as lanes take.
 *
 * Cost:           O(n log runs); temporarily as much memory again as the records take.
 */
#ifndef LULL_MODEL_RUNSORT_H
#define LULL_MODEL_RUNSORT_H

#include "base/types.h"

/* Sort `n` records of `elem_bytes` each by the u64 they begin with; stable. */
void lull_runsort(void *at, size_t n, size_t elem_bytes);

#endif
