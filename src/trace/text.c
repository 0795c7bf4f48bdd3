#include "trace/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"
#include "base/str.h"

/* A place in one line. */
struct line {
	const char *at;
	const char *end;
	unsigned number;
};

/* One name=value of a line; a quoted value is without its quotes and escapes. */
struct field {
	struct lull_str name;
	struct lull_str value;
};

/* ---- words ---- */

static void skip_blanks(struct line *l)
{
	while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
		l->at++;
}

static bool is_done(struct line *l)
{
	skip_blanks(l);
	return l->at == l->end || *l->at == '#';
}

/* Letters, digits and underscores. */
static void take_name(struct line *l, struct lull_str *name)
{
	const char *from = l->at;

	while (l->at < l->end && (isalnum((unsigned char)*l->at) || *l->at == '_'))
		l->at++;
	lull_str_clear(name);
	lull_str_add(name, from, (size_t)(l->at - from));
}

static int take_quoted(struct line *l, struct lull_str *value, struct lull_err *err)
{
	for (l->at++; l->at < l->end && *l->at != '"'; l->at++) {
		char c = *l->at;

		if (c == '\\' && l->at + 1 < l->end) {
			c = *++l->at;
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		lull_str_add(value, &c, 1);
	}
	if (l->at == l->end)
		return lull_fail(err, LULL_E_FORMAT, "line %u: a quote is not closed", l->number);
	l->at++;
	return 0;
}

/* The next name=value. */
static int take_field(struct line *l, struct field *f, struct lull_err *err)
{
	const char *from;

	skip_blanks(l);
	take_name(l, &f->name);
	if (!f->name.len || l->at == l->end || *l->at != '=')
		return lull_fail(err, LULL_E_FORMAT, "line %u: expected name=value at \"%.*s\"",
				 l->number, (int)(l->end - l->at), l->at);
	l->at++;
	lull_str_clear(&f->value);
	if (l->at < l->end && *l->at == '"')
		return take_quoted(l, &f->value, err);
	from = l->at;
	while (l->at < l->end && *l->at != ' ' && *l->at != '\t')
		l->at++;
	lull_str_add(&f->value, from, (size_t)(l->at - from));
	return 0;
}

/* ---- numbers ---- */

static bool parse_time(const char *text, u64 *ns)
{
	struct lull_err ignored; /* the caller says what is wrong, with the line */

	return !lull_duration_parse(text, ns, &ignored);
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n >= m && strcmp(text + n - m, suffix) == 0;
}

static bool parse_number(const struct lull_col_desc *col, const char *text, u64 *bits)
{
	char *end;
	f64 real;

	if (!*text)
		return false;
	if (col->is_float) {
		real = strtod(text, &end);
		memcpy(bits, &real, sizeof(real));
		return !*end;
	}
	if (ends_with(col->name, "_ns") && parse_time(text, bits))
		return true;
	if (*text == '-' && !col->is_signed)
		return false;
	*bits = *text == '-' ? (u64)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	return !*end && (col->size_bytes == 8 || *bits >> 8 * col->size_bytes == 0);
}

/* ---- rows ---- */

/* The column called `name`, with or without its unit. */
static const struct lull_col_desc *find_column(const struct lull_table_desc *t, const char *name)
{
	static const char *const units[] = { "", "_ns", "_bytes", "_hz" };
	size_t len = strlen(name);

	for (unsigned c = 0; c < t->n_cols; c++)
		for (size_t u = 0; u < LULL_COUNT_OF(units); u++)
			if (strncmp(t->cols[c].name, name, len) == 0 &&
			    strcmp(t->cols[c].name + len, units[u]) == 0)
				return &t->cols[c];
	return NULL;
}

/* Store an integer in a field of 1, 2, 4 or 8 bytes. */
static void store(u8 *at, u64 bits, u8 size_bytes)
{
	switch (size_bytes) {
	case 1:
		*at = (u8)bits;
		return;
	case 2:
		memcpy(at, &(u16){ (u16)bits }, sizeof(u16));
		return;
	case 4:
		memcpy(at, &(u32){ (u32)bits }, sizeof(u32));
		return;
	default:
		memcpy(at, &bits, sizeof(bits));
	}
}

static int set_field(struct lull_writer *w, const struct lull_table_desc *t, const struct field *f,
		     u8 *row, unsigned number, struct lull_err *err)
{
	const struct lull_col_desc *col = find_column(t, lull_str_text(&f->name));
	u64 bits;

	if (!col)
		return lull_fail(err, LULL_E_FORMAT, "line %u: table %s has no column %s", number,
				 t->name, lull_str_text(&f->name));
	if (strcmp(col->type, "str") == 0)
		bits = lull_writer_string(w, lull_str_text(&f->value), f->value.len);
	else if (!parse_number(col, lull_str_text(&f->value), &bits))
		return lull_fail(err, LULL_E_FORMAT, "line %u: %s=%s is not a %s", number,
				 col->name, lull_str_text(&f->value), col->type);
	store(row + col->row_off, bits, col->size_bytes);
	return 0;
}

static int set_fields(struct lull_writer *w, const struct lull_table_desc *t, struct line *l,
		      u8 *row, struct lull_err *err)
{
	struct field f = { LULL_STR_INIT, LULL_STR_INIT };
	int rc = 0;

	while (!rc && !is_done(l)) {
		rc = take_field(l, &f, err);
		if (!rc)
			rc = set_field(w, t, &f, row, l->number, err);
	}
	lull_str_release(&f.name);
	lull_str_release(&f.value);
	return rc;
}

/* The row id after `#`; 0 if the line has none. */
static int take_id(struct lull_writer *w, const struct lull_table_desc *t, struct line *l, u32 *id,
		   struct lull_err *err)
{
	char *end;

	*id = 0;
	if (l->at == l->end || *l->at != '#')
		return 0;
	*id = (u32)strtoul(l->at + 1, &end, 10);
	l->at = end;
	if (t->kind != LULL_KIND_DIM || *id == 0 ||
	    *id > lull_writer_n_dim(w, (enum lull_table)t->id))
		return lull_fail(err, LULL_E_FORMAT, "line %u: there is no %s#%u", l->number,
				 t->name, *id);
	return 0;
}

static int add_row(struct lull_writer *w, const struct lull_table_desc *t, struct line *l,
		   struct lull_err *err)
{
	enum lull_table table = (enum lull_table)t->id;
	u8 *row = lull_alloc(1, t->row_bytes);
	u32 id;
	int rc = take_id(w, t, l, &id, err);

	if (!rc && id)
		memcpy(row, lull_writer_dim(w, table, id), t->row_bytes);
	if (!rc)
		rc = set_fields(w, t, l, row, err);
	if (!rc && id)
		lull_writer_set_dim(w, table, id, row);
	else if (!rc && t->kind == LULL_KIND_DIM)
		lull_writer_add_dim(w, table, row);
	else if (!rc)
		lull_writer_add(w, table, row);
	free(row);
	return rc;
}

static int add_line(struct lull_writer *w, struct line *l, struct lull_err *err)
{
	struct lull_str name = LULL_STR_INIT;
	const struct lull_table_desc *t;
	int rc = 0;

	if (is_done(l))
		return 0;
	take_name(l, &name);
	t = lull_table_by_name(lull_str_text(&name));
	if (t)
		rc = add_row(w, t, l, err);
	else if (strcmp(lull_str_text(&name), "flush") == 0)
		rc = lull_writer_flush(w, err);
	else if (strcmp(lull_str_text(&name), "file") != 0)
		rc = lull_fail(err, LULL_E_FORMAT, "line %u: there is no table \"%s\"", l->number,
			       lull_str_text(&name));
	lull_str_release(&name);
	return rc;
}

/* The next line of *text, which is moved past it; false at the end. */
static bool next_line(const char **text, struct line *l)
{
	const char *end;

	if (!**text)
		return false;
	end = strchr(*text, '\n');
	l->at = *text;
	l->end = end ? end : *text + strlen(*text);
	l->number++;
	*text = end ? end + 1 : l->end;
	return true;
}

int lull_text_add(struct lull_writer *w, const char *text, struct lull_err *err)
{
	struct line l = { .number = 0 };
	int rc = 0;

	while (!rc && next_line(&text, &l))
		rc = add_line(w, &l, err);
	return rc;
}

/* ---- the `file` line ---- */

static int set_info(struct lull_file_info *info, const struct field *f, unsigned number,
		    struct lull_err *err)
{
	const char *name = lull_str_text(&f->name), *value = lull_str_text(&f->value);
	u64 *to = strcmp(name, "epoch") == 0 ? &info->epoch_ns
		  : strcmp(name, "utc") == 0 ? &info->epoch_utc_ns
					     : NULL;

	if (to && parse_time(value, to))
		return 0;
	if (strcmp(name, "flags") == 0) {
		info->flags = (u16)strtoul(value, NULL, 0);
		return 0;
	}
	return lull_fail(err, LULL_E_FORMAT, "line %u: %s=%s is not understood", number, name,
			 value);
}

/* Find the `file` line, if there is one. */
static int take_info(const char *text, struct lull_file_info *info, struct lull_err *err)
{
	struct field f = { LULL_STR_INIT, LULL_STR_INIT };
	struct line l = { .number = 0 };
	int rc = 0;

	while (next_line(&text, &l) && is_done(&l))
		;
	take_name(&l, &f.name);
	if (strcmp(lull_str_text(&f.name), "file") == 0)
		while (!rc && !is_done(&l)) {
			rc = take_field(&l, &f, err);
			if (!rc)
				rc = set_info(info, &f, l.number, err);
		}
	lull_str_release(&f.name);
	lull_str_release(&f.value);
	return rc;
}

int lull_text_write(const char *text, const char *path, struct lull_err *err)
{
	struct lull_file_info info = { 0 };
	struct lull_writer *w;
	int rc = take_info(text, &info, err);

	if (!rc)
		rc = lull_writer_open(&w, path, &info, err);
	if (rc)
		return rc;
	rc = lull_text_add(w, text, err);
	if (rc) {
		lull_writer_discard(w);
		return rc;
	}
	return lull_writer_seal(w, err);
}
