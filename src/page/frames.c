#include "page/frames.h"

#include <inttypes.h>

#include "model/thread/doing.h"
#include "model/words.h"

#define MAX_DEPTH 256
#define PYTHON	  2u /* frame.kind */

static const char *module_of(struct lull_reader *r, const struct lull_frame_row *f)
{
	size_t n;
	const struct lull_module_row *modules = lull_reader_dim(r, LULL_TABLE_module, &n);

	return f->module && f->module <= n
		       ? lull_reader_string(r, modules[f->module - 1].path, NULL)
		       : "";
}

void lull_frame_function(struct lull_str *to, struct lull_reader *r, const struct lull_frame_row *f)
{
	if (f->function)
		lull_str_puts(to, lull_reader_string(r, f->function, NULL));
	else
		lull_str_addf(to, "%#" PRIx64, f->addr);
}

void lull_frame_place(struct lull_str *to, struct lull_reader *r, const struct lull_frame_row *f)
{
	if (f->file)
		lull_str_addf(to, "%s:%u", lull_reader_string(r, f->file, NULL), f->line);
	else
		lull_str_puts(to, module_of(r, f));
}

bool lull_frame_is_own(struct lull_reader *r, const struct lull_frame_row *f)
{
	const char *file = lull_reader_string(r, f->file, NULL);

	if (f->kind == PYTHON)
		return *file && !lull_file_is_plumbing(file);
	return lull_doing_is_own(lull_reader_string(r, f->function, NULL), file, module_of(r, f));
}

u32 lull_frame_of_stack(struct lull_reader *r, u32 stack)
{
	size_t n, n_frames;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n_frames);
	u32 innermost = 0;

	for (int depth = 0; depth < MAX_DEPTH && stack && stack <= n; depth++) {
		u32 frame = stacks[stack - 1].frame;

		stack = stacks[stack - 1].parent;
		if (!frame || frame > n_frames)
			continue;
		innermost = innermost ? innermost : frame;
		if (lull_frame_is_own(r, &frames[frame - 1]))
			return frame;
	}
	return innermost;
}
