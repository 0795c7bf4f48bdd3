/*
 * Rows of csv and tsv that are printed cell by cell while they are filled: nothing is kept but the
 * text. What a memo remembers is that text, from the separator in front of its first cell on.
 */
#include "text/out_int.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

/* The digits of a 64-bit number, its sign and a separator. */
#define NUMBER_BYTES 22

static const struct lull_out_options *options_of(const struct lull_out *out)
{
	return out->page->view.options;
}

/* The separator in front of the next cell. */
static const struct lull_out_column *begin_cell(struct lull_out *out)
{
	assert(out->n_filled < out->n_columns);
	if (out->n_filled)
		lull_str_add(out->line, &out->separator, 1);
	return &out->columns[out->n_filled++];
}

void lull_out_line_end(struct lull_out *out)
{
	if (!out->page->n_printed)
		return;
	while (out->n_filled < out->n_columns)
		begin_cell(out);
	lull_str_add(out->line, "\n", 1);
}

void lull_out_line_row(struct lull_out *out)
{
	lull_out_line_end(out);
	lull_out_flush_lines(out);
	out->page->n_printed++;
	out->n_flushed++;
	out->n_filled = 0;
}

static void put_number(struct lull_out *out, const struct lull_out_cell *cell)
{
	const struct lull_out_column *column = begin_cell(out);

	lull_out_format_number(out->line, options_of(out), column, cell);
}

void lull_out_line_i64(struct lull_out *out, i64 value)
{
	const struct lull_out_column *column = &out->columns[out->n_filled];
	struct lull_str *line = out->line;
	char *at;

	assert(out->n_filled < out->n_columns);
	if (options_of(out)->time != LULL_OUT_TIME_NS || column->kind == LULL_OUT_PERCENT) {
		put_number(out, &(struct lull_out_cell){ .kind = LULL_OUT_CELL_I64, .i = value });
		return;
	}
	if (line->cap - line->len <= NUMBER_BYTES)
		lull_str_room(line, NUMBER_BYTES);
	at = line->at + line->len;
	if (out->n_filled++)
		*at++ = out->separator;
	line->len = (size_t)(lull_str_put_i64(at, value) - line->at);
}

void lull_out_line_f64(struct lull_out *out, f64 value)
{
	put_number(out, &(struct lull_out_cell){ .kind = LULL_OUT_CELL_F64, .f = value });
}

void lull_out_line_text(struct lull_out *out, const char *text, size_t len)
{
	begin_cell(out);
	lull_out_page_format(out->page)->field(out->line, options_of(out), text, len);
}

void lull_out_line_skip(struct lull_out *out)
{
	begin_cell(out);
}

/* ---- memos ---- */

/* More keys or bytes than this are not remembered: names that occur once would fill the memory. */
#define MAX_KEYS  (1u << 20)
#define MAX_BYTES (32u << 20)

struct part {
	size_t off;
	u32 len;
	u32 n_cells; /* 0 for a key that is not remembered */
};

void lull_out_memo_init(struct lull_out_memo *memo)
{
	*memo = (struct lull_out_memo){ 0 };
	lull_vec_init(&memo->parts, sizeof(struct part));
}

void lull_out_memo_release(struct lull_out_memo *memo)
{
	lull_vec_release(&memo->parts);
	lull_str_release(&memo->bytes);
}

bool lull_out_recall(struct lull_out *out, struct lull_out_memo *memo, u64 key)
{
	const struct part *part;

	if (!out->line)
		return false;
	part = key < memo->parts.n ? (const struct part *)memo->parts.at + key : NULL;
	if (!part || !part->n_cells) {
		memo->from_off = out->line->len;
		memo->n_filled = out->n_filled;
		return false;
	}
	lull_str_add(out->line, memo->bytes.at + part->off, part->len);
	out->n_filled += part->n_cells;
	return true;
}

void lull_out_remember(struct lull_out *out, struct lull_out_memo *memo, u64 key)
{
	size_t len;

	if (!out->line || key >= MAX_KEYS || memo->bytes.len >= MAX_BYTES)
		return;
	len = out->line->len - memo->from_off;
	if (len > MAX_BYTES)
		return;
	if (key >= memo->parts.n)
		lull_vec_extend(&memo->parts, key + 1 - memo->parts.n);
	*(struct part *)lull_vec_get(&memo->parts, key) = (struct part){
		.off = memo->bytes.len,
		.len = (u32)len,
		.n_cells = (u32)(out->n_filled - memo->n_filled),
	};
	lull_str_add(&memo->bytes, out->line->at + memo->from_off, len);
}
