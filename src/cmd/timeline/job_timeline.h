/*
 * job_timeline - `lull timeline FOLDER`: a few steps of a job, a line for each rank.
 *
 * What it gives:  when each rank computes, and what it waits for while it does not, by a letter,
 *                 all on the clock of the job (job/job.h). A late rank and the bubbles of a
 *                 pipeline are seen at once.
 * Memory:         one report at a time, and 250 bytes for each rank and column.
 */
#ifndef LULL_CMD_TIMELINE_JOB_TIMELINE_H
#define LULL_CMD_TIMELINE_JOB_TIMELINE_H

#include "cmd/timeline/timeline_draw.h"
#include "job/job.h"

/*
 * Draw it; the job has been analysed (lull_job_run()). LULL_E_NOT_FOUND if there is no such step,
 * or no rank has steps.
 */
int lull_job_timeline_draw(FILE *to, const struct lull_job *job,
			   const struct lull_timeline_look *look, struct lull_err *err);

#endif
