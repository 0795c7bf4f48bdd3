#include "report/functions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "model/callpath.h"

/* The frame of a function, or NULL for samples without a stack. */
static const struct lull_frame_row *frame_of(const struct lull_callpath *c,
					     const struct lull_function *function)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(c->reader, LULL_TABLE_frame, &n);

	return function->frame ? &frames[function->frame - 1] : NULL;
}

static void put_weight(struct lull_out *out, const struct lull_callpath *c,
		       const struct lull_function *function)
{
	lull_out_f64(out, 100 * (f64)function->self / (f64)c->all);
	lull_out_f64(out, 100 * (f64)function->total / (f64)c->all);
	lull_out_i64(out, (i64)function->self);
	lull_out_i64(out, (i64)function->total);
}

static void put_module(struct lull_out *out, const struct lull_callpath *c,
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

static void put_name(struct lull_out *out, const struct lull_callpath *c,
		     const struct lull_function *function)
{
	const struct lull_frame_row *frame = frame_of(c, function);
	struct lull_str name = LULL_STR_INIT;

	if (!frame)
		lull_str_puts(&name, "[no stack]");
	else if (frame->function)
		lull_str_puts(&name, lull_reader_string(c->reader, frame->function, NULL));
	else if (frame->module)
		lull_str_puts(&name, "[no symbol]");
	else
		lull_str_addf(&name, "0x%" PRIx64, frame->addr);
	lull_out_text(out, lull_str_text(&name));
	lull_str_release(&name);
}

static void put_place(struct lull_out *out, const struct lull_callpath *c,
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

/* ---- samples ---- */

/* Count the samples of the time asked for. */
static void scan(struct lull_callpath *c, const struct lull_report_options *options,
		 const struct lull_functions *functions)
{
	const struct lull_table_desc *table = lull_table_find((u16)functions->table);
	const void **cols = lull_alloc(table->n_cols, sizeof(*cols));
	struct lull_cursor cursor;
	size_t n;

	lull_cursor_init(&cursor, c->reader, functions->table, options->from_ns, options->to_ns);
	lull_cursor_want(&cursor, "start_ns");
	lull_cursor_want(&cursor, "stack");
	if (functions->weight)
		lull_cursor_want(&cursor, functions->weight);
	if (functions->skip)
		lull_cursor_want(&cursor, functions->skip);
	while ((n = lull_cursor_next(&cursor, cols)) > 0) {
		const u64 *start_ns = cols[lull_table_column(table, "start_ns")];
		const u32 *stack = cols[lull_table_column(table, "stack")];
		const u64 *weight = functions->weight
					    ? cols[lull_table_column(table, functions->weight)]
					    : NULL;
		const u8 *skip =
			functions->skip ? cols[lull_table_column(table, functions->skip)] : NULL;

		for (size_t i = 0; i < n; i++) {
			if (!(skip && skip[i]) && lull_report_covers(options, start_ns[i], 0))
				lull_callpath_add(c, stack[i], weight ? weight[i] : 1);
		}
	}
	lull_cursor_release(&cursor);
	free(cols);
}

void lull_functions_put(struct lull_reader *r, struct lull_out *out,
			const struct lull_report_options *options,
			const struct lull_functions *functions)
{
	const struct lull_function *function;
	struct lull_callpath c;

	lull_callpath_init(&c, r);
	scan(&c, options, functions);
	lull_callpath_finish(&c);
	function = c.functions.at;
	for (size_t i = 0; i < c.functions.n; i++, function++) {
		lull_out_row(out);
		put_weight(out, &c, function);
		if (functions->has_count)
			lull_out_i64(out, (i64)function->n_self);
		put_name(out, &c, function);
		if (functions->has_module)
			put_module(out, &c, function);
		put_place(out, &c, function);
	}
	lull_callpath_release(&c);
}
