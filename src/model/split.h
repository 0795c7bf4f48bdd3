/*
 * split - the device's time in the steady steps, each nanosecond counted once.
 *
 * Compute comes before collectives, these before copies, and the rest is idle. Overlaps are unions:
 * a copy during a kernel does not count, and two copies at once count as one.
 */
#ifndef LULL_MODEL_SPLIT_H
#define LULL_MODEL_SPLIT_H

#include "base/types.h"
#include "model/rounds.h"
#include "model/unit.h"

enum lull_split_kind {
	LULL_SPLIT_COMPUTE,
	LULL_SPLIT_COLLECTIVE, /* no compute beside it */
	LULL_SPLIT_COPY,       /* neither beside it */
	LULL_SPLIT_IDLE,
	LULL_N_SPLITS,
};

struct lull_split_piece {
	u64 from_ns;
	u64 to_ns;
	u32 round;
	u32 unit; /* collective, copy: which; idle: the one that ended it; else LULL_NONE */
	u8 kind;  /* enum lull_split_kind */
};

/* Told each piece, by time; `piece` is valid during the call. */
typedef void lull_split_visit(void *ctx, const struct lull_split_piece *piece);

/* Cut the windows of the steady steps. */
void lull_split_run(const struct lull_units *units, const struct lull_rounds *rounds,
		    lull_split_visit *visit, void *ctx);

#endif
