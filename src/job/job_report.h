/*
 * job_report - the answers of `lull stats FOLDER`, one file each.
 *
 * They are reports as those of a file (report/report.h), but for what they read: the job in
 * options->job instead of a reader, which is NULL.
 *
 * To add one: report_X.c with const struct lull_report lull_job_report_X at its end, REPORT(X) in
 * job_reports.def, its name in doc/lull-stats.1.md, a case in test/e2e/test_ranks.py.
 */
#ifndef LULL_JOB_JOB_REPORT_H
#define LULL_JOB_JOB_REPORT_H

#include "job/job.h"
#include "report/report.h"

/* All of job_reports.def in its order, NULL at the end. */
extern const struct lull_report *const lull_job_reports[];

/* The id of a cause, NULL for -1. */
static inline const char *lull_job_cause_id(i32 cause)
{
	return cause < 0 ? NULL : lull_causes[cause]->id;
}

/* A part of the time of a rank, in percent. */
static inline f64 lull_job_percent(u64 part_ns, u64 whole_ns)
{
	return whole_ns ? (f64)part_ns / (f64)whole_ns * 100 : 0;
}

#endif
