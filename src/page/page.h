/*
 * page - the requests of the page and their answers, for both the server of `lull view` and the
 * file of `lull export -t html`.
 *
 * What it gives:  the list of answers (answers.def), each a function from arguments to bytes.
 * Arguments:      the part of a URL after "?", as name=value&name=value, decoded here.
 * Errors:         LULL_E_USAGE bad arguments; LULL_E_NOT_FOUND no such thing; LULL_E_UNSUPPORTED
 *                 more than is allowed at once.
 * Threads:        a report has two readers, so that a slow answer never delays pictures: slow
 *                 answers use `slow` and hold slow_lock, the others `quick` and quick_lock.
 *                 lull_page_answer() takes the lock.
 *
 * To add one:     answer_X.c with const struct lull_answer lull_answer_X at its end, ANSWER(X) in
 *                 answers.def; the page requests it by that name.
 */
#ifndef LULL_PAGE_PAGE_H
#define LULL_PAGE_PAGE_H

#include <pthread.h>
#include <stdio.h>

#include "base/err.h"
#include "text/json.h"
#include "base/types.h"
#include "timeline/timeline.h"
#include "trace/reader.h"

/* What another process found out about a large report (page/analyst.h). */
struct lull_told {
	bool is_running;
	u32 percent;
	char *verdict, *steps; /* the answers, NULL if there are none yet */
};

struct lull_page_report {
	const char *name; /* as it is shown; borrowed */
	char *path;	  /* of one that is opened when somebody asks for it; NULL once it is */
	char *failed;	  /* why that did not work */
	char *file;	  /* that it was opened from; NULL if it has none */
	struct lull_reader *quick, *slow;
	struct lull_timeline *timeline; /* on `quick` */
	pthread_mutex_t quick_lock, slow_lock;
	struct lull_why *why; /* page/page_why.h; on `slow`, under slow_lock */
	char *why_failed;
	struct lull_told told; /* under slow_lock */
	bool is_borrowed;      /* one reader, not ours */
};

struct lull_why;

#define LULL_PAGE_REPORTS 8	/* that are opened at once */
#define LULL_PAGE_RANKS	  65536 /* of a job, which are opened one by one */

struct lull_job;

/* The ranks of a job that is a folder of reports (job/job.h). */
struct lull_page_job {
	struct lull_job *job; /* opened, not analysed: another process does that */
	pthread_mutex_t lock; /* of what follows */
	char *ranks, *failed; /* what was found as JSON, or why nothing was */
	bool is_running;
};

struct lull_page {
	struct lull_page_report *reports;
	size_t n_reports, max_reports;
	struct lull_page_job *job; /* NULL: reports by themselves */
	pthread_mutex_t open_lock; /* of reports that are opened when asked for */
	bool is_offline;	   /* the answers go into a file */
	const char *source_dir;	   /* folder with the program's source; NULL: none is read */
	/* Compares two files (`lull diff --format json`); NULL: the page cannot. */
	int (*diff)(const char *before, const char *after, FILE *to, struct lull_err *err);
	const char *editor;	      /* address that opens {file} at {line}; NULL: no links */
	struct lull_ahead *ahead;     /* page/ahead.h; NULL if nothing goes on beside the answers */
	struct lull_analyst *analyst; /* page/analyst.h; NULL if no report is large */
};

/* Arguments of one question. */
struct lull_args {
	char *text; /* private: decoded names and values, NUL-terminated, one after the other */
	size_t n;
	const char *names[32], *values[32];
	const char *body; /* of a question that has one; NULL if not */
	size_t body_len;
	size_t report_ix; /* argument f */
};

/* Take "a=1&b=x%20y" apart; more than 32 arguments or bad escapes are LULL_E_USAGE. */
int lull_args_parse(struct lull_args *args, const char *text, struct lull_err *err);

/* Free it. */
void lull_args_release(struct lull_args *args);

/* The value of an argument, NULL if it is absent. */
const char *lull_args_get(const struct lull_args *args, const char *name);

/* A whole number in [0, max]; `otherwise` if it is absent. LULL_E_USAGE if it is something else. */
int lull_args_u64(const struct lull_args *args, const char *name, u64 max, u64 otherwise, u64 *v,
		  struct lull_err *err);

/*
 * The window [from, to) of the arguments of these names, all time if absent; pages count from
 * origin_ns.
 */
int lull_args_span(const struct lull_args *args, u64 origin_ns, struct lull_span *span,
		   struct lull_err *err);

/* A question, as an answer sees it. */
struct lull_question {
	struct lull_page *page;
	struct lull_page_report *report;
	struct lull_reader *reader; /* the one it may use */
	const struct lull_args *args;
	FILE *to; /* where the answer goes */
};

struct lull_answer {
	const char *name;
	const char *type; /* MIME */
	bool is_slow;
	bool has_body;	/* asked by POST */
	bool is_packed; /* `lull export -t html` puts it into the file, without arguments */
	int (*run)(struct lull_question *q, struct lull_err *err);
};

/* All of answers.def, NULL at the end. */
extern const struct lull_answer *const lull_answers[];

/* The answer of this name, or NULL. */
const struct lull_answer *lull_answer_find(const char *name);

/* Answer: take the lock, write to `to`. */
int lull_page_answer(struct lull_page *page, const struct lull_answer *answer,
		     const struct lull_args *args, FILE *to, struct lull_err *err);

/* Open a report and its timeline for the page; path and name are borrowed. */
int lull_page_add(struct lull_page *page, const char *path, const char *name,
		  const struct lull_timeline_options *options, struct lull_err *err);

/*
 * Add the ranks of a folder, by rank. The first is opened, the others when they are asked for.
 * Only as the first and only reports of a page.
 */
int lull_page_add_job(struct lull_page *page, const char *folder, struct lull_err *err);

/* The same for a reader that is open, and stays so; for one thread. The name is borrowed. */
void lull_page_add_reader(struct lull_page *page, struct lull_reader *r, const char *name);

/*
 * Begin what goes on beside the answers, once all reports are added and before any other thread
 * exists: decoding ahead, and the analysis of reports that are too large to wait for it.
 */
void lull_page_start(struct lull_page *page);

/* End that, and close all reports. */
void lull_page_release(struct lull_page *page);

/* "key": value, in an object. */
void lull_page_pair_u64(struct lull_json *j, const char *key, u64 value);
void lull_page_pair_f64(struct lull_json *j, const char *key, f64 value);
void lull_page_pair_text(struct lull_json *j, const char *key, const char *value);
void lull_page_pair_bool(struct lull_json *j, const char *key, bool value);

#endif
