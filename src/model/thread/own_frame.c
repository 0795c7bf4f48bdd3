#include "model/thread/own_frame.h"

#include <string.h>

#include "model/callpath.h"
#include "model/thread/doing.h"
#include "model/words.h"

/* Deeper stacks are recursion, which is at its end here. */
#define MAX_FRAMES 128

const char *lull_frame_module(struct lull_reader *r, const struct lull_frame_row *frame)
{
	size_t n;
	const struct lull_module_row *modules = lull_reader_dim(r, LULL_TABLE_module, &n);

	if (frame->kind == LULL_FRAME_KERNEL)
		return "[kernel]";
	return frame->module ? lull_reader_string(r, modules[frame->module - 1].path, NULL) : "";
}

u32 lull_own_frame_by(struct lull_reader *r, u32 stack, lull_own_frame_test *is_own, const void *of)
{
	size_t n;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n);
	u32 best = 0;

	for (u32 depth = 0; stack && depth < MAX_FRAMES; depth++) {
		u32 frame = stacks[stack - 1].frame;
		const struct lull_frame_row *f;
		const char *file;

		stack = stacks[stack - 1].parent;
		if (!frame)
			continue;
		f = &frames[frame - 1];
		file = lull_reader_string(r, f->file, NULL);
		if (f->kind != LULL_FRAME_PYTHON) {
			if (is_own(of, frame))
				return frame;
			continue;
		}
		/* Where the interpreter calls itself, as Python 3.12 puts it on the stack. */
		if (!strcmp(file, "<shim>"))
			continue;
		if (!lull_file_is_plumbing(file))
			return frame;
		best = best ? best : frame;
	}
	return best;
}

/* As far as the frame itself tells. */
static bool is_own(const void *of, u32 frame)
{
	struct lull_reader *r = (struct lull_reader *)of;
	size_t n;
	const struct lull_frame_row *f = &(
		(const struct lull_frame_row *)lull_reader_dim(r, LULL_TABLE_frame, &n))[frame - 1];

	return lull_doing_is_own(lull_reader_string(r, f->function, NULL),
				 lull_reader_string(r, f->file, NULL), lull_frame_module(r, f));
}

u32 lull_own_frame(struct lull_reader *r, u32 stack)
{
	return lull_own_frame_by(r, stack, is_own, r);
}
