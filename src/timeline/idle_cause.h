/*
 * idle_cause - idle time of a device with its causes.
 *
 * Causes are known for intervals in which a device computes nothing. Idle time without a cause is
 * shown as unknown.
 */
#ifndef LULL_TIMELINE_IDLE_CAUSE_H
#define LULL_TIMELINE_IDLE_CAUSE_H

#include "timeline/timeline.h"

/* A timeline without causes. */
void lull_idle_init_causes(struct lull_timeline *t);

/* Give a device (a row of the report) the causes (struct lull_idle) of its idle time. */
void lull_idle_set_causes(struct lull_timeline *t, u32 device, struct lull_vec *pieces);

/*
 * Add the pieces (struct lull_idle) of a device inside `span` to `out`, by time: those with a
 * cause, and what of `gaps` (struct lull_span, by time) these leave over.
 */
void lull_idle_with_causes(const struct lull_timeline *t, u32 group, struct lull_span span,
			   const struct lull_vec *gaps, struct lull_vec *out);

/* Free the causes of a timeline. */
void lull_idle_release_causes(struct lull_timeline *t);

#endif
