/*
 * busy - when tracks of devices were busy, and when they were idle.
 *
 *	u32 *tracks = lull_busy_devices(reader);
 *	lull_busy_run(reader, tracks, window, visit, ctx);
 *
 * A track is one device, or all devices of a process together. Its time from its first work to the
 * end of its last is cut into pieces in which the same kinds of work were running.
 *
 * Order:          by their ends, over all tracks.
 * Memory:         bounded: work is read by time (model/order), and only running work is kept.
 */
#ifndef LULL_MODEL_BUSY_H
#define LULL_MODEL_BUSY_H

#include "model/span.h"
#include "model/work.h"
#include "trace/reader.h"

/* Bits of what was running; 0 is an idle piece. */
#define LULL_BUSY_COMPUTE    1u /* kernels, graphs, memsets: as in lull_split_run() */
#define LULL_BUSY_COPY	     2u
#define LULL_BUSY_COLLECTIVE 4u /* kernels that exchange data with other devices */
#define LULL_BUSY_STATES     8u /* how many sets of them there are */

struct lull_busy_piece {
	u32 track;
	struct lull_span span; /* never empty */
	unsigned running;
	const struct lull_work *before; /* ended last; all 0 if none has yet */
	const struct lull_work *after;	/* begins at the end of an idle piece; NULL for others */
};

/* Called for each piece; `before` and `after` are valid during the call. */
typedef void lull_busy_visit(void *ctx, const struct lull_busy_piece *piece);

/*
 * The track of each lane, by lane id, with one track for each device: the row that
 * stands for it (model/device.h). 0 for threads. Free with free().
 */
u32 *lull_busy_devices(struct lull_reader *r);

/* The same with one track for each process: the id of its row. */
u32 *lull_busy_processes(struct lull_reader *r);

/*
 * Visit the pieces inside `window`; work that crosses its edges is cut. Idle pieces lie between two
 * pieces of work: before the first and after the last there is none. Lanes of track 0 are left out.
 */
void lull_busy_run(struct lull_reader *r, const u32 *tracks, struct lull_span window,
		   lull_busy_visit *visit, void *ctx);

#endif
