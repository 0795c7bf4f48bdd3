/*
 * job_diff - `lull diff` of two folders: what changed between two runs of a job.
 */
#ifndef LULL_CMD_JOB_JOB_DIFF_H
#define LULL_CMD_JOB_JOB_DIFF_H

#include "base/err.h"
#include "base/types.h"

/* Compare two folders of rank reports; as JSON if `is_json`. */
int lull_job_diff(const char *before, const char *after, bool is_json, struct lull_err *err);

#endif
