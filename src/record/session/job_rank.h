/*
 * job_rank - which part of a job is recorded: rank, local rank, number of ranks, host, job.
 *
 * There are two sources: the environment of the recorder, if a launcher started it, and that of
 * each recorded process, if the recorder started the launcher. The processes' values take
 * precedence; they are complete when the recording ends.
 *
 * In the report: the keys rank, local_rank, world_size, host, job and launcher of the table `meta`;
 * with several ranks in one report the key ranks instead of rank, and for each process its columns.
 */
#ifndef LULL_RECORD_SESSION_JOB_RANK_H
#define LULL_RECORD_SESSION_JOB_RANK_H

#include "base/err.h"
#include "base/str.h"
#include "record/recording.h"
#include "wire/rank.h"

/* What our own environment says. */
struct lull_rank lull_job_rank(void);

/* Name of the job, "" if it has none. */
void lull_job_name(const struct lull_rank *rank, struct lull_str *to);

/* Write what is known when a report begins. */
void lull_job_begin(struct lull_recording *r);

/* Correct it by what the recorded processes said; before the report is finished. */
void lull_job_end(struct lull_recording *r);

/*
 * Check what --ranks says and bring it into the form of lull_ranks_has(): "stage-heads" gets the
 * number of stages from the command or the environment. LULL_E_USAGE if it is no list, or nobody
 * tells how many stages there are.
 */
int lull_job_ranks(const char *text, char *const *argv, struct lull_str *list,
		   struct lull_err *err);

#endif
