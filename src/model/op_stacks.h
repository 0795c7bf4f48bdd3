/*
 * op_stacks - which Python functions were running when an operator started.
 *
 * Imported traces have the calls of Python functions; native recordings have a stack with each
 * outermost operator. Two stacks are equal if their innermost frames are equal, up to the requested
 * number of frames.
 *
 * Memory:         24 bytes for each Python call, or outermost operator, of the recording.
 */
#ifndef LULL_MODEL_OP_STACKS_H
#define LULL_MODEL_OP_STACKS_H

#include "base/intern.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "trace/reader.h"

#define LULL_OP_STACK_MAX 64

struct lull_op_stacks {
	struct lull_reader *reader; /* private */
	struct lull_vec calls;	    /* private: struct pycall by lane, then start */
	struct lull_vec outermost;  /* private: likewise, operators with their stack */
	u32 n_frames;		    /* private: how many of a stack count */
	struct lull_intern stacks;  /* private: u32 frames[n_frames], innermost first */
	struct lull_str text;	    /* private */
};

/* Collect the Python calls for stacks of up to n_frames (LULL_OP_STACK_MAX at most); 0: none. */
void lull_op_stacks_init(struct lull_op_stacks *s, struct lull_reader *r, u32 n_frames);

/* Free them. */
void lull_op_stacks_release(struct lull_op_stacks *s);

/* The number + 1 of the stack of a thread at this moment, 0 if there is none. */
u32 lull_op_stacks_find(struct lull_op_stacks *s, u32 lane, u64 at_ns);

/*
 * The innermost frame that is the program's own, else the innermost that has a file; 0 if there is
 * none.
 */
u32 lull_op_stacks_own_frame(const struct lull_op_stacks *s, u32 lane, u64 at_ns);

/* The same of a stack of the report, by its innermost node. */
u32 lull_op_stacks_own_frame_of(struct lull_reader *r, u32 stack);

/* Append "file:line function" of a frame; nothing for 0. */
void lull_op_stacks_name(struct lull_str *to, struct lull_reader *r, u32 frame);

/* "file(line): function; ..." of what lull_op_stacks_find() gave; NULL for 0. Valid until the next
 * call. */
const char *lull_op_stacks_text(const struct lull_op_stacks *s, u32 stack);

#endif
