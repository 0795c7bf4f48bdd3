/*
 * Columns in memory, for C and for Arrow. Nothing is copied for Arrow: an array that somebody
 * exported is one more holder of the rows, and so is each of its columns, because a consumer may
 * keep one column and release the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/read_int.h"
#include "base/mem.h"

/* ---- holders ---- */

static void join_texts(struct lull_read_texts *to, const struct lull_frame_col *col)
{
	size_t len = 0;

	to->n = lull_frame_n_texts(col);
	to->offs = lull_alloc(to->n + 1, sizeof(*to->offs));
	for (u32 i = 0; i < to->n; i++) {
		to->offs[i] = (int64_t)len;
		len += strlen(lull_frame_text(col, i));
	}
	to->offs[to->n] = (int64_t)len;
	to->bytes = lull_alloc(len + 1, 1);
	for (u32 i = 0; i < to->n; i++)
		memcpy(to->bytes + to->offs[i], lull_frame_text(col, i),
		       (size_t)(to->offs[i + 1] - to->offs[i]));
}

struct lull_read_rows *lull_read_rows_new(struct lull_frame *frame)
{
	struct lull_read_rows *rows = lull_alloc(1, sizeof(*rows));

	rows->n_holders = 1;
	rows->texts = lull_alloc(frame->n_cols + 1, sizeof(*rows->texts));
	for (size_t c = 0; c < frame->n_cols; c++)
		if (frame->cols[c].kind == LULL_FRAME_TEXT)
			join_texts(&rows->texts[c], &frame->cols[c]);
	rows->frame = *frame;
	return rows;
}

void lull_read_rows_hold(struct lull_read_rows *rows)
{
	__atomic_add_fetch(&rows->n_holders, 1, __ATOMIC_RELAXED);
}

LULL_READ_EXPORT void lull_read_rows_free(struct lull_read_rows *rows)
{
	/* What other holders did with the columns is done before they are freed. */
	if (!rows || __atomic_sub_fetch(&rows->n_holders, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t c = 0; c < rows->frame.n_cols; c++) {
		free(rows->texts[c].bytes);
		free(rows->texts[c].offs);
	}
	free(rows->texts);
	lull_frame_release(&rows->frame);
	free(rows);
}

/* ---- columns ---- */

LULL_READ_EXPORT uint64_t lull_read_n_rows(const struct lull_read_rows *rows)
{
	return rows->frame.n_rows;
}

LULL_READ_EXPORT size_t lull_read_n_columns(const struct lull_read_rows *rows)
{
	return rows->frame.n_cols;
}

LULL_READ_EXPORT void lull_read_column(const struct lull_read_rows *rows, size_t ix,
				       struct lull_read_column *to)
{
	const struct lull_frame_col *col = &rows->frame.cols[ix];
	const struct lull_read_texts *texts = &rows->texts[ix];

	*to = (struct lull_read_column){
		.name = col->name,
		.kind = (int)col->kind,
		.n_rows = rows->frame.n_rows,
		.n_nulls = col->n_nulls,
		.values = col->kind == LULL_FRAME_TEXT ? col->codes.at : col->numbers.at,
		.present = col->n_nulls ? col->present.at : NULL,
		.texts = texts->bytes,
		.text_offs = texts->offs,
		.n_texts = texts->n,
	};
	_Static_assert((int)LULL_FRAME_TEXT == LULL_READ_TEXT &&
			       (int)LULL_FRAME_REAL == LULL_READ_FLOAT64 &&
			       (int)LULL_FRAME_INT == LULL_READ_INT64,
		       "the kinds have the same numbers");
}

/* ---- Arrow ---- */

/* A schema in one piece of memory that its release frees; names are copied. */
struct schema_part {
	struct ArrowSchema dictionary;
	char name[];
};

static void release_schema(struct ArrowSchema *s)
{
	for (int64_t i = 0; i < s->n_children; i++) {
		struct ArrowSchema *child = s->children[i];

		if (child->release)
			child->release(child);
		free(child);
	}
	free(s->children);
	if (s->dictionary && s->dictionary->release)
		s->dictionary->release(s->dictionary);
	free(s->private_data);
	s->release = NULL;
}

static void release_nothing(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void fill_schema(struct ArrowSchema *s, const struct lull_frame_col *col)
{
	static const char *const formats[] = { "n", "l", "g", "I" };
	size_t len = strlen(col->name);
	struct schema_part *part = lull_alloc(1, sizeof(*part) + len + 1);

	memcpy(part->name, col->name, len + 1);
	*s = (struct ArrowSchema){
		.format = formats[col->kind],
		.name = part->name,
		.flags = ARROW_FLAG_NULLABLE,
		.release = release_schema,
		.private_data = part,
	};
	if (col->kind != LULL_FRAME_TEXT)
		return;
	part->dictionary = (struct ArrowSchema){
		.format = "U",
		.name = "",
		.release = release_nothing,
	};
	s->dictionary = &part->dictionary;
}

static void make_schema(struct ArrowSchema *to, const struct lull_frame *f)
{
	*to = (struct ArrowSchema){
		.format = "+s",
		.name = "",
		.n_children = (int64_t)f->n_cols,
		.children = lull_alloc(f->n_cols + 1, sizeof(*to->children)),
		.release = release_schema,
	};
	for (size_t c = 0; c < f->n_cols; c++) {
		to->children[c] = lull_alloc(1, sizeof(struct ArrowSchema));
		fill_schema(to->children[c], &f->cols[c]);
	}
}

/* What an array holds besides its rows. */
struct array_part {
	struct lull_read_rows *rows;
	const void *buffers[2];
	struct ArrowArray dictionary;
	const void *texts[3];
};

static void release_array(struct ArrowArray *a)
{
	struct array_part *part = a->private_data;

	for (int64_t i = 0; i < a->n_children; i++) {
		struct ArrowArray *child = a->children[i];

		if (child->release)
			child->release(child);
		free(child);
	}
	free(a->children);
	lull_read_rows_free(part->rows);
	free(part);
	a->release = NULL;
}

static void release_texts(struct ArrowArray *a)
{
	a->release = NULL;
}

static struct array_part *begin_array(struct ArrowArray *a, struct lull_read_rows *rows)
{
	struct array_part *part = lull_alloc(1, sizeof(*part));

	part->rows = rows;
	lull_read_rows_hold(rows);
	*a = (struct ArrowArray){
		.length = (int64_t)rows->frame.n_rows,
		.buffers = part->buffers,
		.release = release_array,
		.private_data = part,
	};
	return part;
}

/* Consumers want an address even of nothing. */
static const void *some(const void *at)
{
	return at ? at : "\0\0\0\0\0\0\0";
}

static void fill_array(struct ArrowArray *a, struct lull_read_rows *rows, size_t ix)
{
	struct array_part *part = begin_array(a, rows);
	struct lull_read_column col;

	lull_read_column(rows, ix, &col);
	a->null_count = (int64_t)col.n_nulls;
	a->n_buffers = col.kind == LULL_READ_NULL ? 0 : 2;
	part->buffers[0] = col.present;
	part->buffers[1] = some(col.values);
	if (col.kind != LULL_READ_TEXT)
		return;
	part->texts[1] = col.text_offs;
	part->texts[2] = some(col.texts);
	part->dictionary = (struct ArrowArray){
		.length = (int64_t)col.n_texts,
		.n_buffers = 3,
		.buffers = part->texts,
		.release = release_texts,
	};
	a->dictionary = &part->dictionary;
}

static void make_array(struct ArrowArray *to, struct lull_read_rows *rows)
{
	size_t n = rows->frame.n_cols;

	begin_array(to, rows);
	to->n_buffers = 1;
	to->n_children = (int64_t)n;
	to->children = lull_alloc(n + 1, sizeof(*to->children));
	for (size_t c = 0; c < n; c++) {
		to->children[c] = lull_alloc(1, sizeof(struct ArrowArray));
		fill_array(to->children[c], rows, c);
	}
}

struct export
{
	struct lull_read_rows *rows;
	struct ArrowSchema *schema;
	struct ArrowArray *array;
	struct ArrowArrayStream *stream;
};

static int make_pair(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct export *e = ctx;

	(void)r, (void)err;
	if (e->schema)
		make_schema(e->schema, &e->rows->frame);
	if (e->array)
		make_array(e->array, e->rows);
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_arrow(struct lull_read_rows *rows, struct ArrowSchema *schema,
				     struct ArrowArray *array, struct lull_read_error *error)
{
	struct export e = { .rows = rows, .schema = schema, .array = array };
	struct lull_read nobody = { 0 };

	return lull_read_do(&nobody, make_pair, &e, error);
}

/* ---- a stream of one batch ---- */

struct stream_part {
	struct lull_read_rows *rows;
	bool is_over;
	struct lull_read_error error;
};

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	struct stream_part *part = stream->private_data;

	return lull_read_arrow(part->rows, out, NULL, &part->error) ? ENOMEM : 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	struct stream_part *part = stream->private_data;

	*out = (struct ArrowArray){ .release = NULL };
	if (part->is_over)
		return 0;
	part->is_over = true;
	return lull_read_arrow(part->rows, NULL, out, &part->error) ? ENOMEM : 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
	const struct stream_part *part = stream->private_data;

	return part->error.code ? part->error.text : NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
	struct stream_part *part = stream->private_data;

	lull_read_rows_free(part->rows);
	free(part);
	stream->release = NULL;
}

static int make_stream(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct export *e = ctx;
	struct stream_part *part = lull_alloc(1, sizeof(*part));

	(void)r, (void)err;
	part->rows = e->rows;
	lull_read_rows_hold(e->rows);
	*e->stream = (struct ArrowArrayStream){
		.get_schema = stream_schema,
		.get_next = stream_next,
		.get_last_error = stream_error,
		.release = stream_release,
		.private_data = part,
	};
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_arrow_stream(struct lull_read_rows *rows,
					    struct ArrowArrayStream *stream,
					    struct lull_read_error *error)
{
	struct export e = { .rows = rows, .stream = stream };
	struct lull_read nobody = { 0 };

	return lull_read_do(&nobody, make_stream, &e, error);
}
