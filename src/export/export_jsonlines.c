/*
 * jsonlines: one JSON object per row, every table and column of the report.
 *
 *	{"table":"lane","id":1,"kind":1,"process":1,"tid":10,"name":"main",...}
 *	{"table":"range","start_ns":100000,"dur_ns":20000,"depth":0,"lane":1,"label":1,...}
 *
 * Strings are resolved, null if there is none; references to other tables stay row ids, which their
 * rows carry as "id". Dimensions come first, so a program that reads line by line knows what facts
 * refer to.
 */
#include "export/export.h"

#include <string.h>

#include "base/bytes.h"
#include "text/json.h"

static void write_value(struct lull_json *j, struct lull_reader *r, const struct lull_col_desc *col,
			const u8 *at)
{
	u64 v = lull_load(at, col->size_bytes);

	if (lull_export_is_text(col)) {
		size_t len;
		const char *text = lull_reader_string(r, (u32)v, &len);

		if (v)
			lull_json_bytes(j, text, len);
		else
			lull_json_null(j);
	} else if (col->is_float) {
		f64 real;

		memcpy(&real, &v, sizeof(real));
		lull_json_f64(j, real);
	} else if (col->is_signed) {
		lull_json_i64(j, (i64)v);
	} else {
		lull_json_u64(j, v);
	}
}

static void write_row(void *ctx, struct lull_reader *r, const struct lull_export_row *row)
{
	FILE *to = ctx;
	struct lull_json j;

	lull_json_init(&j, to);
	lull_json_object(&j);
	lull_json_key(&j, "table");
	lull_json_text(&j, row->table->name);
	if (row->id) {
		lull_json_key(&j, "id");
		lull_json_u64(&j, row->id);
	}
	for (unsigned c = 0; c < row->table->n_cols; c++) {
		lull_json_key(&j, row->table->cols[c].name);
		write_value(&j, r, &row->table->cols[c], row->values[c]);
	}
	lull_json_end(&j);
	putc('\n', to);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	static const u8 order[] = { LULL_KIND_DIM, LULL_KIND_FACT };
	const struct lull_schema *schema = lull_reader_schema(r);

	for (size_t k = 0; k < LULL_COUNT_OF(order); k++)
		for (size_t t = 0; t < schema->n; t++)
			if (schema->tables[t].kind == order[k] &&
			    lull_export_wants(options, schema->tables[t].name))
				lull_export_rows(r, &schema->tables[t], lull_export_window(options),
						 write_row, to);
	return lull_export_finish(to, err);
}

const struct lull_export lull_export_jsonlines = {
	.name = "jsonlines",
	.suffix = ".jsonl",
	.summary = "one JSON object per row",
	.write = write_report,
};
