#include "page/fields.h"

#include <string.h>

#include "base/str.h"
#include "model/link.h"
#include "page/frames.h"
#include "trace/block.h"

/* Columns that the picture shows already, or that say nothing to people. */
static bool is_hidden(const char *name)
{
	static const char *const hidden[] = { "start_ns", "dur_ns", "lane", "depth", "process" };

	for (size_t i = 0; i < LULL_COUNT_OF(hidden); i++)
		if (!strcmp(name, hidden[i]))
			return true;
	return false;
}

static const char *unit_of(const char *name)
{
	size_t len = strlen(name);

	if (len > 3 && !strcmp(name + len - 3, "_ns"))
		return "ns";
	if (len > 6 && !strcmp(name + len - 6, "_bytes"))
		return "B";
	return "";
}

static u64 value_of(const struct lull_col_desc *col, const u8 *at)
{
	u64 v = 0;

	memcpy(&v, at, col->size_bytes); /* the machine is little-endian, as the file is */
	return v;
}

static void put_text(struct lull_json *j, const char *name, const char *text, size_t len)
{
	if (!len)
		return;
	lull_json_array(j);
	lull_json_text(j, name);
	lull_json_bytes(j, text, len < 16384 ? len : 16384);
	lull_json_end(j);
}

static void put_number(struct lull_json *j, const struct lull_col_desc *col, u64 v)
{
	f64 real;

	lull_json_array(j);
	lull_json_text(j, col->name);
	if (col->is_float) {
		memcpy(&real, &v, sizeof(real));
		lull_json_f64(j, real);
	} else if (col->is_signed) {
		lull_json_i64(j, (i64)v);
	} else {
		lull_json_u64(j, v);
	}
	lull_json_text(j, unit_of(col->name));
	lull_json_end(j);
}

/* [function, place, 1 if it is code of the program itself] */
static void put_frame(struct lull_json *j, struct lull_reader *r, const struct lull_frame_row *f)
{
	struct lull_str function = LULL_STR_INIT, place = LULL_STR_INIT;

	lull_frame_function(&function, r, f);
	lull_frame_place(&place, r, f);
	lull_json_array(j);
	lull_json_text(j, lull_str_text(&function));
	lull_json_text(j, lull_str_text(&place));
	lull_json_u64(j, lull_frame_is_own(r, f));
	lull_json_end(j);
	lull_str_release(&function);
	lull_str_release(&place);
}

/* ["stack", [frames, the innermost first]] */
static void put_stack(struct lull_json *j, struct lull_reader *r, u32 stack)
{
	size_t n, n_frames;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n_frames);

	if (!stack || stack > n)
		return;
	lull_json_array(j);
	lull_json_text(j, "stack");
	lull_json_array(j);
	for (int depth = 0; depth < 64 && stack && stack <= n; depth++) {
		u32 frame = stacks[stack - 1].frame;

		if (frame && frame <= n_frames)
			put_frame(j, r, &frames[frame - 1]);
		stack = stacks[stack - 1].parent;
	}
	lull_json_end(j);
	lull_json_end(j);
}

static void put_row(struct lull_json *j, struct lull_reader *r, const struct lull_table_desc *t,
		    const u8 *row);

/* What a column refers to: the fields of that row, or its text. */
static void put_column(struct lull_json *j, struct lull_reader *r, const struct lull_col_desc *col,
		       u64 v)
{
	const struct lull_table_desc *to = lull_table_by_name(col->type);
	const char *text;
	const u8 *rows;
	size_t n, len;

	if (is_hidden(col->name))
		return;
	if (!strcmp(col->type, "str")) {
		text = lull_reader_string(r, (u32)v, &len);
		put_text(j, col->name, text, v ? len : 0);
	} else if (!strcmp(col->type, "stack")) {
		put_stack(j, r, (u32)v);
	} else if (to) {
		rows = lull_reader_dim(r, (enum lull_table)to->id, &n);
		if (v && v <= n && to->id != LULL_TABLE_module && to->id != LULL_TABLE_device)
			put_row(j, r, to, rows + (v - 1) * to->row_bytes);
	} else {
		put_number(j, col, v);
	}
}

static void put_row(struct lull_json *j, struct lull_reader *r, const struct lull_table_desc *t,
		    const u8 *row)
{
	for (unsigned c = 0; c < t->n_cols; c++)
		put_column(j, r, &t->cols[c], value_of(&t->cols[c], row + t->cols[c].row_off));
}

void lull_fields_put(struct lull_json *j, struct lull_reader *r, enum lull_table table,
		     size_t block_ix, u32 row)
{
	const u8 *cols[LULL_MAX_COLS];
	struct lull_cursor c;

	lull_json_key(j, "fields");
	lull_json_array(j);
	lull_cursor_init(&c, r, table, 0, UINT64_MAX);
	if (row < lull_cursor_read(&c, block_ix, cols)) {
		for (unsigned k = 0; k < c.table->n_cols; k++) {
			const struct lull_col_desc *col = &c.table->cols[k];

			put_column(j, r, col,
				   value_of(col, cols[k] + (size_t)row * col->size_bytes));
		}
	}
	lull_cursor_release(&c);
	lull_json_end(j);
}

u64 lull_fields_key(struct lull_reader *r, enum lull_table table, size_t block_ix, u32 row)
{
	struct lull_link_columns link;
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	u64 key = 0;

	lull_cursor_init(&c, r, table, 0, UINT64_MAX);
	if (lull_link_columns_init(&link, &c) && row < lull_cursor_read(&c, block_ix, cols)) {
		const struct lull_link_rows rows = lull_link_rows_of(&link, cols);

		key = lull_link_rows_key(&rows, row);
	}
	lull_cursor_release(&c);
	return key;
}
