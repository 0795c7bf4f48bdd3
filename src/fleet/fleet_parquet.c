/*
 * fleet_parquet - a row for each report and cause, for DuckDB, pandas and Spark.
 *
 * A report that lost nothing, or cannot be read, has one row without a cause.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "export/parquet.h"
#include "fleet/fleet.h"

enum { FILE_NAME, JOB, HOST, STATE, TROUBLE, CAUSE, FIRST, N_TEXTS };
enum { RANK, START, ELAPSED, GPUS, GPU, STEPS, STEP, LOST, REQUESTS, P99, N_NUMBERS };

static const char *const text_names[N_TEXTS] = {
	[FILE_NAME] = "file",  [JOB] = "job",	  [HOST] = "host",	   [STATE] = "state",
	[TROUBLE] = "trouble", [CAUSE] = "cause", [FIRST] = "first_cause",
};

static const char *const number_names[N_NUMBERS] = {
	[RANK] = "rank",	  [START] = "start_utc_ns", [ELAPSED] = "elapsed_ns",
	[GPUS] = "gpus",	  [GPU] = "gpu_ns",	    [STEPS] = "steps",
	[STEP] = "step_ns",	  [LOST] = "lost_ns",	    [REQUESTS] = "requests",
	[P99] = "request_p99_ns",
};

/* Rows on their way to the file. */
struct rows {
	struct lull_parquet *to;
	struct lull_intern texts;
	u32 ids[N_TEXTS][LULL_PARQUET_PAGE_ROWS];
	i64 numbers[N_NUMBERS][LULL_PARQUET_PAGE_ROWS];
	size_t n;
};

static const char *text_of(void *ctx, u32 id, size_t *len)
{
	const char *text = lull_intern_get(ctx, id);

	*len = strlen(text);
	return text;
}

static void flush(struct rows *r)
{
	if (!r->n)
		return;
	for (size_t i = 0; i < N_TEXTS; i++)
		lull_parquet_texts(r->to, i, r->ids[i], r->n);
	for (size_t i = 0; i < N_NUMBERS; i++)
		lull_parquet_numbers(r->to, N_TEXTS + i, r->numbers[i], r->n);
	lull_parquet_end_block(r->to);
	r->n = 0;
}

static void add(struct rows *r, const struct lull_fleet_entry *e, const char *cause, u64 lost_ns)
{
	const char *texts[N_TEXTS] = {
		[FILE_NAME] = e->file,
		[JOB] = e->job,
		[HOST] = e->host,
		[STATE] = lull_fleet_state_name(e->state),
		[TROUBLE] = e->trouble,
		[CAUSE] = cause,
		[FIRST] = e->first < 0 ? "" : lull_causes[e->first]->id,
	};
	const i64 numbers[N_NUMBERS] = {
		[RANK] = e->rank,
		[START] = (i64)e->start_utc_ns,
		[ELAPSED] = (i64)e->elapsed_ns,
		[GPUS] = e->n_gpus,
		[GPU] = (i64)e->gpu_ns,
		[STEPS] = (i64)e->n_steps,
		[STEP] = (i64)e->step_ns,
		[LOST] = (i64)lost_ns,
		[REQUESTS] = (i64)e->n_requests,
		[P99] = (i64)e->p99_ns,
	};

	for (size_t i = 0; i < N_TEXTS; i++)
		r->ids[i][r->n] = lull_intern_add(&r->texts, texts[i], strlen(texts[i]));
	for (size_t i = 0; i < N_NUMBERS; i++)
		r->numbers[i][r->n] = numbers[i];
	if (++r->n == LULL_PARQUET_PAGE_ROWS)
		flush(r);
}

static void add_entry(struct rows *r, const struct lull_fleet_entry *e)
{
	bool has_any = false;

	for (int i = 0; i < LULL_N_CAUSES; i++) {
		if (!e->lost_ns[i])
			continue;
		add(r, e, lull_causes[i]->id, e->lost_ns[i]);
		has_any = true;
	}
	if (!has_any)
		add(r, e, "", 0);
}

static int write_rows(const struct lull_fleet *f, FILE *to, struct lull_err *err)
{
	struct lull_parquet_column columns[N_TEXTS + N_NUMBERS];
	struct rows *r = lull_alloc(1, sizeof(*r));
	int rc;

	lull_intern_init(&r->texts);
	lull_intern_add(&r->texts, "", 0); /* 0 is none */
	for (size_t i = 0; i < N_TEXTS; i++)
		columns[i] = (struct lull_parquet_column){ text_names[i], LULL_PARQUET_TEXT,
							   text_of, &r->texts };
	for (size_t i = 0; i < N_NUMBERS; i++)
		columns[N_TEXTS + i] = (struct lull_parquet_column){ number_names[i],
								     LULL_PARQUET_I64, NULL, NULL };
	r->to = lull_parquet_new(to, columns, LULL_COUNT_OF(columns));
	lull_parquet_meta(r->to, "lull.version", LULL_VERSION);
	for (size_t i = 0; i < f->entries.n; i++)
		add_entry(r, lull_vec_get(&f->entries, i));
	flush(r);
	rc = lull_parquet_finish(r->to, err);
	lull_intern_release(&r->texts);
	free(r);
	return rc;
}

int lull_fleet_write_parquet(const struct lull_fleet *f, const char *path, struct lull_err *err)
{
	struct lull_whole_file_rules rules = { .is_overwriting = true };
	struct lull_whole_file place;
	FILE *to;
	int rc = lull_whole_file_begin(&place, path, &rules, err);

	if (rc)
		return rc;
	to = fopen(place.part, "we");
	if (!to) {
		rc = lull_fail_errno(err, "creating %s", place.part);
	} else {
		rc = write_rows(f, to, err);
		if (fclose(to) != 0 && !rc)
			rc = lull_fail_errno(err, "writing %s", place.part);
	}
	return lull_whole_file_end(&place, rc, err);
}
