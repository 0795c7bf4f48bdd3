#include "report/functions.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

/* The frame of a function, or NULL for samples without a stack. */
static const struct lull_frame_row *frame_of(const struct lull_callpath *c,
					     const struct lull_function *function)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(c->reader, LULL_TABLE_frame, &n);

	return function->frame ? &frames[function->frame - 1] : NULL;
}

void lull_function_put_weight(struct lull_out *out, const struct lull_callpath *c,
			      const struct lull_function *function)
{
	lull_out_f64(out, 100 * (f64)function->self / (f64)c->all);
	lull_out_f64(out, 100 * (f64)function->total / (f64)c->all);
	lull_out_i64(out, (i64)function->self);
	lull_out_i64(out, (i64)function->total);
}

void lull_function_put_module(struct lull_out *out, const struct lull_callpath *c,
			      const struct lull_function *function)
{
	const struct lull_frame_row *frame = frame_of(c, function);
	size_t n;
	const struct lull_module_row *modules = lull_reader_dim(c->reader, LULL_TABLE_module, &n);
	const char *path, *slash;

	if (!frame) {
		lull_out_skip(out);
	} else if (frame->module) {
		path = lull_reader_string(c->reader, modules[frame->module - 1].path, NULL);
		slash = strrchr(path, '/');
		lull_out_text(out, slash ? slash + 1 : path);
	} else {
		lull_out_text(out, frame->kind == LULL_FRAME_KERNEL   ? "[kernel]"
				   : frame->kind == LULL_FRAME_JIT    ? "[jit]"
				   : frame->kind == LULL_FRAME_PYTHON ? "[python]"
								      : NULL);
	}
}

void lull_function_put_name(struct lull_out *out, const struct lull_callpath *c,
			    const struct lull_function *function)
{
	const struct lull_frame_row *frame = frame_of(c, function);
	struct lull_str name = LULL_STR_INIT;

	if (!frame)
		lull_str_puts(&name, "[no stack]");
	else if (frame->function)
		lull_str_puts(&name, lull_reader_string(c->reader, frame->function, NULL));
	else
		lull_str_addf(&name, "0x%" PRIx64, frame->addr);
	lull_out_text(out, lull_str_text(&name));
	lull_str_release(&name);
}

void lull_function_put_place(struct lull_out *out, const struct lull_callpath *c,
			     const struct lull_function *function)
{
	const struct lull_frame_row *frame = frame_of(c, function);
	struct lull_str place = LULL_STR_INIT;

	if (!frame || !frame->file) {
		lull_out_skip(out);
		return;
	}
	lull_str_puts(&place, lull_reader_string(c->reader, frame->file, NULL));
	if (frame->line)
		lull_str_addf(&place, ":%u", frame->line);
	lull_out_text(out, lull_str_text(&place));
	lull_str_release(&place);
}
