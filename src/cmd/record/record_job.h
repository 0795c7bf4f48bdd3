/*
 * record_job - options of `lull profile` and `lull launch` for long jobs of many ranks: who is
 * recorded, where unfinished reports lie, the flight recorder, metrics.
 */
#ifndef LULL_CMD_RECORD_RECORD_JOB_H
#define LULL_CMD_RECORD_RECORD_JOB_H

#include "base/err.h"
#include "text/opt.h"
#include "base/str.h"
#include "record/collector.h"

/* The words of the command line, and what they mean; borrowed by the options of the collector. */
struct lull_record_job {
	const char *ranks, *part_dir, *trigger, *metrics, *duty, *budget;
	f64 flight_s;
	u64 flight_limit, duty_seed;
	struct lull_str rank_list;
	char metrics_address[64];
};

/* Room that lull_record_job_opts() needs. */
#define LULL_RECORD_JOB_OPTS 12

/* Fill `opts` with the options; returns how many. */
size_t lull_record_job_opts(struct lull_record_job *job, struct lull_opt *opts);

/* Understand them for this program; the options of the collector get the result. */
int lull_record_job_parse(struct lull_record_job *job, char **argv,
			  struct lull_collector_options *o, struct lull_err *err);

/*
 * --duty and --budget (NULL: not given): record in windows, whose moments come from `seed` (0:
 * another one each time).
 */
int lull_record_duty_parse(const char *duty, const char *budget, u64 seed,
			   struct lull_collector_options *o, struct lull_err *err);

/*
 * If --ranks leaves our own rank out: become the program, with `env` (char *: A=B) in its
 * environment. Returns only if there is something to record, or if it cannot be started: then
 * *status is 126 or 127, as a shell has it.
 */
int lull_record_job_step_aside(const struct lull_record_job *job, char **argv,
			       const struct lull_vec *env, int *status, struct lull_err *err);

/* Free what was made of the words. */
void lull_record_job_release(struct lull_record_job *job);

#endif
