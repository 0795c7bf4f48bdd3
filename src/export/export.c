#include "export/export.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "base/whole_file.h"
#include "base/str.h"

#define EXPORT(name) extern const struct lull_export lull_export_##name;
#include "export/exports.def"
#undef EXPORT

const struct lull_export *const lull_exports[] = {
#define EXPORT(name) &lull_export_##name,
#include "export/exports.def"
#undef EXPORT
	NULL,
};

const struct lull_export *lull_export_find(const char *name)
{
	for (const struct lull_export *const *e = lull_exports; *e; e++)
		if (strcmp((*e)->name, name) == 0)
			return *e;
	return NULL;
}

/* Formats of nsys by their names there: ours of the same use, or what to use instead. */
static const struct {
	const char *name, *ours, *instead;
} nsys_formats[] = {
	{ "parquetdir", "parquet", NULL },
	{ "json", "jsonlines", NULL },
	{ "arrow", NULL, "parquet is read by the same programs" },
	{ "arrowdir", NULL, "parquet is read by the same programs" },
	{ "hdf", NULL, "parquet and sqlite contain the same tables" },
	{ "text", NULL, "jsonlines is text, one row per line" },
	{ "info", NULL, "`lull info` says what a report contains" },
};

int lull_export_choose(const char *name, const struct lull_export **format, struct lull_err *err)
{
	const char *instead = NULL;

	*format = lull_export_find(name);
	for (size_t i = 0; !*format && i < LULL_COUNT_OF(nsys_formats); i++) {
		if (strcmp(nsys_formats[i].name, name) != 0)
			continue;
		instead = nsys_formats[i].instead;
		if (nsys_formats[i].ours)
			*format = lull_export_find(nsys_formats[i].ours);
	}
	if (*format)
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE, "there is no format %s; %s", name,
			 instead ? instead : "`lull export --list` shows them");
}

static void dim_rows(struct lull_reader *r, struct lull_export_row *row, lull_export_row_fn *fn,
		     void *ctx)
{
	size_t n;
	const u8 *at = lull_reader_dim_rows(r, row->table, &n);

	for (size_t i = 0; i < n; i++, at += row->table->row_bytes) {
		row->id = (u32)i + 1;
		for (unsigned c = 0; c < row->table->n_cols; c++)
			row->values[c] = at + row->table->cols[c].row_off;
		fn(ctx, r, row);
	}
}

bool lull_export_makes_folder(const struct lull_export *format,
			      const struct lull_export_options *options)
{
	return format->member_suffix && !(format->write && options->tables.n == 1);
}

struct lull_span lull_export_window(const struct lull_export_options *options)
{
	return (struct lull_span){ options->from_ns, options->to_ns ? options->to_ns : UINT64_MAX };
}

/* A column of times, or NULL: a file may bring a schema in which it is something else. */
static const u64 *times(const struct lull_table_desc *table, const void *const *cols,
			const char *name)
{
	int ix = lull_table_column(table, name);

	return ix >= 0 && table->cols[ix].size_bytes == sizeof(u64) ? cols[ix] : NULL;
}

size_t lull_export_select(const struct lull_table_desc *table, const void *const *cols, size_t n,
			  struct lull_span window, u32 *rows)
{
	const u64 *start_ns = times(table, cols, "start_ns"),
		  *dur_ns = times(table, cols, "dur_ns");
	size_t n_held = 0;

	for (size_t i = 0; i < n; i++) {
		rows[n_held] = (u32)i;
		n_held += !start_ns || lull_span_holds(window, start_ns[i], dur_ns ? dur_ns[i] : 0);
	}
	return n_held;
}

static void fact_rows(struct lull_reader *r, struct lull_export_row *row, struct lull_span window,
		      lull_export_row_fn *fn, void *ctx)
{
	const void *cols[LULL_MAX_COLS];
	struct lull_vec held;
	struct lull_cursor cursor;
	size_t n;

	lull_vec_init(&held, sizeof(u32));
	lull_cursor_init_table(&cursor, r, row->table, window.from_ns, window.to_ns);
	while ((n = lull_cursor_next(&cursor, cols)) > 0) {
		u32 *rows;

		if (n > held.n)
			lull_vec_extend(&held, n - held.n);
		rows = held.at;
		n = lull_export_select(row->table, cols, n, window, rows);
		for (size_t i = 0; i < n; i++) {
			for (unsigned c = 0; c < row->table->n_cols; c++)
				row->values[c] = (const u8 *)cols[c] +
						 (size_t)rows[i] * row->table->cols[c].size_bytes;
			fn(ctx, r, row);
		}
	}
	lull_cursor_release(&cursor);
	lull_vec_release(&held);
}

void lull_export_rows(struct lull_reader *r, const struct lull_table_desc *table,
		      struct lull_span window, lull_export_row_fn *fn, void *ctx)
{
	struct lull_export_row row = { .table = table };

	if (table->kind == LULL_KIND_DIM)
		dim_rows(r, &row, fn, ctx);
	else
		fact_rows(r, &row, window, fn, ctx);
}

bool lull_export_is_text(const struct lull_col_desc *col)
{
	return strcmp(col->type, "str") == 0;
}

bool lull_export_wants(const struct lull_export_options *options, const char *table)
{
	char *const *names = options->tables.at;

	for (size_t i = 0; i < options->tables.n; i++)
		if (strcmp(names[i], table) == 0)
			return true;
	return options->tables.n == 0;
}

bool lull_export_holds(const struct lull_reader *r, const struct lull_table_desc *table,
		       const struct lull_export_options *options)
{
	bool is_empty = lull_reader_stats(r, table->id).n_rows == 0;

	return lull_export_wants(options, table->name) && (!is_empty || options->tables.n);
}

int lull_export_check_tables(struct lull_reader *r, const struct lull_export_options *options,
			     struct lull_err *err)
{
	const struct lull_schema *schema = lull_reader_schema(r);
	char *const *names = options->tables.at;

	for (size_t i = 0; i < options->tables.n; i++) {
		size_t t = 0;

		while (t < schema->n && strcmp(schema->tables[t].name, names[i]) != 0)
			t++;
		if (t == schema->n)
			return lull_fail(err, LULL_E_NOT_FOUND,
					 "there is no table %s; `lull schema` lists them",
					 names[i]);
	}
	return 0;
}

int lull_export_member(const char *folder, const char *table, const char *suffix, FILE **to,
		       struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;

	for (const char *c = table; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return lull_fail(
				err, LULL_E_FORMAT,
				"the report has a table named \"%s\", which is not a valid name "
				"for a file; leave it out with --tables",
				table);
	lull_str_addf(&path, "%s/%s%s", folder, table, suffix);
	*to = fopen(lull_str_text(&path), "wxe");
	lull_str_release(&path);
	return *to ? LULL_OK : lull_fail_errno(err, "creating %s%s", table, suffix);
}

int lull_export_finish(FILE *to, struct lull_err *err)
{
	if (fflush(to) || ferror(to))
		return lull_fail_errno(err, "writing the export");
	return 0;
}

static int write_file(struct lull_reader *r, const struct lull_export *format,
		      const struct lull_export_options *options, const char *path,
		      struct lull_err *err)
{
	FILE *to = fopen(path, "we");
	int rc;

	if (!to)
		return lull_fail_errno(err, "creating the export");
	rc = format->write(r, options, to, err);
	if (fclose(to) && !rc)
		rc = lull_fail_errno(err, "writing the export");
	return rc;
}

/* A device or a pipe, such as /dev/null: nothing that could be renamed over. */
static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* True if a name says that the format's usual compression is not wanted: a.json, not a.json.gz. */
static bool is_plain_name(const struct lull_export *format, const char *path)
{
	size_t len = strlen(path), suffix_len = strlen(format->suffix);
	bool is_packed = suffix_len > 3 && !strcmp(format->suffix + suffix_len - 3, ".gz");

	return is_packed && !(len > 3 && !strcmp(path + len - 3, ".gz"));
}

int lull_export_write(struct lull_reader *r, const struct lull_export *format,
		      const struct lull_export_options *options,
		      const struct lull_export_target *target, struct lull_err *err)
{
	bool is_stdout = !strcmp(target->path, "-"),
	     is_stream = is_stdout || is_special(target->path);
	bool is_folder = !is_stream && lull_export_makes_folder(format, options);
	struct lull_whole_file_rules rules = { target->is_overwriting,
					       is_folder ? format->member_suffix : NULL };
	struct lull_export_options named = *options;
	struct lull_whole_file place;
	int rc;

	if (!format->write && is_stream)
		return lull_fail(err, LULL_E_USAGE,
				 "%s cannot be streamed; give the name of a %s with --output",
				 format->name, format->member_suffix ? "folder" : "file");
	named.is_plain |= is_plain_name(format, target->path);
	if (is_stdout)
		return format->write(r, &named, stdout, err);
	if (target->is_overwriting && is_stream)
		return write_file(r, format, &named, target->path, err);
	rc = lull_whole_file_begin(&place, target->path, &rules, err);
	if (rc)
		return rc;
	rc = !is_folder && format->write ? write_file(r, format, &named, place.part, err)
					 : format->write_path(r, &named, place.part, err);
	rc = lull_whole_file_end(&place, rc, err);
	return rc ? lull_err_wrap(err, "%s", target->path) : LULL_OK;
}
