/*
 * job_print - the answers of commands that were given a folder, which is a job of many ranks.
 */
#ifndef LULL_CMD_JOB_JOB_PRINT_H
#define LULL_CMD_JOB_JOB_PRINT_H

#include <stdio.h>

#include "job/job.h"

/* The answer in sentences, at most `width` columns wide. */
void lull_job_print(FILE *to, const struct lull_job *job, int width, bool has_all);

/* Warnings about the answer: one line each. */
void lull_job_print_notes(FILE *to, const struct lull_job *job, int width);

/* How the clocks of ranks were aligned. */
void lull_job_print_clocks(FILE *to, const struct lull_job *job, int width);

/*
 * What a command returns for a job: of the processes that mpirun started, one prints the error; the
 * others exit silently with 0.
 */
int lull_job_status(const struct lull_job *job, int rc);

#endif
