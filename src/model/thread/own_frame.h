/*
 * own_frame - which frame of a stack is the program's own: where its author can act.
 */
#ifndef LULL_MODEL_THREAD_OWN_FRAME_H
#define LULL_MODEL_THREAD_OWN_FRAME_H

#include "base/types.h"
#include "trace/reader.h"

/* The file that a frame's code lies in; "[kernel]" for the Linux kernel, "" if it is not known. */
const char *lull_frame_module(struct lull_reader *r, const struct lull_frame_row *frame);

/* The innermost frame that is the program's own, else the innermost of Python, else 0. */
u32 lull_own_frame(struct lull_reader *r, u32 stack);

/* The same, for who knows better whether a frame (from 1) of code that is not Python is its own. */
typedef bool lull_own_frame_test(const void *of, u32 frame);
u32 lull_own_frame_by(struct lull_reader *r, u32 stack, lull_own_frame_test *is_own,
		      const void *of);

#endif
