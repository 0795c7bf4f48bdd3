/*
 * tell - everything about a launch as JSON, for `lull kernel` and the page.
 */
#ifndef LULL_COUNTER_TELL_H
#define LULL_COUNTER_TELL_H

#include "text/json.h"
#include "counter/profile.h"

/* Write one object: launch, verdict, loads, stalls, roofline, sections, source, metrics. */
void lull_tell_launch(struct lull_json *j, const struct lull_profile *p);

#endif
