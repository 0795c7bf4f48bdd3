#include "page/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "import/import.h"
#include "page/ahead.h"
#include "page/analyst.h"
#include "page/why.h"

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

int lull_page_answer(struct lull_page *page, const struct lull_answer *answer,
		     const struct lull_args *args, FILE *to, struct lull_err *err)
{
	struct lull_question q = { .page = page, .args = args, .to = to };
	pthread_mutex_t *lock;
	int rc;

	if (args->report_ix >= page->n_reports)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no report %zu", args->report_ix);
	q.report = &page->reports[args->report_ix];
	q.reader = answer->is_slow ? q.report->slow : q.report->quick;
	lock = answer->is_slow ? &q.report->slow_lock : &q.report->quick_lock;
	lull_ahead_begin(page->ahead);
	pthread_mutex_lock(lock);
	rc = answer->run(&q, err);
	pthread_mutex_unlock(lock);
	lull_ahead_end(page->ahead);
	return rc;
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
	const char *tmp = getenv("TMPDIR");
	struct lull_str folder = LULL_STR_INIT, file = LULL_STR_INIT;
	int rc;

	lull_str_addf(&folder, "%s/lull-view-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder.at)) {
		rc = lull_fail_errno(err, "making the folder %s", lull_str_text(&folder));
	} else {
		lull_str_addf(&file, "%s/import.lull", lull_str_text(&folder));
		rc = lull_import_file(path, lull_str_text(&file), NULL, NULL, err);
		if (!rc)
			rc = open_twice(report, lull_str_text(&file), err);
		unlink(lull_str_text(&file));
		rmdir(lull_str_text(&folder));
	}
	lull_str_release(&folder);
	lull_str_release(&file);
	return rc;
}

/* The report's readers are open: the rest of it. */
static void finish(struct lull_page *page, const char *name,
		   const struct lull_timeline_options *options)
{
	struct lull_page_report *report = &page->reports[page->n_reports++];

	report->name = name;
	report->timeline = lull_timeline_new(report->quick, options);
	pthread_mutex_init(&report->quick_lock, NULL);
	pthread_mutex_init(&report->slow_lock, NULL);
	/* A file has all the time it needs: who opens it cannot ask later. */
	lull_page_why(report, page->is_offline);
}

int lull_page_add(struct lull_page *page, const char *path, const char *name,
		  const struct lull_timeline_options *options, struct lull_err *err)
{
	struct lull_page_report *report = &page->reports[page->n_reports];

	if (page->n_reports == LULL_PAGE_REPORTS)
		return lull_fail(err, LULL_E_USAGE, "more than %d reports at once",
				 LULL_PAGE_REPORTS);
	if (is_report(path) ? open_twice(report, path, err) : import(report, path, err))
		return err->code;
	finish(page, name, options);
	return LULL_OK;
}

void lull_page_add_reader(struct lull_page *page, struct lull_reader *r, const char *name)
{
	const struct lull_timeline_options options = { .has_no_index = true };
	struct lull_page_report *report = &page->reports[page->n_reports];

	report->quick = report->slow = r;
	report->is_borrowed = true;
	finish(page, name, &options);
}

void lull_page_start(struct lull_page *page)
{
	page->analyst = lull_analyst_start(page);
	page->ahead = lull_ahead_start(page);
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
		lull_timeline_free(report->timeline);
		if (!report->is_borrowed) {
			lull_reader_close(report->quick);
			lull_reader_close(report->slow);
		}
		pthread_mutex_destroy(&report->quick_lock);
		pthread_mutex_destroy(&report->slow_lock);
	}
	page->n_reports = 0;
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
