/*
 * replay_int - shared by replay.c, which runs the graph, and replay_build.c, which makes it.
 */
#ifndef LULL_CAUSE_REPLAY_INT_H
#define LULL_CAUSE_REPLAY_INT_H

#include "cause/replay.h"

/* Launches that a device queues before a call waits; commonly reported as about 1024. */
#define LULL_REPLAY_QUEUE 1000

/* Fill p->nodes, p->ops and the medians. */
void lull_replay_build(struct lull_replay *p, const struct lull_subject *s);

#endif
