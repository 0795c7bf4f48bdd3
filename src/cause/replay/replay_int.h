/*
 * replay_int - shared by replay.c, which runs the graph, and replay_build.c, which makes it.
 */
#ifndef LULL_CAUSE_REPLAY_INT_H
#define LULL_CAUSE_REPLAY_INT_H

#include "cause/replay/replay.h"

/* Launches that a device queues before a call waits; commonly reported as about 1024. */
#define LULL_REPLAY_QUEUE 1000

/* Fill p->nodes, p->ops and the medians. */
void lull_replay_build(struct lull_replay *p, const struct lull_subject *s);

/*
 * Fill cold_gap_ns and cold_call_ns of the nodes: what the same place takes longer shortly after
 * the thread waited for Python's lock.
 */
void lull_replay_find_cold(struct lull_replay *p);

/* Fill p->warm from the times of launching calls. */
void lull_replay_find_warm(struct lull_replay *p);

/* Mark calls of the optimizer by samples of Python, if nothing else says which they are. */
void lull_replay_find_update(struct lull_replay *p);

#endif
