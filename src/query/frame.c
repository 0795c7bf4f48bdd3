/*
 * Columns that grow. Nulls are rare: a column has no bits until its first one, and then those of
 * the rows before it are set at once.
 */
#include "query/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "text/utf8.h"

void lull_frame_init(struct lull_frame *f, size_t n_cols)
{
	*f = (struct lull_frame){ .n_cols = n_cols };
	f->cols = lull_alloc(n_cols + 1, sizeof(*f->cols));
	for (size_t c = 0; c < n_cols; c++) {
		struct lull_frame_col *col = &f->cols[c];

		lull_vec_init(&col->numbers, sizeof(i64));
		lull_vec_init(&col->codes, sizeof(u32));
		lull_vec_init(&col->present, sizeof(u8));
		lull_intern_init(&col->texts);
		lull_map_init(&col->by_address);
	}
}

void lull_frame_release(struct lull_frame *f)
{
	for (size_t c = 0; c < f->n_cols; c++) {
		struct lull_frame_col *col = &f->cols[c];

		free(col->name);
		lull_vec_release(&col->numbers);
		lull_vec_release(&col->codes);
		lull_vec_release(&col->present);
		lull_intern_release(&col->texts);
		lull_map_release(&col->by_address);
	}
	free(f->cols);
	*f = (struct lull_frame){ 0 };
}

void lull_frame_name(struct lull_frame *f, size_t col, const char *name)
{
	struct lull_str valid = LULL_STR_INIT;

	lull_utf8_add(&valid, name, strlen(name));
	free(f->cols[col].name);
	f->cols[col].name = lull_strdup(lull_str_text(&valid));
	lull_str_release(&valid);
}

const char *lull_frame_text(const struct lull_frame_col *col, u32 code)
{
	return lull_intern_get(&col->texts, code);
}

u32 lull_frame_n_texts(const struct lull_frame_col *col)
{
	return (u32)col->texts.offsets.n;
}

/* ---- one value ---- */

/* The next value is there, or it is not. */
static void note(const struct lull_frame *f, struct lull_frame_col *col, bool is_there)
{
	u64 row = f->n_rows;
	u8 *bits;

	if (is_there && !col->n_nulls)
		return;
	if (!is_there && !col->n_nulls && row) {
		size_t n = (size_t)(row + 7) / 8;

		bits = lull_vec_extend(&col->present, n);
		memset(bits, 0xff, n);
		if (row % 8)
			bits[n - 1] = (u8)((1u << row % 8) - 1);
	}
	if (row % 8 == 0)
		lull_vec_push(&col->present);
	bits = col->present.at;
	bits[row / 8] |= (u8)(is_there << row % 8);
	col->n_nulls += !is_there;
}

/* The same value as in the rows before: where a column begins with nulls. */
static void *first_number(const struct lull_frame *f, struct lull_frame_col *col,
			  enum lull_frame_type kind)
{
	col->kind = kind;
	return lull_vec_extend(&col->numbers, (size_t)f->n_rows + 1);
}

static i64 *next_number(const struct lull_frame *f, struct lull_frame_col *col,
			enum lull_frame_type kind)
{
	if (col->kind == LULL_FRAME_EMPTY)
		return (i64 *)first_number(f, col, kind) + f->n_rows;
	return lull_vec_push(&col->numbers);
}

static bool is_present(const struct lull_frame_col *col, u64 row)
{
	const u8 *bits = col->present.at;

	return !col->n_nulls || (bits[row / 8] >> row % 8 & 1);
}

/* Whole numbers become real ones. */
static void make_real(struct lull_frame_col *col)
{
	i64 *at = col->numbers.at;

	for (size_t i = 0; i < col->numbers.n; i++) {
		f64 value = (f64)at[i];

		memcpy(&at[i], &value, sizeof(value));
	}
	col->kind = LULL_FRAME_REAL;
}

static u32 text_of(struct lull_frame_col *col, i64 bits)
{
	char text[64];
	f64 value;

	if (col->kind == LULL_FRAME_INT) {
		*lull_str_put_i64(text, bits) = '\0';
	} else {
		memcpy(&value, &bits, sizeof(value));
		sqlite3_snprintf(sizeof(text), text, "%!.15g", value);
	}
	return lull_intern_add(&col->texts, text, strlen(text));
}

/* What is there becomes text. */
static void make_text(const struct lull_frame *f, struct lull_frame_col *col)
{
	const i64 *at = col->numbers.at;
	u32 *codes = lull_vec_extend(&col->codes, (size_t)f->n_rows);

	for (u64 i = 0; i < f->n_rows && col->kind != LULL_FRAME_EMPTY; i++)
		if (is_present(col, i))
			codes[i] = text_of(col, at[i]);
	lull_vec_release(&col->numbers);
	lull_vec_init(&col->numbers, sizeof(i64));
	col->kind = LULL_FRAME_TEXT;
}

static void add_code(struct lull_frame *f, struct lull_frame_col *col, u32 code)
{
	note(f, col, true);
	*(u32 *)lull_vec_push(&col->codes) = code;
}

void lull_frame_add_null(struct lull_frame *f, size_t c)
{
	struct lull_frame_col *col = &f->cols[c];

	note(f, col, false);
	if (col->kind == LULL_FRAME_TEXT)
		lull_vec_push(&col->codes);
	else if (col->kind != LULL_FRAME_EMPTY)
		lull_vec_push(&col->numbers);
}

void lull_frame_add_int(struct lull_frame *f, size_t c, i64 value)
{
	struct lull_frame_col *col = &f->cols[c];
	char text[32];

	if (col->kind == LULL_FRAME_REAL) {
		lull_frame_add_real(f, c, (f64)value);
	} else if (col->kind == LULL_FRAME_TEXT) {
		*lull_str_put_i64(text, value) = '\0';
		add_code(f, col, lull_intern_add(&col->texts, text, strlen(text)));
	} else {
		*next_number(f, col, LULL_FRAME_INT) = value;
		note(f, col, true);
	}
}

void lull_frame_add_real(struct lull_frame *f, size_t c, f64 value)
{
	struct lull_frame_col *col = &f->cols[c];
	char text[64];

	if (col->kind == LULL_FRAME_INT)
		make_real(col);
	if (col->kind == LULL_FRAME_TEXT) {
		sqlite3_snprintf(sizeof(text), text, "%!.15g", value);
		add_code(f, col, lull_intern_add(&col->texts, text, strlen(text)));
	} else {
		memcpy(next_number(f, col, LULL_FRAME_REAL), &value, sizeof(value));
		note(f, col, true);
	}
}

i64 *lull_frame_room(struct lull_frame *f, size_t c, size_t n)
{
	struct lull_frame_col *col = &f->cols[c];
	i64 *room = lull_vec_room(&col->numbers, n);

	col->kind = LULL_FRAME_INT;
	col->numbers.n += n;
	return room;
}

/* The number of a text, whose bytes may be anything. */
static u32 intern(struct lull_frame_col *col, const char *text, size_t len)
{
	struct lull_str valid = LULL_STR_INIT;
	u32 code;

	/* Texts end at their first NUL, as everywhere in lull. */
	len = strnlen(text, len);
	if (lull_utf8_valid(text, len) == len)
		return lull_intern_add(&col->texts, text, len);
	lull_utf8_add(&valid, text, len);
	code = lull_intern_add(&col->texts, lull_str_text(&valid), valid.len);
	lull_str_release(&valid);
	return code;
}

void lull_frame_add_text(struct lull_frame *f, size_t c, const char *text, size_t len)
{
	struct lull_frame_col *col = &f->cols[c];

	if (col->kind != LULL_FRAME_TEXT)
		make_text(f, col);
	add_code(f, col, intern(col, text, len));
}

void lull_frame_add_fixed(struct lull_frame *f, size_t c, const char *text, size_t len)
{
	struct lull_frame_col *col = &f->cols[c];
	bool is_new;
	u32 *code;

	if (col->kind != LULL_FRAME_TEXT)
		make_text(f, col);
	code = lull_map_add(&col->by_address, (u64)(uintptr_t)text, &is_new);
	if (is_new)
		*code = intern(col, text, len);
	add_code(f, col, *code);
}

void lull_frame_add_blob(struct lull_frame *f, size_t c, const void *bytes, size_t len)
{
	struct lull_str hex = LULL_STR_INIT;

	for (size_t i = 0; i < len; i++)
		lull_str_addf(&hex, "%02x", ((const u8 *)bytes)[i]);
	lull_frame_add_text(f, c, lull_str_text(&hex), hex.len);
	lull_str_release(&hex);
}

void lull_frame_end_row(struct lull_frame *f)
{
	f->n_rows++;
}
