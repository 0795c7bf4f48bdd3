/* Answers of the commands, into memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/read_int.h"
#include "base/mem.h"
#include "cause/why.h"
#include "cmd/diff_json.h"
#include "cmd/info.h"
#include "cmd/why_print.h"
#include "report/report.h"
#include "text/out.h"

LULL_READ_EXPORT void lull_read_free(char *answer)
{
	free(answer);
}

/* What `lull stats` would do, and where its rows go. */
struct stats {
	const char *spec;
	struct lull_read_rows **rows;
};

static void add_cell(struct lull_frame *f, size_t c, const struct lull_out *out,
		     const struct lull_out_cell *cell)
{
	switch (cell->kind) {
	case LULL_OUT_CELL_TEXT:
		lull_frame_add_text(f, c, lull_out_cell_text(out, cell), cell->text_len);
		return;
	case LULL_OUT_CELL_I64:
		lull_frame_add_int(f, c, cell->i);
		return;
	case LULL_OUT_CELL_F64:
		lull_frame_add_real(f, c, cell->f);
		return;
	default:
		lull_frame_add_null(f, c);
	}
}

/* The table of a report as columns with the headers that formats for programs show. */
static void frame_of(struct lull_frame *f, const struct lull_out *out)
{
	const struct lull_out_cell *cells = out->cells.at;
	struct lull_str header = LULL_STR_INIT;

	lull_frame_init(f, out->n_columns);
	for (size_t c = 0; c < out->n_columns; c++) {
		lull_str_clear(&header);
		lull_out_header(&header, &out->columns[c]);
		lull_frame_name(f, c, lull_str_text(&header));
	}
	for (size_t row = 0; row < lull_out_len(out); row++) {
		for (size_t c = 0; c < out->n_columns; c++)
			add_cell(f, c, out, &cells[row * out->n_columns + c]);
		lull_frame_end_row(f);
	}
	lull_str_release(&header);
}

static int find_stats(const char *spec, const struct lull_report **report, const char **args,
		      struct lull_err *err)
{
	char *name = lull_strndup(spec, strcspn(spec, ":"));
	const char *nearest = NULL;
	int rc = LULL_OK;

	*report = lull_report_find(lull_reports, name, &nearest);
	*args = spec[strlen(name)] ? spec + strlen(name) + 1 : NULL;
	if (*report)
		rc = lull_report_check_args(*report, *args, err);
	else
		rc = lull_fail(err, LULL_E_USAGE, "there is no report %s%s%s%s", name,
			       nearest ? "; did you mean "
				       : "; `lull stats --help-reports` lists them",
			       nearest ? nearest : "", nearest ? "?" : "");
	free(name);
	return rc;
}

static int ask_stats(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct stats *s = ctx;
	struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	const struct lull_report *report;
	struct lull_str why = LULL_STR_INIT;
	struct lull_frame frame;
	struct lull_out out;
	int rc;

	if (find_stats(s->spec, &report, &options.args, err))
		return err->code;
	if (!lull_report_has_data(report, r->reader, &why)) {
		rc = lull_fail(err, LULL_E_NOT_FOUND, "%s: the report does not contain %s",
			       report->name, lull_str_text(&why));
		lull_str_release(&why);
		return rc;
	}
	lull_str_release(&why);
	lull_out_init(&out, report->columns, report->n_columns);
	rc = lull_report_run(report, r->reader, &out, &options, err);
	if (!rc) {
		frame_of(&frame, &out);
		*s->rows = lull_read_rows_new(&frame);
	}
	lull_out_release(&out);
	return rc;
}

LULL_READ_EXPORT int lull_read_stats(struct lull_read *r, const char *name,
				     struct lull_read_rows **rows, struct lull_read_error *error)
{
	struct stats s = { name, rows };

	return lull_read_do(r, ask_stats, &s, error);
}

/* ---- why ---- */

struct why_call {
	const char *questions;
	int width;
	char **json, **text;
};

/* The questions of --what-if, one a line; `copy` is cut into pieces. */
static int answer(const struct lull_why *why, char *copy, struct lull_vec *answers,
		  struct lull_err *err)
{
	char *line;

	while ((line = strsep(&copy, "\n"))) {
		struct lull_why_answer *a;

		if (!*line)
			continue;
		a = lull_vec_push(answers);
		a->question = line;
		if (lull_why_ask(why, line, &a->prediction, err))
			return lull_err_wrap(err, "what_if");
	}
	return LULL_OK;
}

static void print_why(const struct why_call *call, const struct lull_why *why,
		      const struct lull_vec *answers, const char *path)
{
	size_t len;
	FILE *to;

	if (call->json) {
		to = lull_memstream(call->json, &len);
		lull_why_print_json(to, why, answers, path);
		fclose(to);
	}
	if (call->text) {
		to = lull_memstream(call->text, &len);
		lull_why_print(to, why, answers, call->width, false);
		fclose(to);
	}
}

static int ask_why(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct lull_why_options options = { .path = r->path };
	const struct why_call *call = ctx;
	struct lull_vec answers;
	struct lull_why why;
	char *copy;
	int rc = lull_why_run(&why, r->reader, &options, err);

	if (rc) {
		lull_err_wrap(err, "%s", r->path);
	} else {
		copy = lull_strdup(call->questions ? call->questions : "");
		lull_vec_init(&answers, sizeof(struct lull_why_answer));
		rc = answer(&why, copy, &answers, err);
		if (!rc)
			print_why(call, &why, &answers, r->path);
		lull_vec_release(&answers);
		free(copy);
	}
	lull_why_release(&why);
	return rc;
}

LULL_READ_EXPORT int lull_read_why(struct lull_read *r, const char *questions, int width,
				   char **json, char **text, struct lull_read_error *error)
{
	struct why_call call = { questions, width, json, text };

	return lull_read_do(r, ask_why, &call, error);
}

/* ---- the others ---- */

static int ask_info(struct lull_read *r, void *ctx, struct lull_err *err)
{
	size_t len;
	FILE *to = lull_memstream(ctx, &len);

	(void)err;
	lull_info_json(r->reader, r->path, to);
	fclose(to);
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_info(struct lull_read *r, char **json, struct lull_read_error *error)
{
	return lull_read_do(r, ask_info, json, error);
}

struct diff_call {
	const char *after;
	char **json;
};

static int ask_diff(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct diff_call *call = ctx;
	size_t len;
	FILE *to = lull_memstream(call->json, &len);
	int rc = lull_diff_json(r->path, call->after, to, err);

	fclose(to);
	if (rc) {
		free(*call->json);
		*call->json = NULL;
	}
	return rc;
}

LULL_READ_EXPORT int lull_read_diff(struct lull_read *before, struct lull_read *after, char **json,
				    struct lull_read_error *error)
{
	struct diff_call call = { after->path, json };

	return lull_read_do(before, ask_diff, &call, error);
}
