/*
 * report - the answers of `lull stats`, one file each.
 *
 * What it gives:  the list of reports, one by its name, and whether a recording holds what one
 *                 needs.
 * Rule:           a report pushes rows into `out` and never prints; text/out formats them.
 * Memory:         reports walk the tables with cursors and keep sums, never the rows; those that
 *                 join work with calls or ranges keep these (model/link, model/nest).
 * Order:          the same events give the same bytes, however they came into the file: rows that
 *                 are equal in .sorted_by are ordered by their other cells.
 * Filters:        rows outside [from_ns, to_ns] are left out: a row with a duration counts if all
 *                 of it lies inside.
 *
 * To add one: report_X.c with const struct lull_report lull_report_X at its end, REPORT(X) in
 * reports.def; then `tools/gen-docs build/lull` for the manual, and three folders in
 * test/golden/report/ (with data, with --filter-time, empty). The page shows it if .page says
 * where. Sums with the columns everybody knows are a scan and a name: see report_osrt_sum.c. A row
 * per device: see report_overlap.c.
 */
#ifndef LULL_REPORT_REPORT_H
#define LULL_REPORT_REPORT_H

#include "base/err.h"
#include "text/out.h"
#include "base/str.h"
#include "base/types.h"
#include "model/span.h"
#include "trace/reader.h"

struct lull_job; /* job/job.h */

struct lull_report_options {
	const struct lull_job *job; /* of reports about a folder (job/job_report.h); else NULL */
	u64 from_ns;
	u64 to_ns;
	const char *args; /* what stood after the report's name, words separated by ":"; or NULL */
};

#define LULL_REPORT_OPTIONS_INIT    \
	{                           \
		.to_ns = UINT64_MAX \
	}

/* The bit of a table in .needs and .needs_any. */
#define LULL_NEED(table) (1ULL << LULL_TABLE_##table)
/* For .needs_quick: no table. It is quick only where there is little work. */
#define LULL_NEED_FEW (1ULL << 62)
/* Steps, or work of devices in which they can be found: for .needs_any. */
#define LULL_NEED_STEPS (LULL_NEED(step) | LULL_NEED(kernel) | LULL_NEED(graph))

/* What it means that there are no rows where steps are listed. */
#define LULL_STEPS_NONE                                                                      \
	"no steps: the program counts none and none could be found; lull_step() of lull.h, " \
	"lull.step() in Python or a range named step marks them"

/* Where the page (src/page/) shows a report. */
struct lull_report_page {
	const char *tab;   /* the panel that has it; "timeline": its numbers; NULL: none */
	const char *label; /* the words of its button there */
	const char *names; /* column whose texts are names on the timeline; NULL: "Name" */
	int place;	   /* among the buttons of the tab; equal ones are as in reports.def */
	bool is_join;	   /* joins all calls, which takes minutes on tens of millions */
};

struct lull_report {
	const char *name;     /* lull stats --report NAME; never changes */
	const char *display;  /* heading */
	const char *summary;  /* one phrase for lists */
	const char *help;     /* what question it answers, how to read it */
	const char *args;     /* words it takes as NAME:word, separated by blanks; NULL if none; a
				word that ends in "=" takes a value */
	const char *old_name; /* another name that is accepted; NULL if none */
	const struct lull_out_column *columns;
	size_t n_columns;
	size_t n_optional; /* of the last columns, which are left out at times */
	u64 needs;	   /* skipped unless each of these tables has rows */
	u64 needs_any;	   /* skipped unless one of these tables has rows; 0 for none */
	u64 needs_quick;   /* with few rows in these it takes long: see lull_report_is_quick() */
	bool is_default;   /* printed when no report is named */
	bool is_long;	   /* one row for each event: printed while it runs, and never kept */
	int sorted_by; /* 1 + the column that `run` sorted by, to order ties; 0 if there are none */
	const char *empty;	      /* what it means that there are no rows; may be NULL */
	const char *finding, *advice; /* of a rule: what rows mean, and what to do; else NULL */
	struct lull_report_page page;
	int (*run)(struct lull_reader *r, struct lull_out *out,
		   const struct lull_report_options *options, struct lull_err *err);
};

/* All of reports.def in its order, NULL at the end. */
extern const struct lull_report *const lull_reports[];

/*
 * The report of this name in a list such as lull_reports, or NULL; then *nearest is the closest
 * known name, or NULL.
 */
const struct lull_report *lull_report_find(const struct lull_report *const *list, const char *name,
					   const char **nearest);

/*
 * What is missing if a report of other tools is asked for that this one has nothing to fill with,
 * such as "OpenMP event data" for openmp_sum; NULL for other names. Arguments may follow.
 */
const char *lull_report_missing(const char *name);

/* Run a report: its rows go to `out` in their final order. */
int lull_report_run(const struct lull_report *report, struct lull_reader *r, struct lull_out *out,
		    const struct lull_report_options *options, struct lull_err *err);

/*
 * Whether the recording holds what the report needs; if not, *why says what is missing ("CUDA
 * kernel data") and how to record it.
 */
bool lull_report_has_data(const struct lull_report *report, const struct lull_reader *r,
			  struct lull_str *why);

/*
 * Whether it is quick enough to be run although nobody named it: it has rows to read, or has to
 * find its rows in a recording that is small.
 */
bool lull_report_is_quick(const struct lull_report *report, const struct lull_reader *r);

/* Refuse arguments that the report does not take: LULL_E_USAGE. */
int lull_report_check_args(const struct lull_report *report, const char *args,
			   struct lull_err *err);

/* Whether this word is among the arguments. */
bool lull_report_has_arg(const struct lull_report_options *options, const char *word);

/* The value of the argument NAME=VALUE, NULL if it is absent. Free with free(). */
char *lull_report_arg_value(const struct lull_report_options *options, const char *name);

/*
 * How many rows are wanted by the argument rows=N: `otherwise` if it is absent, SIZE_MAX for -1.
 * LULL_E_USAGE if it is no number.
 */
int lull_report_arg_rows(const struct lull_report_options *options, size_t otherwise, size_t *n,
			 struct lull_err *err);

/* The time that is asked for. */
static inline struct lull_span lull_report_window(const struct lull_report_options *options)
{
	return (struct lull_span){ options->from_ns, options->to_ns };
}

/* Whether all of [start_ns, start_ns + dur_ns] lies in the time that is asked for. */
static inline bool lull_report_covers(const struct lull_report_options *options, u64 start_ns,
				      u64 dur_ns)
{
	return lull_span_holds(lull_report_window(options), start_ns, dur_ns);
}

#endif
