/*
 * csv: comma-separated values as in RFC 4180, one file with a header line for each table.
 *
 * Tables have different columns, so several of them become a folder; on standard output they are a
 * sequence: header, rows, an empty line. Tables without rows are left out unless they were asked
 * for. Strings are resolved; references stay row ids, and rows of dimensions have theirs in the
 * first column.
 */
#include "export/export.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"

static void write_text(FILE *to, const char *text, size_t len)
{
	if (!memchr(text, '"', len) && !memchr(text, ',', len) && !memchr(text, '\n', len) &&
	    !memchr(text, '\r', len)) {
		fwrite(text, 1, len, to);
		return;
	}
	putc('"', to);
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			putc('"', to);
		putc(text[i], to);
	}
	putc('"', to);
}

static void write_value(FILE *to, struct lull_reader *r, const struct lull_col_desc *col,
			const u8 *at)
{
	u64 v = lull_load(at, col->size_bytes);

	if (lull_export_is_text(col)) {
		size_t len;
		const char *text = lull_reader_string(r, (u32)v, &len);

		write_text(to, text, len);
	} else if (col->is_float) {
		f64 real;

		memcpy(&real, &v, sizeof(real));
		fprintf(to, "%.17g", real);
	} else if (col->is_signed) {
		fprintf(to, "%" PRId64, (i64)v);
	} else {
		fprintf(to, "%" PRIu64, v);
	}
}

static void write_row(void *ctx, struct lull_reader *r, const struct lull_export_row *row)
{
	FILE *to = ctx;

	if (row->id)
		fprintf(to, "%u,", row->id);
	for (unsigned c = 0; c < row->table->n_cols; c++) {
		if (c)
			putc(',', to);
		write_value(to, r, &row->table->cols[c], row->values[c]);
	}
	putc('\n', to);
}

static void write_header(FILE *to, const struct lull_table_desc *table)
{
	if (table->kind == LULL_KIND_DIM)
		fputs("id,", to);
	for (unsigned c = 0; c < table->n_cols; c++)
		fprintf(to, "%s%s", c ? "," : "", table->cols[c].name);
	putc('\n', to);
}

static void write_table(struct lull_reader *r, const struct lull_table_desc *table,
			const struct lull_export_options *options, FILE *to)
{
	write_header(to, table);
	lull_export_rows(r, table, lull_export_window(options), write_row, to);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	const struct lull_schema *schema = lull_reader_schema(r);
	bool has_any = false;

	for (size_t t = 0; t < schema->n; t++) {
		if (!lull_export_holds(r, &schema->tables[t], options))
			continue;
		if (has_any)
			putc('\n', to);
		has_any = true;
		write_table(r, &schema->tables[t], options, to);
	}
	return lull_export_finish(to, err);
}

static int write_folder(struct lull_reader *r, const struct lull_export_options *options,
			const char *path, struct lull_err *err)
{
	const struct lull_schema *schema = lull_reader_schema(r);
	int rc = LULL_OK;

	if (mkdir(path, 0777))
		return lull_fail_errno(err, "creating the folder");
	for (size_t t = 0; t < schema->n && !rc; t++) {
		FILE *to;

		if (!lull_export_holds(r, &schema->tables[t], options))
			continue;
		rc = lull_export_member(path, schema->tables[t].name, ".csv", &to, err);
		if (rc)
			return rc;
		write_table(r, &schema->tables[t], options, to);
		rc = lull_export_finish(to, err);
		if (fclose(to) && !rc)
			rc = lull_fail_errno(err, "writing the export");
	}
	return rc;
}

const struct lull_export lull_export_csv = {
	.name = "csv",
	.suffix = ".csv",
	.summary = "comma-separated values: a file for one table, a folder for several",
	.write = write_report,
	.write_path = write_folder,
	.member_suffix = ".csv",
};
