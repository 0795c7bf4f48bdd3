/*
 * duration - times as people write them on a command line.
 */
#ifndef LULL_BASE_DURATION_H
#define LULL_BASE_DURATION_H

#include "base/err.h"
#include "base/types.h"

/*
 * "1s200ms", "1.5s", "250us", "2m", "1h", or a bare number of ns: parts with units, added up.
 * LULL_E_USAGE with a sentence for anything else.
 */
int lull_duration_parse(const char *text, u64 *ns, struct lull_err *err);

/* The same in seconds, where a bare number is one of seconds; 30 years at most. */
int lull_duration_seconds(const char *text, f64 *seconds, struct lull_err *err);

#endif
