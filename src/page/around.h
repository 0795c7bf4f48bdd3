/*
 * around - what an event is a part of: the operator, range and line of code that its thread was in.
 *
 * For work of a device that is the thread that launched it, at the time of the launch. A line comes
 * from the call stack of the call itself, or else from the sample next to it in the same range.
 */
#ifndef LULL_PAGE_AROUND_H
#define LULL_PAGE_AROUND_H

#include "text/json.h"
#include "timeline/detail.h"

/*
 * Write "around": [{kind, name, lane, start, end, place}, ...]: the innermost of each kind; kind is
 * that of a row, or "line", whose place is "FILE:LINE" and whose start is that of the sample.
 */
void lull_around_put(struct lull_json *j, struct lull_timeline *t, const struct lull_found *found);

#endif
