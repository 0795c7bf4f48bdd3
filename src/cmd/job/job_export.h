/*
 * job_export - the reports of a job as one data set: FOLDER/rank=N/table=NAME/part-0.SUFFIX.
 *
 * Data platforms read such a tree as one table with the columns `rank` and `table` besides. Next to
 * it lies job.json with what turns times of a rank into times of the job.
 */
#ifndef LULL_CMD_JOB_JOB_EXPORT_H
#define LULL_CMD_JOB_JOB_EXPORT_H

#include "base/err.h"
#include "export/export.h"

/* Export every rank of the job in `folder` to target->path, or to FOLDER-FORMAT if that is NULL. */
int lull_job_export(const char *folder, const struct lull_export *format,
		    const struct lull_export_options *options,
		    const struct lull_export_target *target, struct lull_err *err);

#endif
