/*
 * history - the metrics of a program over its commits, and where they changed.
 *
 * A history is a folder with the file history.jsonl: one JSON object a line for each run, appended
 * by one write, so that jobs that run at the same time do not mix their lines.
 *
 *	{"commit":"3f2a...","date":"2026-11-03T10:00:00Z","program":"train.py","device":"H200",
 *	 "reports":1,"steps":200,"metrics":{"step_time":{"unit":"ns","n":200,"median":1e7,...}}}
 *
 * What it reads:  the runs of the program and device of the last line; others are counted, as are
 *                 lines that are no JSON. Runs of one commit that follow each other are one point.
 * Ownership:      a history owns everything read; a run to append is borrowed.
 */
#ifndef LULL_COMPARE_HISTORY_H
#define LULL_COMPARE_HISTORY_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "compare/changepoint.h"
#include "compare/metric.h"

#define LULL_HISTORY_FILE "history.jsonl"

/* What one run measured of one metric. */
struct lull_history_value {
	char *metric; /* its spec */
	char *unit;
	size_t n; /* values, such as steps */
	f64 median;
	f64 mean;
	f64 sd;	  /* standard deviation */
	f64 low;  /* a quarter of the values is below, */
	f64 high; /* and a quarter above */
};

struct lull_history_run {
	char *commit;
	char *date; /* 2026-11-03T10:00:00Z */
	char *program;
	char *device;
	size_t n_reports;
	size_t n_steps;
	struct lull_vec values; /* struct lull_history_value */
};

struct lull_history {
	struct lull_vec runs; /* struct lull_history_run, in the order of the file */
	size_t n_others;      /* runs of other programs or devices */
	size_t n_bad;	      /* lines that cannot be read */
};

/* One commit. */
struct lull_history_point {
	const char *commit;
	const char *date;
	f64 value; /* median of its runs */
	size_t n_runs;
};

/* One metric over the commits. */
struct lull_history_series {
	const char *spec;
	const struct lull_metric *metric; /* never NULL */
	struct lull_vec points;		  /* struct lull_history_point */
	struct lull_changepoints changes;
};

/* Fill a value from samples, of which there is at least one; names are copied. */
void lull_history_summarise(struct lull_history_value *value, const char *spec,
			    const struct lull_metric *metric, const struct lull_samples *samples);

/* An empty run. */
void lull_history_run_init(struct lull_history_run *run);

/* Free a run. */
void lull_history_run_release(struct lull_history_run *run);

/* Append a run to the history in `folder`, which is created if it is not there. */
int lull_history_append(const char *folder, const struct lull_history_run *run,
			struct lull_err *err);

/* Read the history; LULL_E_NOT_FOUND if there is none, or none of its lines can be read. */
int lull_history_read(struct lull_history *h, const char *folder, struct lull_err *err);

/* Free it. */
void lull_history_release(struct lull_history *h);

/* One metric of it, with its changes; it borrows from the history. No points: not measured. */
void lull_history_series_init(struct lull_history_series *s, const struct lull_history *h,
			      const char *spec);

/* Free it. */
void lull_history_series_release(struct lull_history_series *s);

struct lull_history_short {
	char text[24];
};

/* A commit as people write it: the first letters of a hash. */
struct lull_history_short lull_history_short(const char *commit);

/* How a change reads: "10.0 ms -> 10.3 ms, +3.0 % (+2.6 to +3.4)". */
void lull_history_say(const struct lull_history_series *s, const struct lull_changepoint *change,
		      struct lull_str *to);

/* Print n series: as text with a plot, as JSON, as an HTML page that needs nothing else. */
void lull_history_text(const struct lull_history *h, const struct lull_history_series *all,
		       size_t n, FILE *to);
void lull_history_json(const struct lull_history *h, const struct lull_history_series *all,
		       size_t n, FILE *to);
void lull_history_html(const struct lull_history *h, const struct lull_history_series *all,
		       size_t n, FILE *to);

#endif
