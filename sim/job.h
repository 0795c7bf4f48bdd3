/*
 * job - a made-up job of many ranks, written as the reports its recorders would have written.
 *
 * What it gives:  a folder of rank reports, and beside them truth.json: who is late, since when and
 *                 why, and how far each clock is off.
 * The model:      each step is a forward pass, a backward pass that hands buckets of gradients to a
 *                 second stream, and an update; or a pipeline of stages that send to each other. A
 *                 collective begins on a rank when that rank is there, and ends on all of them when
 *                 the last one has come and the bytes have moved.
 * Two passes:     the first finds when each collective has its last rank, with 100 bytes a rank;
 *                 the second writes one rank after the other. All noise is a hash of who and when,
 *                 so that both see the same.
 */
#ifndef LULL_SIM_JOB_H
#define LULL_SIM_JOB_H

#include "base/err.h"
#include "base/types.h"

#define JOB_MAX_BUCKETS 64u
#define JOB_MAX_STAGES	32u
#define JOB_MAX_MICRO	32u

/* What comes after the last collective of a step: the update, and the thread that sees it. */
#define JOB_UPDATE_NS 60000u
#define JOB_SEEN_NS   20000u

enum job_cause { JOB_INPUT, JOB_THROTTLED, JOB_GC };

struct job {
	const char *folder;
	const char *name;    /* of the job, in the reports */
	const char *version; /* of lull, in the reports */
	bool is_mute;	     /* nothing of NCCL is in them */
	u64 n_ranks, n_steps, n_kernels, n_buckets, per_host, seed;
	u64 bytes;	   /* gradients of a step */
	u64 kernel_ns;	   /* of one kernel */
	i64 slow;	   /* rank that is late, -1 for none */
	u64 slow_from;	   /* step */
	u64 slow_ns;	   /* by how much */
	u64 cause;	   /* enum job_cause */
	bool is_bare;	   /* gradients are exchanged after the backward pass */
	u64 n_tensor;	   /* ranks of a tensor parallel group; 1: none */
	bool has_ranges;   /* forward and backward passes are ranges named after their rank */
	u64 n_stages;	   /* of a pipeline; 0: none */
	u64 n_micro;	   /* batches that go through it in a step */
	i64 heavy;	   /* stage with more to do, -1 for none */
	u64 max_offset_ns; /* of clocks */
	u64 max_drift_ppm;
	i64 lost_first, lost_last; /* ranks whose report is missing, -1 for none */
	i64 truncated;		   /* rank whose report is cut off, -1 for none */
	u64 *ready_ns;		   /* when a collective has its last rank, by step and bucket */
	u64 *begin_ns;		   /* of each step of the rank at hand */
};

/* What one rank does in one step on its compute stream. */
struct job_plan {
	u64 ready_ns[JOB_MAX_BUCKETS]; /* gradients of each bucket are there */
	u64 end_ns;		       /* of the backward pass */
	u64 host_ns;		       /* the thread has launched everything */
};

/* Times of one replica of a pipeline in one step. */
struct job_pipeline {
	u64 begin_ns[2][JOB_MAX_STAGES][JOB_MAX_MICRO]; /* of compute: forward, backward */
	u64 end_ns[2][JOB_MAX_STAGES][JOB_MAX_MICRO];
	u64 post_ns[2][JOB_MAX_STAGES][JOB_MAX_MICRO];	/* the stage begins to receive */
	u64 moved_ns[2][JOB_MAX_STAGES][JOB_MAX_MICRO]; /* and has received */
};

struct job_writer;

/* A number that depends on nothing but its arguments. */
u64 job_hash(const struct job *j, u64 a, u64 b, u64 c);

/* Between -1 and 1, of the same kind. */
f64 job_noise(const struct job *j, u64 a, u64 b, u64 c);

/* Length of a kernel. */
u64 job_kernel_ns(const struct job *j, u64 rank, u64 step, u64 kernel);

/* How long the bytes of one bucket move. */
u64 job_transfer_ns(const struct job *j);

/* The end of a bucket's collective on a rank, given when the last one was there. */
u64 job_end_ns(const struct job *j, u64 rank, u64 step, u64 bucket, u64 ready_ns);

/* Backward kernels before a bucket is handed over. */
u64 job_bucket_kernel(const struct job *j, u64 bucket);

/* Play the compute stream of a step that begins at `begin_ns`; `w` may be NULL. */
void job_compute(const struct job *j, u64 rank, u64 step, u64 begin_ns, struct job_plan *plan,
		 struct job_writer *w);

/* Play a pipeline's replica; its stages begin at `begin_ns[stage]`. */
void job_pipeline(const struct job *j, u64 replica, u64 step, const u64 *begin_ns,
		  struct job_pipeline *p);

/* First pass: fills ready_ns. */
void job_meet(struct job *j);

/* Second pass: write the report of a rank. */
int job_write(const struct job *j, u64 rank, struct lull_err *err);

/* ---- rows, for the model ---- */

/*
 * The thread launches a kernel at `host_ns`, and it runs there. `name` is JOB_FORWARD or its kin.
 */
enum job_kernel { JOB_FORWARD = 1, JOB_BACKWARD, JOB_UPDATE, JOB_ALLREDUCE, JOB_SENDRECV };
void job_put_kernel(struct job_writer *w, enum job_kernel what, u64 host_ns, u64 begin_ns,
		    u64 end_ns);

/* The thread asks for an exchange within its tensor parallel group, which runs there. */
void job_put_tensor(struct job_writer *w, u64 host_ns, u64 begin_ns, u64 end_ns);

/* The thread is in a range. */
enum job_range { JOB_LOADING = 1, JOB_COLLECTING, JOB_FORWARDING, JOB_BACKWARDING };
void job_put_range(struct job_writer *w, enum job_range what, u64 begin_ns, u64 end_ns);

#endif
