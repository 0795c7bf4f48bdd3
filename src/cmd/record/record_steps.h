/*
 * record_steps - what lull profile and lull launch understand of --pytorch and --steps.
 */
#ifndef LULL_CMD_RECORD_RECORD_STEPS_H
#define LULL_CMD_RECORD_RECORD_STEPS_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "wire/wire.h"

/* Add what the words of --pytorch stand for to `sources`; none given is "auto". */
int lull_record_pytorch(const struct lull_vec *words, u32 *sources, struct lull_err *err);

/* Read "skip=5,wait=1,warmup=1,active=3,repeat=1"; what is not named is 0, and active is 1. */
int lull_record_steps(const char *text, struct lull_schedule *s, struct lull_err *err);

#endif
