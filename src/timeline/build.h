/*
 * build - make rows, lanes and curves of a timeline by walking the report once.
 */
#ifndef LULL_TIMELINE_BUILD_H
#define LULL_TIMELINE_BUILD_H

#include "timeline/timeline.h"

/* Fill an empty timeline. */
void lull_timeline_build(struct lull_timeline *t, const struct lull_timeline_options *options);

#endif
