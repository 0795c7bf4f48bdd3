/*
 * table: any report of `lull stats`, as columns and rows.
 *
 *	table?name=cuda_gpu_kern_sum&from=0&to=1000000&n=500[&args=base]
 *
 * A report that lacks its data answers with the sentence that says what is missing.
 */
#include "page/page.h"

#include <string.h>

#include "text/out.h"
#include "base/str.h"
#include "report/report.h"

#define MAX_ROWS     20000u
#define DEFAULT_ROWS 1000u

static const char *kind_of(const struct lull_out_column *column)
{
	static const char *const names[] = {
		[LULL_OUT_TEXT] = "text",   [LULL_OUT_INT] = "int",	[LULL_OUT_ID] = "id",
		[LULL_OUT_FLOAT] = "f64",   [LULL_OUT_PERCENT] = "pct", [LULL_OUT_NS] = "ns",
		[LULL_OUT_BYTES] = "bytes",
	};

	return names[column->kind];
}

static void put_columns(struct lull_json *j, const struct lull_report *report)
{
	lull_json_key(j, "columns");
	lull_json_array(j);
	for (size_t c = 0; c < report->n_columns; c++) {
		const struct lull_out_column *column = &report->columns[c];

		lull_json_object(j);
		lull_page_pair_text(j, "name", column->name);
		lull_page_pair_text(j, "kind", kind_of(column));
		if (column->unit)
			lull_page_pair_text(j, "unit", column->unit);
		if (column->doc)
			lull_page_pair_text(j, "doc", column->doc);
		lull_page_pair_u64(j, "decimals", (u64)column->decimals);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_cell(struct lull_json *j, const struct lull_out *out,
		     const struct lull_out_cell *cell)
{
	switch (cell->kind) {
	case LULL_OUT_CELL_TEXT:
		lull_json_text(j, lull_out_cell_text(out, cell));
		break;
	case LULL_OUT_CELL_I64:
		lull_json_i64(j, cell->i);
		break;
	case LULL_OUT_CELL_F64:
		lull_json_f64(j, cell->f);
		break;
	case LULL_OUT_CELL_EMPTY:
		lull_json_null(j);
		break;
	}
}

static void put_rows(struct lull_json *j, const struct lull_out *out, size_t limit)
{
	const struct lull_out_cell *cells = out->cells.at;
	size_t n = lull_out_len(out);

	lull_json_key(j, "rows");
	lull_json_array(j);
	for (size_t i = 0; i < n && i < limit; i++) {
		lull_json_array(j);
		for (size_t c = 0; c < out->n_columns; c++)
			put_cell(j, out, &cells[i * out->n_columns + c]);
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_page_pair_u64(j, "n", n);
}

static int put_report(struct lull_json *j, struct lull_question *q,
		      const struct lull_report *report, struct lull_err *err)
{
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	struct lull_str why = LULL_STR_INIT;
	struct lull_span span;
	struct lull_out out;
	u64 limit;
	int rc = LULL_OK;

	options.args = lull_args_get(q->args, "args");
	if (lull_args_span(q->args, q->report->timeline->origin_ns, &span, err) ||
	    lull_args_u64(q->args, "n", MAX_ROWS, DEFAULT_ROWS, &limit, err) ||
	    lull_report_check_args(report, options.args, err))
		return err->code;
	options.from_ns = span.from_ns;
	options.to_ns = span.to_ns;
	lull_out_init(&out, report->columns, report->n_columns);
	if (!lull_report_has_data(report, q->reader, &why))
		lull_page_pair_text(j, "why", lull_str_text(&why));
	else
		rc = report->run(q->reader, &out, &options, err);
	if (!rc && !why.len && !lull_out_len(&out))
		lull_page_pair_text(j, "why", report->empty ? report->empty : "no rows");
	if (!rc)
		put_rows(j, &out, limit);
	lull_out_release(&out);
	lull_str_release(&why);
	return rc;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	const char *name = lull_args_get(q->args, "name"), *nearest;
	const struct lull_report *report =
		lull_report_find(lull_reports, name ? name : "", &nearest);
	struct lull_json j;
	int rc;

	if (!report)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no such report");
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_text(&j, "name", report->name);
	lull_page_pair_text(&j, "title", report->display);
	lull_page_pair_text(&j, "summary", report->summary);
	put_columns(&j, report);
	rc = put_report(&j, q, report, err);
	lull_json_end(&j);
	return rc;
}

const struct lull_answer lull_answer_table = {
	.name = "table",
	.type = "application/json",
	.is_slow = true,
	.run = run,
};
