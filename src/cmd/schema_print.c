#include "cmd/schema_print.h"

#include "text/out.h"
#include "trace/schema.h"

static int print_columns(const struct lull_table_desc *t, FILE *to, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Column", .kind = LULL_OUT_TEXT },
		{ .name = "Type", .kind = LULL_OUT_TEXT },
		{ .name = "Meaning", .kind = LULL_OUT_TEXT },
	};
	const struct lull_out_options options = { .sort_ix = LULL_OUT_UNSORTED,
						  .has_no_header = true };
	struct lull_out out;
	int rc;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (unsigned c = 0; c < t->n_cols; c++) {
		lull_out_row(&out);
		lull_out_text(&out, t->cols[c].name);
		lull_out_text(&out, t->cols[c].type);
		lull_out_text(&out, t->cols[c].doc);
	}
	rc = lull_out_write(&out, &options, to, err);
	lull_out_release(&out);
	return rc;
}

int lull_schema_print(const struct lull_table_desc *tables, size_t n, FILE *to,
		      struct lull_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		fprintf(to, "%s%s: %s\n", i ? "\n" : "", tables[i].name, tables[i].doc);
		rc = print_columns(&tables[i], to, err);
	}
	return rc;
}

static void print_table(const struct lull_table_desc *t, FILE *to)
{
	fprintf(to, "### %s (%u, %s)\n\nOne row is %s.\n\n", t->name, t->id,
		lull_schema_kind_name(t->kind), t->doc);
	fputs("| id | column | type | stored as | meaning |\n|--:|---|---|---|---|\n", to);
	for (unsigned c = 0; c < t->n_cols; c++) {
		const struct lull_col_desc *col = &t->cols[c];

		fprintf(to, "| %u | `%s` | %s | %s | %s |\n", col->id, col->name, col->type,
			lull_schema_encoding_name(col->encoding), col->doc);
	}
	putc('\n', to);
}

void lull_schema_print_markdown(const struct lull_table_desc *tables, size_t n, FILE *to)
{
	for (size_t i = 0; i < n; i++)
		print_table(&tables[i], to);
}
