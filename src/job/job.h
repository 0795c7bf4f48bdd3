/*
 * job - a folder of rank reports, analysed as one: late ranks, exposed collectives, the busiest
 * pipeline stage, and groups of similar ranks.
 *
 *	struct lull_job job;
 *	if (lull_job_open(&job, folder, &options, err) || lull_job_run(&job, err))
 *		...
 *	job.verdict				(the answer)
 *	lull_job_release(&job);
 *
 * Three walks:    1. who wrote each report, and a sample of its collectives, on which the clocks
 *                 are fitted;  2. when each collective had its last rank;  3. each report by itself
 *                 (lull why), with its waiting taken apart by what 2 found.
 * Memory:         one report at a time, 80 bytes for each collective of the job (every second one,
 *                 fourth one ... where these are more than 8 million), 1 KiB a rank, 96 bytes for
 *                 each rank and step. Never the job.
 * Processes:      under mpirun (job/team.h) reports are spread over processes; what each has found
 *                 is gathered, and all reach the same result. Sums are of whole numbers, so the
 *                 result does not depend on who added what first.
 */
#ifndef LULL_JOB_JOB_H
#define LULL_JOB_JOB_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "cause/cause.h"
#include "job/team.h"

#define LULL_JOB_EVIDENCE 3u
#define LULL_JOB_PEERS	  8u

/* How time in a report becomes time of the job. */
struct lull_job_clock {
	u64 base_ns;	 /* CLOCK_MONOTONIC of the host that is 0 */
	f64 offset_ns;	 /* to the reference at base_ns */
	f64 drift;	 /* share: gain of the reference on this clock */
	f64 residual_ns; /* spread of single collectives around the fit */
	f64 error_ns;	 /* of the offset in the middle of the recording, one standard error */
	f64 bound_ns;	 /* the offset is certain to this much; 0 if nothing bounds it */
	u64 n_points;	 /* collectives the fit rests on */
	u32 domain;	 /* ranks with the same number share a clock */
	bool is_known;
};

/* A cause that a rank has by itself. */
struct lull_job_evidence {
	i32 cause; /* enum lull_cause_ix, -1 for none */
	f64 cost_ns;
	char text[160];
	char fix[LULL_ADVICE_BYTES]; /* one thing to try, in the words of its program */
};

/* Who it exchanges with, as the communicator counts them. */
struct lull_job_peer {
	u64 comm;
	u32 own, other;
};

/* One report. Travels between processes as it is. */
struct lull_job_rank {
	char file[256];
	char bad[256]; /* why it cannot be used; "" if it can */
	char host[64], job[64], version[32], rank_from[16];
	i64 rank, local_rank, world_size; /* -1: not known */
	u8 id[16];
	u64 size_bytes;
	u64 epoch_ns, epoch_utc_ns, last_ns;
	u64 n_exchanges, n_lost;
	u64 n_damaged;	 /* blocks that could not be read */
	u32 owner;	 /* process that reads it */
	u32 n_samples;	 /* after it while it travels */
	u32 n_steps;	 /* the same */
	u32 n_kinds;	 /* the same */
	u32 n_comms;	 /* the same */
	u32 n_ranges;	 /* the same */
	bool is_counted; /* collectives were counted by us, not by NCCL */
	bool is_simulated;
	struct lull_job_clock clock;

	/* The answer of lull why for this report. */
	bool has_why;
	bool is_torch; /* its process uses PyTorch */
	i32 first;     /* cause, -1: cannot tell */
	f64 step_ns;
	u32 first_step; /* steps before are warm-up */
	u64 cost_ns[LULL_SUBJECT_CAUSES];
	struct lull_job_evidence evidence[LULL_JOB_EVIDENCE];
	char cannot[192];
	struct lull_job_peer peers[LULL_JOB_PEERS];
	u32 n_peers;

	/* Over the steps, in all. */
	u64 window_ns, compute_ns, wait_ns, transfer_ns, bubble_ns, copy_ns, idle_ns;
	i64 late_ns;
	u64 exchange_ns; /* collectives, hidden or not */
	u64 comm_ns;	 /* time in which any of them ran: exposed and overlapped */
	i32 stage;	 /* of a pipeline, -1 for none */
	u32 group;	 /* index into lull_job.groups */
	u64 first_ix;	 /* of its steps in lull_job.steps */
};

/* One step of one rank. Parts add up to dur_ns. */
struct lull_job_step {
	i64 end_ns; /* time of the job */
	u32 number; /* of the job's steps */
	u32 round;  /* in the report */
	u64 dur_ns;
	u64 compute_ns;
	u64 wait_ns;	 /* in collectives that nothing hides: for the last rank */
	u64 transfer_ns; /* the same: for the bytes */
	u64 bubble_ns;	 /* in sends and receives */
	u64 copy_ns;
	u64 idle_ns;
	i64 late_ns;	  /* by how much it came after the mean of the others, hidden or not */
	i64 most_late_ns; /* in one collective */
	u64 n_met;	  /* collectives in it with other ranks */
};

/* A kind of exchange: by operation, ranks of the communicator and size. */
struct lull_job_kind {
	char name[24];
	char comm_name[32];
	u32 n_ranks;
	u32 size_class; /* sizes below 2^size_class */
	u64 n;
	u64 dur_ns, wait_ns, transfer_ns, exposed_ns, exposed_wait_ns;
	u64 size_bytes;
	u64 timed_bytes; /* of those whose transfer is known */
};

/* What a communicator is used for. */
enum lull_job_op {
	LULL_JOB_ALL_REDUCE,
	LULL_JOB_ALL_GATHER,
	LULL_JOB_REDUCE_SCATTER,
	LULL_JOB_ALL_TO_ALL,
	LULL_JOB_PEER, /* sends and receives */
	LULL_JOB_OTHER,
	LULL_JOB_N_OPS,
};

/* A communicator as one rank uses it in its steady steps. Travels between processes as it is. */
struct lull_job_comm {
	u64 comm;
	char name[32];
	u32 n_ranks;
	u32 n_steps; /* of the rank */
	u64 n[LULL_JOB_N_OPS];
	u64 size_bytes, dur_ns, exposed_ns;
};

#define LULL_JOB_MEMBERS 64u

/* Communicators that are alike: of the same size, for the same operations. */
struct lull_job_comm_kind {
	char name[32]; /* "" if they have different names, or none */
	u32 n_ranks;
	u32 n_comms;
	i64 members[LULL_JOB_MEMBERS]; /* ranks of the first one, as far as their reports exist */
	u32 n_members;
	u64 n[LULL_JOB_N_OPS];
	u64 n_steps; /* of all ranks: what to divide by for one rank and step */
	u64 size_bytes, dur_ns, exposed_ns;
	const char *role; /* "tensor parallel"; NULL: cannot tell */
	bool is_named;	  /* the role is in the name of the communicator, and no guess */
};

#define LULL_JOB_RANGE_NAME 64u

/* A range of one rank in its steady steps. Travels between processes as it is. */
struct lull_job_range {
	char name[LULL_JOB_RANGE_NAME]; /* without the rank at its start */
	i64 rank;
	u64 n, host_ns;
	u64 n_device, device_ns; /* those that launched work, and how long that took */
};

/* A rank that others wait for. */
struct lull_job_straggler {
	u32 rank_ix; /* index into lull_job.ranks */
	u32 since;   /* step; 0 with is_always */
	bool is_always;
	f64 late_ns;   /* a step, since then */
	f64 share;     /* of the steps since then in which it is late */
	i32 cause;     /* its own, -1 if not known */
	f64 excess_ns; /* of that cause over what other ranks spend on it, a step */
	char evidence[160];
};

/* Ranks that behave alike. */
struct lull_job_group {
	u32 n, first_ix;
	f64 compute, wait, transfer, bubble, copy, idle, late; /* shares of the step, mean */
	i32 cause;					       /* most common first cause */
	bool is_late;
};

struct lull_job_stage {
	u32 n;		/* ranks */
	f64 compute_ns; /* a step */
	f64 bubble_ns;
	f64 share; /* of the step, computing */
};

struct lull_job_verdict {
	i32 cause;	   /* enum lull_cause_ix, -1: cannot tell */
	f64 step_ns;	   /* median step of the job */
	f64 mean_ns;	   /* mean step over all ranks: what the shares are of */
	f64 cost_ns;	   /* of the cause, a step, mean over ranks */
	char why_not[256]; /* why there is none */
	int likely;	   /* then: the cause that is likely all the same, or -1 */
	f64 likely_ns;	   /* its time in a step */
	u32 n_steps;
	f64 compute, wait, transfer, bubble, copy, idle; /* shares of the ranks' time */
	f64 hidden; /* share of the collectives' time with kernels at the same time */
};

/* From this share on an exposed job does overlap: it has more to exchange than to compute. */
#define LULL_JOB_OVERLAPS 0.25

enum lull_job_clocks {
	LULL_CLOCKS_SAME,      /* all ranks are on one host */
	LULL_CLOCKS_FITTED,    /* on collectives */
	LULL_CLOCKS_DURATIONS, /* no fit; waiting is derived from durations */
	LULL_CLOCKS_NONE,      /* nothing in common */
};

struct lull_job_options {
	bool is_by_rank;  /* fit each rank, though ranks of a host share a clock */
	u64 max_meetings; /* collectives that are kept; 0: 8 million */
};

struct lull_job {
	const char *folder;
	struct lull_job_options options;
	struct lull_team team;
	bool has_team;
	struct lull_vec ranks;	 /* struct lull_job_rank by rank */
	struct lull_vec skipped; /* struct lull_job_rank: bad ones */
	struct lull_vec notes;	 /* char *: warnings about the answer; owned */
	i64 world_size;		 /* -1: not known */
	enum lull_job_clocks clocks;
	char clocks_why[256]; /* why there is no fit */
	f64 residual_ns;      /* the worst of the ranks */
	f64 error_ns;	      /* the same, of the offset */
	f64 bound_ns;	      /* the same, of what is certain */
	f64 off_ns;	      /* is_by_rank: worst offset between ranks of one host, which is 0 */
	u32 n_checked;	      /* ranks that was seen on */
	u32 reference_ix;
	u32 n_domains;

	/* After lull_job_run(): */
	u32 n_damaged;		    /* reports with blocks that could not be read */
	u32 thinned;		    /* only every n-th collective was read; 1: all */
	u64 n_met;		    /* collectives with two or more ranks */
	u64 n_mismatched;	    /* of these, with different sizes */
	struct lull_vec steps;	    /* struct lull_job_step, by rank */
	struct lull_vec kinds;	    /* struct lull_job_kind, most time first */
	struct lull_vec stragglers; /* struct lull_job_straggler, worst first */
	struct lull_vec groups;	    /* struct lull_job_group, largest first */
	struct lull_vec stages;	    /* struct lull_job_stage */
	struct lull_vec comms;	    /* struct lull_job_comm_kind, most used first */
	struct lull_vec ranges;	    /* struct lull_job_range, by rank */
	u32 n_steps;		    /* of the job */
	u32 first_step;
	struct lull_job_verdict verdict;
};

/* Whether a path is a folder, that is a job. */
bool lull_job_is_folder(const char *path);

/*
 * Find the reports and their ranks, and fit the clocks. LULL_E_NOT_FOUND if there are none,
 * LULL_E_FORMAT if they do not make one job.
 */
int lull_job_open(struct lull_job *job, const char *folder, const struct lull_job_options *options,
		  struct lull_err *err);

/* Analyse it. */
int lull_job_run(struct lull_job *job, struct lull_err *err);

/*
 * One thing to try against a cause of a job: what `lull why` says about this rank (NULL: about the
 * first that has the cause), else the words for programs of its kind. Borrowed from the job.
 */
const char *lull_job_fix(const struct lull_job *job, const struct lull_job_rank *rank, int cause);

/* Free everything and leave the team. */
void lull_job_release(struct lull_job *job);

/* Time of the job for a moment of a rank's report. */
i64 lull_job_time(const struct lull_job_rank *rank, u64 at_ns);

/* The path of a rank's report. */
void lull_job_path(const struct lull_job *job, const struct lull_job_rank *rank,
		   struct lull_str *to);

/* The steps of a rank; *n receives how many. */
const struct lull_job_step *lull_job_steps(const struct lull_job *job,
					   const struct lull_job_rank *rank, u32 *n);

/* Time of a rank in collectives, sends and receives while no kernel ran, and while one did. */
u64 lull_job_exposed_ns(const struct lull_job_rank *rank);
u64 lull_job_overlapped_ns(const struct lull_job_rank *rank);

/* Append "all-reduce, all-gather": what these communicators do, the most frequent first. */
void lull_job_comm_ops(const struct lull_job_comm_kind *kind, struct lull_str *to);

/* Append "0-3" or "0, 8, 16, ...": ranks of the first of them. */
void lull_job_comm_members(const struct lull_job_comm_kind *kind, struct lull_str *to);

/* Append "tensor parallel?": the role, with a question mark if it is a guess. */
void lull_job_comm_role(const struct lull_job_comm_kind *kind, struct lull_str *to);

/* Bandwidth as nccl-tests counts it, bytes a ns: of the algorithm, and of the bus; 0: not known. */
f64 lull_job_algorithm_bandwidth(const struct lull_job_kind *kind);
f64 lull_job_bus_bandwidth(const struct lull_job_kind *kind);

#endif
