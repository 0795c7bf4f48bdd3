/*
 * period - find the iterations of a loop that the program does not mark.
 *
 * The input is the sequence of names of launched work. A name cuts the sequence wherever it occurs;
 * the loop's name is the most frequent one for which neighbouring pieces contain the same names
 * equally often. The name of a layer fails this test, since loss and optimizer make odd pieces; the
 * shortest lag with a high autocorrelation would find the layer.
 *
 * Limits:         a step of equal iterations cannot be distinguished from as many steps. At most
 *                 128 names are tried on at most 500,000 symbols, so that the cost is linear.
 */
#ifndef LULL_MODEL_PERIOD_H
#define LULL_MODEL_PERIOD_H

#include "base/types.h"
#include "base/vec.h"

/*
 * Find the loop in `n` symbols, each below `n_names`. Fills `cuts` (of size_t) with where pieces
 * begin, and n or the start of what is left over after the last; empty if there is no loop.
 */
void lull_period_find(const u32 *symbols, size_t n, u32 n_names, struct lull_vec *cuts);

#endif
