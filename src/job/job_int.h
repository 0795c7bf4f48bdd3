/*
 * job_int - what the parts of the analysis of a job share.
 */
#ifndef LULL_JOB_JOB_INT_H
#define LULL_JOB_JOB_INT_H

#include "base/map.h"
#include "job/job.h"
#include "model/exchange.h"
#include "model/span.h"
#include "trace/reader.h"

/* A collective of one rank, for the fit of clocks. */
struct lull_job_sample {
	u64 key;
	u64 start_ns, end_ns; /* CLOCK_MONOTONIC of its host */
};

/* When a collective had its last rank. */
struct lull_job_meeting {
	u64 key;
	u64 lot;
	i64 last_ns;	/* start of the last */
	i64 sum_ns;	/* of the begins */
	u64 size_bytes; /* the largest */
	u32 n;
	u32 is_uneven; /* sizes differ */
};

struct lull_job_meetings {
	struct lull_map by_key;
	struct lull_vec all; /* struct lull_job_meeting */
	u64 limit;	     /* lots above are left out */
	u64 max;	     /* so many are kept */
};

/* A note for the reader of the answer. */
void lull_job_note(struct lull_job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * folder.c: list the reports, and decide which process reads which. `files`: struct lull_job_rank.
 */
int lull_job_list(struct lull_job *job, struct lull_vec *files, struct lull_err *err);

/* head.c: rank and host of the report; with samples (struct lull_job_sample), at most `max`. */
void lull_job_head(struct lull_job *job, struct lull_job_rank *rank, struct lull_vec *samples,
		   u64 max);

/* head.c: open a report of the job; NULL on failure, with the reason in rank->bad. */
struct lull_reader *lull_job_reader(const struct lull_job *job, struct lull_job_rank *rank);

/* check.c: whether the reports make one job. Moves bad ones to job->skipped. */
int lull_job_check(struct lull_job *job, struct lull_vec *files, struct lull_err *err);

/* host_clock.c: fit; samples[i] are those of rank i. */
void lull_job_fit(struct lull_job *job, const struct lull_vec *samples);

/* meet.c: find the last rank of each collective. */
int lull_job_meet(struct lull_job *job, struct lull_job_meetings *m, struct lull_err *err);
void lull_job_meetings_release(struct lull_job_meetings *m);
const struct lull_job_meeting *lull_job_meeting(const struct lull_job_meetings *m, u64 key);

/* meet.c: when a rank arrived at an exchange, and when it left. */
i64 lull_job_came_ns(const struct lull_job *job, const struct lull_job_rank *rank,
		     const struct lull_exchange *x);
i64 lull_job_left_ns(const struct lull_job *job, const struct lull_job_rank *rank,
		     const struct lull_exchange *x);

/* What one report has; all of it travels after its rank, in this order. */
struct lull_job_found {
	struct lull_vec steps;	/* struct lull_job_step */
	struct lull_vec kinds;	/* struct lull_job_kind */
	struct lull_vec comms;	/* struct lull_job_comm */
	struct lull_vec ranges; /* struct lull_job_range */
};

/* job_part.c: one report by itself; fills `found`. */
void lull_job_part(struct lull_job *job, struct lull_job_rank *rank,
		   const struct lull_job_meetings *m, struct lull_job_found *found);

/* comm.c: the communicator of an exchange among those of a rank; NULL if it is not known. */
struct lull_job_comm *lull_job_comm_of(struct lull_vec *comms, struct lull_reader *r,
				       const struct lull_exchange *x);

/* comm.c: count an exchange. */
void lull_job_comm_add(struct lull_job_comm *comm, struct lull_reader *r,
		       const struct lull_exchange *x);

/* comm.c: put together what ranks say; `rank_of[i]` is the rank that comms[i] belongs to. */
void lull_job_find_comms(struct lull_job *job, const struct lull_vec *comms, const i64 *rank_of);

/* rank_range.c: the ranges of a report in a span of time. */
void lull_job_find_ranges(struct lull_reader *r, i64 rank, struct lull_span span,
			  struct lull_vec *ranges);

/* rank_range.c: the name without a rank at its start: "rank3_forward" is "forward". */
const char *lull_job_plain_name(const char *name);

/* job_judge.c, stage.c, group.c: the verdict, pipeline stages, groups. */
void lull_job_number_steps(struct lull_job *job);
void lull_job_find_stages(struct lull_job *job);
void lull_job_find_stragglers(struct lull_job *job);
void lull_job_group(struct lull_job *job);
void lull_job_judge(struct lull_job *job);

/* Median of n values, which are sorted by it; 0 for none. */
f64 lull_job_median(f64 *values, size_t n);

#endif
