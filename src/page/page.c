#include "page/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/scratch.h"
#include "base/str.h"
#include "import/import.h"
#include "job/job.h"
#include "page/ahead.h"
#include "page/analyst.h"
#include "page/page_why.h"
#include "timeline/rounds_row.h"

#define ANSWER(name) extern const struct lull_answer lull_answer_##name;
#include "page/answers.def"
#undef ANSWER

const struct lull_answer *const lull_answers[] = {
#define ANSWER(name) &lull_answer_##name,
#include "page/answers.def"
#undef ANSWER
	NULL,
};

const struct lull_answer *lull_answer_find(const char *name)
{
	for (size_t i = 0; lull_answers[i]; i++)
		if (!strcmp(lull_answers[i]->name, name))
			return lull_answers[i];
	return NULL;
}

static int open_twice(struct lull_page_report *report, const char *path, struct lull_err *err)
{
	if (lull_reader_open(&report->quick, path, err))
		return err->code;
	if (lull_reader_open(&report->slow, path, err)) {
		lull_reader_close(report->quick);
		return err->code;
	}
	return LULL_OK;
}

/* Whether it begins as a report does; one that cannot be opened is left to the reader. */
static bool is_report(const char *path)
{
	char magic[8] = "";
	FILE *from = fopen(path, "re");
	bool is = !from || (fread(magic, 1, sizeof(magic), from) == sizeof(magic) &&
			    !memcmp(magic, "LULLFILE", sizeof(magic)));

	if (from)
		fclose(from);
	return is;
}

/* A foreign file becomes a report without a name, which is gone when it is closed. */
static int import(struct lull_page_report *report, const char *path, struct lull_err *err)
{
	struct lull_scratch scratch = LULL_SCRATCH_INIT;
	int rc = lull_scratch_make(&scratch, "import.lull", err);

	if (!rc)
		rc = lull_import_file(path, lull_str_text(&scratch.file), NULL, NULL, err);
	if (!rc)
		rc = open_twice(report, lull_str_text(&scratch.file), err);
	lull_scratch_remove(&scratch);
	return rc;
}

/* The report's readers are open: the rest of it. */
static void finish(struct lull_page_report *report, const struct lull_timeline_options *options,
		   bool is_offline)
{
	struct lull_vec rounds;

	report->timeline = lull_timeline_new(report->quick, options);
	lull_rounds_row_add(report->timeline);
	/* A file has all the time it needs: who opens it cannot ask later. */
	if (lull_page_why(report, is_offline) == LULL_PAGE_WHY_LARGE)
		return;
	lull_page_rounds(report, &rounds);
	lull_page_show_rounds(report, &rounds);
	lull_vec_release(&rounds);
}

/* Room for reports, once for all: others keep pointers to them. */
static struct lull_page_report *next_report(struct lull_page *page, size_t max, const char *name)
{
	struct lull_page_report *report;

	if (!page->reports) {
		page->reports = lull_alloc(max, sizeof(*page->reports));
		page->max_reports = max;
		pthread_mutex_init(&page->open_lock, NULL);
	}
	report = &page->reports[page->n_reports];
	report->name = name;
	pthread_mutex_init(&report->quick_lock, NULL);
	pthread_mutex_init(&report->slow_lock, NULL);
	return report;
}

/* A rank of a job: found out about now, and what is too large for that stays without a verdict. */
static int open_later(struct lull_page_report *report, struct lull_err *err)
{
	const struct lull_timeline_options options = { .path = report->path };
	char *path = report->path;

	report->path = NULL;
	if (is_report(path) ? open_twice(report, path, err) : import(report, path, err)) {
		report->failed = lull_strdup(err->msg);
		free(path);
		return err->code;
	}
	if (lull_page_why_is_large(report))
		report->why_failed =
			lull_strdup("this rank is too large to be analysed together with "
				    "the others: open its report alone");
	finish(report, &options, false);
	free(path);
	return LULL_OK;
}

/* Reports that nobody has asked for before are opened now; the first who asks waits. */
static int open_now(struct lull_page *page, struct lull_page_report *report, struct lull_err *err)
{
	int rc = LULL_OK;

	if (!page->job)
		return LULL_OK;
	pthread_mutex_lock(&page->open_lock);
	if (report->path)
		rc = open_later(report, err);
	if (!rc && report->failed)
		rc = lull_fail(err, LULL_E_NOT_FOUND, "%s", report->failed);
	pthread_mutex_unlock(&page->open_lock);
	return rc;
}

int lull_page_answer(struct lull_page *page, const struct lull_answer *answer,
		     const struct lull_args *args, FILE *to, struct lull_err *err)
{
	struct lull_question q = { .page = page, .args = args, .to = to };
	pthread_mutex_t *lock;
	int rc;

	if (args->report_ix >= page->n_reports)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no report %zu", args->report_ix);
	q.report = &page->reports[args->report_ix];
	if (open_now(page, q.report, err))
		return err->code;
	q.reader = answer->is_slow ? q.report->slow : q.report->quick;
	lock = answer->is_slow ? &q.report->slow_lock : &q.report->quick_lock;
	lull_ahead_begin(page->ahead);
	pthread_mutex_lock(lock);
	rc = answer->run(&q, err);
	pthread_mutex_unlock(lock);
	lull_ahead_end(page->ahead);
	return rc;
}

int lull_page_add(struct lull_page *page, const char *path, const char *name,
		  const struct lull_timeline_options *options, struct lull_err *err)
{
	struct lull_page_report *report;

	if (page->job)
		return lull_fail(err, LULL_E_USAGE,
				 "a folder cannot be combined with other reports; leave out %s",
				 path);
	if (page->reports && page->n_reports == page->max_reports)
		return lull_fail(err, LULL_E_USAGE, "more than %d reports at once",
				 LULL_PAGE_REPORTS);
	report = next_report(page, LULL_PAGE_REPORTS, name);
	if (is_report(path) ? open_twice(report, path, err) : import(report, path, err))
		return err->code;
	finish(report, options, page->is_offline);
	report->file = lull_strdup(path);
	page->n_reports++;
	return LULL_OK;
}

int lull_page_add_job(struct lull_page *page, const char *folder, struct lull_err *err)
{
	struct lull_page_job *job;

	if (page->n_reports)
		return lull_fail(err, LULL_E_USAGE, "%s is a folder; open it alone", folder);
	job = lull_alloc(1, sizeof(*job));
	pthread_mutex_init(&job->lock, NULL);
	job->job = lull_alloc(1, sizeof(*job->job));
	page->job = job;
	if (lull_job_open(job->job, folder, &(struct lull_job_options){ 0 }, err))
		return err->code;
	if (job->job->ranks.n > LULL_PAGE_RANKS)
		return lull_fail(err, LULL_E_UNSUPPORTED, "more than %d ranks", LULL_PAGE_RANKS);
	for (size_t i = 0; i < job->job->ranks.n; i++) {
		const struct lull_job_rank *rank = lull_vec_get(&job->job->ranks, i);
		struct lull_page_report *report = next_report(page, job->job->ranks.n, rank->file);
		struct lull_str path = LULL_STR_INIT;

		lull_job_path(job->job, rank, &path);
		report->path = path.at;
		page->n_reports++;
	}
	return open_later(&page->reports[0], err);
}

void lull_page_add_reader(struct lull_page *page, struct lull_reader *r, const char *name)
{
	const struct lull_timeline_options options = { .has_no_index = true };
	struct lull_page_report *report = next_report(page, LULL_PAGE_REPORTS, name);

	report->quick = report->slow = r;
	report->is_borrowed = true;
	finish(report, &options, page->is_offline);
	page->n_reports++;
}

void lull_page_start(struct lull_page *page)
{
	page->analyst = lull_analyst_start(page);
	page->ahead = lull_ahead_start(page);
}

static void release_job(struct lull_page *page)
{
	struct lull_page_job *job = page->job;

	if (!job)
		return;
	lull_job_release(job->job);
	pthread_mutex_destroy(&job->lock);
	free(job->job);
	free(job->ranks);
	free(job->failed);
	free(job);
	page->job = NULL;
}

void lull_page_release(struct lull_page *page)
{
	lull_analyst_stop(page->analyst);
	lull_ahead_stop(page->ahead);
	page->analyst = NULL;
	page->ahead = NULL;
	for (size_t i = 0; i < page->n_reports; i++) {
		struct lull_page_report *report = &page->reports[i];

		lull_page_why_release(report);
		free(report->file);
		lull_timeline_free(report->timeline);
		if (!report->is_borrowed) {
			lull_reader_close(report->quick);
			lull_reader_close(report->slow);
		}
		pthread_mutex_destroy(&report->quick_lock);
		pthread_mutex_destroy(&report->slow_lock);
		free(report->path);
		free(report->failed);
	}
	if (page->reports)
		pthread_mutex_destroy(&page->open_lock);
	free(page->reports);
	page->reports = NULL;
	page->n_reports = 0;
	release_job(page);
}

void lull_page_pair_u64(struct lull_json *j, const char *key, u64 value)
{
	lull_json_key(j, key);
	lull_json_u64(j, value);
}

void lull_page_pair_f64(struct lull_json *j, const char *key, f64 value)
{
	lull_json_key(j, key);
	lull_json_f64(j, value);
}

void lull_page_pair_text(struct lull_json *j, const char *key, const char *value)
{
	lull_json_key(j, key);
	lull_json_text(j, value);
}

void lull_page_pair_bool(struct lull_json *j, const char *key, bool value)
{
	lull_json_key(j, key);
	lull_json_bool(j, value);
}
