/*
 * How a table is printed: at once, or batch by batch while it is filled.
 */
#include "text/out_int.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

const char *const lull_out_format_names[] = {
#define OUT_FORMAT(name) #name,
#include "text/out_formats.def"
#undef OUT_FORMAT
	NULL,
};

static const struct lull_out_format *const formats[] = {
#define OUT_FORMAT(name) &lull_out_format_##name,
#include "text/out_formats.def"
#undef OUT_FORMAT
};

const char *lull_out_format_summary(int format)
{
	return formats[format]->summary;
}

const char *lull_out_format_args(int format)
{
	return formats[format]->args;
}

const struct lull_out_format *lull_out_page_format(const struct lull_out_page *page)
{
	return formats[page->view.options->format];
}

void lull_out_release_page(struct lull_out *out)
{
	if (!out->page)
		return;
	out->line = NULL;
	lull_str_release(&out->page->text);
	free(out->page);
	out->page = NULL;
}

static void put_text(struct lull_out_page *page)
{
	if (page->text.len)
		fwrite(page->text.at, 1, page->text.len, page->to);
	lull_str_clear(&page->text);
}

static void begin_page(struct lull_out_page *page)
{
	formats[page->view.options->format]->begin(page);
	put_text(page);
}

static void put_rows(struct lull_out_page *page)
{
	formats[page->view.options->format]->rows(page);
	put_text(page);
	page->n_printed += page->view.n_rows;
}

static void end_page(struct lull_out_page *page)
{
	formats[page->view.options->format]->end(page);
	put_text(page);
}

/* Find out where a stream goes, at its first row. */
static void open_page(struct lull_out *out)
{
	struct lull_out_page *page = out->page;

	if (!page->open)
		return;
	if (page->open(page->open_ctx, &page->to, &page->err))
		page->to = NULL;
	else
		begin_page(page);
	page->open = NULL;
}

/* As much as is written at once. */
#define LINES_BYTES (256u << 10)

void lull_out_flush_lines(struct lull_out *out)
{
	struct lull_out_page *page = out->page;

	open_page(out);
	if (page->text.len < LINES_BYTES)
		return;
	if (page->to)
		put_text(page);
	else
		lull_str_clear(&page->text);
}

void lull_out_flush(struct lull_out *out)
{
	struct lull_out_page *page = out->page;
	size_t n = lull_out_n_kept(out);
	u64 top = page->view.options->top;

	page->view.n_rows = n;
	if (top)
		page->view.n_rows = top > page->n_printed && top - page->n_printed < n
					    ? top - page->n_printed
				    : top > page->n_printed ? n
							    : 0;
	if (n)
		open_page(out);
	if (page->to && page->view.n_rows)
		put_rows(page);
	page->n_left_out += n - page->view.n_rows;
	out->n_flushed += n;
	out->cells.n = 0;
	lull_str_clear(&out->texts);
}

void lull_out_stream(struct lull_out *out, const struct lull_out_options *options,
		     lull_out_open *open, void *ctx)
{
	struct lull_out_page *page = lull_alloc(1, sizeof(*page));

	assert(!out->cells.n && options->sort_ix == LULL_OUT_UNSORTED);
	*page = (struct lull_out_page){ .view = { .out = out, .options = options },
					.open = open,
					.open_ctx = ctx };
	out->page = page;
	if (lull_out_page_format(page)->field && !options->top)
		out->line = &page->text;
	out->separator = lull_out_page_format(page)->separator;
}

int lull_out_finish(struct lull_out *out, struct lull_err *err)
{
	struct lull_out_page *page = out->page;
	int rc = LULL_OK;

	if (out->line)
		lull_out_line_end(out);
	else
		lull_out_flush(out);
	if (page->to) {
		end_page(page);
		rc = lull_err_flush(err, page->to, "the table");
	} else if (page->err.code) {
		*err = page->err;
		rc = err->code;
	}
	lull_out_release_page(out);
	return rc;
}

int lull_out_write(const struct lull_out *out, const struct lull_out_options *options, FILE *to,
		   struct lull_err *err)
{
	size_t n = lull_out_n_kept(out), *rows = lull_alloc(n, sizeof(*rows));
	struct lull_out_page page = { .view = { out, options, rows, n }, .to = to };

	for (size_t i = 0; i < n; i++)
		rows[i] = i;
	if (options->sort_ix != LULL_OUT_UNSORTED && n)
		lull_out_sort(&page.view, rows);
	if (options->top && options->top < n)
		page.view.n_rows = options->top;
	page.n_left_out = n - page.view.n_rows;
	begin_page(&page);
	put_rows(&page);
	end_page(&page);
	lull_str_release(&page.text);
	free(rows);
	return lull_err_flush(err, to, "the table");
}
