/*
 * phase_pieces - the time of a step's thread, cut into phases.
 *
 * Phases are the outermost ranges of the thread, one after the other; between them is the rest.
 * A range is not a phase, but the phases inside it are, if it is a step itself, holds a whole step,
 * or holds several phases of PyTorch. All ranges of its name are then taken so.
 */
#ifndef LULL_REPORT_PHASE_PIECES_H
#define LULL_REPORT_PHASE_PIECES_H

#include "base/intern.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "report/process_rounds.h"

/* The number of what is in no phase. */
#define LULL_PHASE_REST 0

/* String ids. */
struct lull_phase_name {
	u32 name, domain;
};

struct lull_phase_piece {
	struct lull_span span;
	u32 group; /* number of its name */
};

struct lull_phase_pieces {
	struct lull_intern names; /* struct lull_phase_name; 0 is the rest */
	struct lull_vec all;	  /* struct lull_phase_piece by time, not overlapping */
};

/* Cut the time of p->lane, inside and outside of its rounds. */
void lull_phase_pieces_init(struct lull_phase_pieces *s, const struct lull_process_rounds *p);

/* Free them. */
void lull_phase_pieces_release(struct lull_phase_pieces *s);

/* The number of the phase that the thread is in at this time. */
u32 lull_phase_at(const struct lull_phase_pieces *s, u64 at_ns);

#endif
