/*
 * step_log - when steps of lull.h start, for `lull try`, which records nothing.
 *
 * LULL_TRY in the environment names a folder, LULL_TRY_STEPS the numbers of steps; lines and rules
 * are those of python/lull/_try.py. The program is not ended from here: `lull try` does that once
 * it sees the last line.
 */
#ifndef LULL_AGENT_CORE_STEP_LOG_H
#define LULL_AGENT_CORE_STEP_LOG_H

#include "base/types.h"

struct lull_annotate_api;

/* The functions of lull.h that write the log; NULL if nobody tries anything. */
const struct lull_annotate_api *lull_step_log(void);

#endif
