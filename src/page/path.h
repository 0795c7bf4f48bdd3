/*
 * path - the critical path of a span, such as a step: what had to happen one after the other for it
 * to take as long as it did.
 *
 * Found backwards, from the end of the span. Work waited either for the work before it on its lane,
 * if that still ran when it was launched, or for its launch. A thread waited for what its last wait
 * was for (page/waits.h): work, or another thread, else the one that made CUDA calls meanwhile. The
 * rest is the thread's own time. Pieces follow each other without overlap and fill the span.
 *
 * Cost:           linear in the events of the span, and a search for each wait on the path.
 */
#ifndef LULL_PAGE_PATH_H
#define LULL_PAGE_PATH_H

#include "base/vec.h"
#include "timeline/detail.h"

enum lull_path_kind {
	LULL_PATH_WORK,	  /* a device worked */
	LULL_PATH_QUEUE,  /* between two units of work, or between a launch and its work */
	LULL_PATH_THREAD, /* a thread did something */
	LULL_PATH_WAIT,	  /* a thread waited for something that was not recorded */
	LULL_PATH_RETURN, /* from the end of what a thread waited for until it went on */
};

struct lull_path_piece {
	struct lull_span span;
	enum lull_path_kind kind;
	u32 lane; /* where to draw it; of a thread its first */
	u32 name; /* timeline/name.h, of work and waits */
};

/*
 * Add the pieces (struct lull_path_piece) of the span to `pieces`, by time. `thread` is the row of
 * the thread whose steps these are.
 */
void lull_path_find(struct lull_timeline *t, struct lull_span span, u32 thread,
		    struct lull_vec *pieces);

#endif
