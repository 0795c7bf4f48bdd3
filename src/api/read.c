/*
 * The library of the reader, as include/lull_read.h promises it.
 *
 * The rest of lull ends the process when memory is gone. Here that is a jump back to
 * lull_read_do(): what the call held is lost, and so is the report, but not somebody's program.
 */
#include "api/read_int.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "cmd/losses.h"
#include "import/import.h"
#include "trace/input.h"

/* The call that this thread is in. */
static _Thread_local struct {
	jmp_buf *way_out;
	struct lull_read *report;
	char sentence[128];
} now;

static void give_up(const char *sentence)
{
	if (!now.way_out)
		return;
	strncpy(now.sentence, sentence, sizeof(now.sentence) - 1);
	longjmp(*now.way_out, 1);
}

static void keep_warning(const char *warning)
{
	if (!now.report)
		return;
	/* Each answer has the same warnings; once is enough. */
	if (strstr(lull_str_text(&now.report->warnings), warning))
		return;
	lull_str_addf(&now.report->warnings, "%s\n", warning);
}

static void settle_in(void)
{
	lull_mem_give_up(give_up);
	lull_log_divert(keep_warning);
	lull_input_never_map();
}

/* Each call may have found out more about the file. */
static void warn(struct lull_read *r)
{
	if (!r->reader)
		return;
	lull_losses_warn(r->reader, "the file");
	lull_losses_warn_damage(r->reader, "the file");
}

static int run(struct lull_read *r, lull_read_call *call, void *ctx, struct lull_err *err)
{
	jmp_buf way_out, *before = now.way_out;
	struct lull_read *report = now.report;
	volatile int rc;

	now.report = r;
	now.way_out = &way_out;
	if (setjmp(way_out)) {
		r->is_broken = true;
		rc = lull_fail(err, LULL_E_NOMEM, "%s", now.sentence);
	} else {
		rc = call(r, ctx, err);
		warn(r);
	}
	now.way_out = before;
	now.report = report;
	return rc;
}

int lull_read_do(struct lull_read *r, lull_read_call *call, void *ctx,
		 struct lull_read_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lull_err err = { LULL_OK, "" };
	int rc;

	pthread_once(&once, settle_in);
	if (r->is_broken)
		rc = lull_fail(&err, LULL_E_NOMEM,
			       "%s cannot be used any more: there was no memory in an earlier call",
			       r->path);
	else
		rc = run(r, call, ctx, &err);
	error->code = rc < 0 ? rc : 0;
	snprintf(error->text, sizeof(error->text), "%s", rc < 0 ? err.msg : "");
	return error->code;
}

/* ---- the report ---- */

LULL_READ_EXPORT int lull_read_interface(void)
{
	return LULL_READ_INTERFACE;
}

LULL_READ_EXPORT const char *lull_read_version(void)
{
	return LULL_VERSION;
}

static int open_report(struct lull_read *r, void *ctx, struct lull_err *err)
{
	(void)ctx;
	return lull_import_open(r->path, &r->reader, err);
}

LULL_READ_EXPORT int lull_read_open(const char *path, struct lull_read **report,
				    struct lull_read_error *error)
{
	struct lull_read *r = calloc(1, sizeof(*r));

	*report = NULL;
	if (r)
		r->path = strdup(path);
	if (!r || !r->path) {
		free(r);
		error->code = LULL_READ_NO_MEMORY;
		snprintf(error->text, sizeof(error->text), "out of memory");
		return error->code;
	}
	if (lull_read_do(r, open_report, NULL, error)) {
		lull_read_close(r);
		return error->code;
	}
	*report = r;
	return LULL_READ_OK;
}

LULL_READ_EXPORT void lull_read_close(struct lull_read *r)
{
	if (!r)
		return;
	/* In what state a broken one is nobody knows: better to keep it. */
	if (!r->is_broken) {
		lull_query_close(r->query);
		lull_reader_close(r->reader);
	}
	lull_str_release(&r->warnings);
	free(r->path);
	free(r);
}

LULL_READ_EXPORT const char *lull_read_warnings(struct lull_read *r)
{
	size_t from = r->told_len;

	r->told_len = r->warnings.len;
	return lull_str_text(&r->warnings) + from;
}

/* ---- rows ---- */

struct ask {
	const char *what; /* SQL, a table, a report of stats */
	const char *const *columns;
	size_t n_columns;
	double timeout_s;
	struct lull_read_rows **rows;
};

static int need_query(struct lull_read *r, struct lull_err *err)
{
	return r->query ? LULL_OK : lull_query_open(&r->query, r->reader, err);
}

static int ask_sql(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct ask *ask = ctx;
	struct lull_query_limits limits = {
		.timeout_ns = ask->timeout_s > 0 ? (u64)(ask->timeout_s * (f64)LULL_NS_PER_S) : 0,
	};
	struct lull_frame frame;

	if (need_query(r, err) || lull_frame_query(&frame, r->query, ask->what, &limits, err))
		return err->code;
	*ask->rows = lull_read_rows_new(&frame);
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_sql(struct lull_read *r, const char *sql, double timeout_s,
				   struct lull_read_rows **rows, struct lull_read_error *error)
{
	struct ask ask = { .what = sql, .timeout_s = timeout_s, .rows = rows };

	return lull_read_do(r, ask_sql, &ask, error);
}

static int ask_table(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct ask *ask = ctx;
	struct lull_frame frame;

	if (need_query(r, err) ||
	    lull_frame_table(&frame, r->query, ask->what, ask->columns, ask->n_columns, err))
		return err->code;
	*ask->rows = lull_read_rows_new(&frame);
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_table(struct lull_read *r, const char *table,
				     const char *const *columns, size_t n_columns,
				     struct lull_read_rows **rows, struct lull_read_error *error)
{
	struct ask ask = {
		.what = table, .columns = columns, .n_columns = n_columns, .rows = rows
	};

	return lull_read_do(r, ask_table, &ask, error);
}

static int ask_tables(struct lull_read *r, void *ctx, struct lull_err *err)
{
	const struct ask *ask = ctx;
	struct lull_frame frame;

	if (need_query(r, err))
		return err->code;
	lull_frame_catalog(&frame, r->query);
	*ask->rows = lull_read_rows_new(&frame);
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_tables(struct lull_read *r, struct lull_read_rows **rows,
				      struct lull_read_error *error)
{
	struct ask ask = { .rows = rows };

	return lull_read_do(r, ask_tables, &ask, error);
}

LULL_READ_EXPORT void lull_read_stop(struct lull_read *r)
{
	if (r->query)
		lull_query_stop(r->query);
}

static int set_watch(struct lull_read *r, void *ctx, struct lull_err *err)
{
	void (**watch)(void) = ctx;

	if (need_query(r, err))
		return err->code;
	lull_query_watch(r->query, *watch);
	return LULL_OK;
}

LULL_READ_EXPORT int lull_read_watch(struct lull_read *r, void (*watch)(void),
				     struct lull_read_error *error)
{
	return lull_read_do(r, set_watch, &watch, error);
}
