/*
 * frames - frames of call stacks, as people read them.
 */
#ifndef LULL_PAGE_FRAMES_H
#define LULL_PAGE_FRAMES_H

#include "base/str.h"
#include "trace/reader.h"

/* Append the function; its address if it has no name. */
void lull_frame_function(struct lull_str *to, struct lull_reader *r,
			 const struct lull_frame_row *f);

/* Append file and line, or the file that holds the code. */
void lull_frame_place(struct lull_str *to, struct lull_reader *r, const struct lull_frame_row *f);

/* Whether it is code of the program itself, not of a library or an interpreter. */
bool lull_frame_is_own(struct lull_reader *r, const struct lull_frame_row *f);

/* The innermost frame of a stack that is the program's own, else the innermost; 0 if none is. */
u32 lull_frame_of_stack(struct lull_reader *r, u32 stack);

#endif
