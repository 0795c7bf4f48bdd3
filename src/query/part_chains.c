/*
 * Call chains as nsys has them: for each stack that an event refers to, one row per frame, the
 * innermost with depth 0. The report holds stacks as a tree; chains are walked out of it row by
 * row.
 *
 * Columns: id, symbol, module, kernelMode, thumbCode, unresolved, specialEntry, originalIP,
 * unwindMethod, stackDepth.
 */
#include "query/table.h"

#include <stdlib.h>

#include "base/mem.h"
#include "query/values.h"
#include "trace/block.h"

/* frame.kind of a function of the kernel. */
#define FRAME_KERNEL 3

struct walk {
	struct lull_walk base;
	const struct lull_stack_row *stacks;
	const struct lull_frame_row *frames;
	const struct lull_module_row *modules;
	u32 id, end; /* stack, and after the last one */
	u32 node;    /* 0: between two chains */
	u32 depth;
	i64 row;
};

/* Mark the stacks that rows of the table refer to. */
static const u8 *used_stacks(const struct lull_vtab_part *part)
{
	struct lull_vtab_part *mine = (struct lull_vtab_part *)part;
	int col = lull_table_column(part->users, "stack");
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	size_t n;

	if (mine->is_used)
		return mine->is_used;
	mine->is_used =
		lull_alloc((size_t)lull_reader_n_dim(part->reader, LULL_TABLE_stack) + 1, 1);
	lull_cursor_init_table(&c, part->reader, part->users, 0, UINT64_MAX);
	lull_cursor_want(&c, "stack");
	while ((n = lull_cursor_next(&c, cols)) > 0)
		for (size_t i = 0; i < n; i++)
			mine->is_used[((const u32 *)cols[col])[i]] = 1;
	lull_cursor_release(&c);
	return mine->is_used;
}

static struct lull_walk *begin(const struct lull_vtab_part *part)
{
	struct walk *w = lull_alloc(1, sizeof(*w));
	size_t n;

	w->base.part = part;
	w->stacks = lull_reader_dim(part->reader, LULL_TABLE_stack, &n);
	w->frames = lull_reader_dim(part->reader, LULL_TABLE_frame, &n);
	w->modules = lull_reader_dim(part->reader, LULL_TABLE_module, &n);
	return &w->base;
}

static void filter(struct lull_walk *walk, const struct lull_filter *f)
{
	struct walk *w = (struct walk *)walk;
	u32 n = lull_reader_n_dim(walk->part->reader, LULL_TABLE_stack);

	w->id = 0;
	w->end = f->is_empty ? 1 : n + 1;
	w->node = 0;
	w->row = -1;
	if (f->key_col < 0)
		return;
	if (f->key < 1 || f->key > n) {
		w->end = 1;
	} else {
		w->id = (u32)f->key - 1;
		w->end = (u32)f->key + 1;
	}
}

static bool next(struct lull_walk *walk)
{
	struct walk *w = (struct walk *)walk;
	const u8 *is_used = used_stacks(walk->part);

	w->row++;
	if (w->node) {
		w->node = w->stacks[w->node - 1].parent;
		w->depth++;
	}
	while (!w->node && w->id + 1 < w->end) {
		w->id++;
		w->depth = 0;
		w->node = is_used[w->id] ? w->id : 0;
	}
	return w->node != 0;
}

static void column(struct lull_walk *walk, sqlite3_context *to, int col)
{
	static const struct lull_frame_row no_frame;
	const struct walk *w = (const struct walk *)walk;
	u32 frame_id = w->stacks[w->node - 1].frame;
	const struct lull_frame_row *frame = frame_id ? &w->frames[frame_id - 1] : &no_frame;
	const i64 values[] = {
		w->id,
		frame->function,
		frame->module ? w->modules[frame->module - 1].path : 0,
		frame->kind == FRAME_KERNEL,
		0,
		!frame->function,
		0,
		(i64)frame->addr,
		LULL_VALUE_NULL,
		w->depth,
	};

	if (values[col] != LULL_VALUE_NULL)
		sqlite3_result_int64(to, values[col]);
}

static i64 rowid(const struct lull_walk *walk)
{
	return ((const struct walk *)walk)->row;
}

static void end(struct lull_walk *walk)
{
	free(walk);
}

/* As many as there are stacks, roughly: for planning, and to know whether there are any. */
static u64 n_rows(const struct lull_vtab_part *part)
{
	return lull_reader_stats(part->reader, part->users->id).n_rows
		       ? lull_reader_n_dim(part->reader, LULL_TABLE_stack)
		       : 0;
}

const struct lull_part_ops lull_part_chains = {
	.begin = begin,
	.filter = filter,
	.next = next,
	.column = column,
	.rowid = rowid,
	.end = end,
	.n_rows = n_rows,
};
