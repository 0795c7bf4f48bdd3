#include "sim/job.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

/* A launch takes this long, and the next one comes this long after it. */
#define CALL_NS 5000u
#define NEXT_NS 3000u
/* From the end of a call to the start of its kernel on an idle device. */
#define LATENCY_NS 4000u
/* Between two kernels of a stream. */
#define GAP_NS 900u
/* Kernels differ by this part from step to step. */
#define JITTER 0.01
/* Ends of a collective differ by this much between ranks. */
#define END_NS 4000.0
/* Of the fabric, for one rank. */
#define BYTES_A_NS 100.0
/* A throttled device takes this much longer. */
#define THROTTLED 1.45
/* A heavy stage has this much more to do. */
#define HEAVY 1.8
/* A tensor parallel exchange, after every so many kernels of the forward pass. */
#define TENSOR_NS   40000u
#define TENSOR_EACH 2u
/* Activations that go from stage to stage. */
#define STAGE_NS 60000u

u64 job_hash(const struct job *j, u64 a, u64 b, u64 c)
{
	const u64 key[4] = { j->seed, a, b, c };

	return lull_hash(key, sizeof(key));
}

f64 job_noise(const struct job *j, u64 a, u64 b, u64 c)
{
	return (f64)(i64)job_hash(j, a, b, c) / 9223372036854775808.0;
}

static bool is_slow(const struct job *j, u64 rank, u64 step)
{
	return j->slow >= 0 && rank == (u64)j->slow && step >= j->slow_from;
}

u64 job_kernel_ns(const struct job *j, u64 rank, u64 step, u64 kernel)
{
	f64 ns = (f64)j->kernel_ns * (1 + JITTER * job_noise(j, rank, step, kernel));

	return (u64)(is_slow(j, rank, step) && j->cause == JOB_THROTTLED ? ns * THROTTLED : ns);
}

u64 job_transfer_ns(const struct job *j)
{
	return 30000 + (u64)((f64)j->bytes / (f64)j->n_buckets / BYTES_A_NS);
}

u64 job_end_ns(const struct job *j, u64 rank, u64 step, u64 bucket, u64 ready_ns)
{
	return ready_ns + job_transfer_ns(j) +
	       (u64)(END_NS * (1 + job_noise(j, rank + 7, step, bucket + 1000)));
}

u64 job_bucket_kernel(const struct job *j, u64 bucket)
{
	u64 n_forward = j->n_kernels / 3, n_backward = j->n_kernels - n_forward;

	return n_forward + (bucket + 1) * n_backward / j->n_buckets - 1;
}

void job_compute(const struct job *j, u64 rank, u64 step, u64 begin_ns, struct job_plan *plan,
		 struct job_writer *w)
{
	u64 host_ns = begin_ns, free_ns = begin_ns, n_forward = j->n_kernels / 3, bucket = 0;
	u64 middle_ns = begin_ns;

	if (is_slow(j, rank, step) && j->cause == JOB_INPUT) {
		if (w)
			job_put_range(w, JOB_LOADING, host_ns, host_ns + j->slow_ns);
		host_ns += j->slow_ns + NEXT_NS;
	}
	for (u64 i = 0; i < j->n_kernels; i++) {
		u64 start_ns, end_ns;

		if (i == n_forward && is_slow(j, rank, step) && j->cause == JOB_GC) {
			/* The queue of the forward pass runs dry meanwhile. */
			u64 until_ns = (free_ns > host_ns ? free_ns : host_ns) + j->slow_ns;

			if (w)
				job_put_range(w, JOB_COLLECTING, host_ns, until_ns);
			host_ns = until_ns + NEXT_NS;
		}
		start_ns = free_ns + GAP_NS > host_ns + CALL_NS + LATENCY_NS
				   ? free_ns + GAP_NS
				   : host_ns + CALL_NS + LATENCY_NS;
		end_ns = start_ns + job_kernel_ns(j, rank, step, i);
		if (w)
			job_put_kernel(w, i < n_forward ? JOB_FORWARD : JOB_BACKWARD, host_ns,
				       start_ns, end_ns);
		free_ns = end_ns;
		host_ns += CALL_NS + NEXT_NS;
		if (j->n_tensor > 1 && i < n_forward && i % TENSOR_EACH == 0) {
			if (w)
				job_put_tensor(w, host_ns, end_ns + GAP_NS, end_ns + TENSOR_NS);
			free_ns += TENSOR_NS;
			host_ns += CALL_NS + NEXT_NS;
		}
		if (i + 1 == n_forward)
			middle_ns = host_ns;
		while (bucket < j->n_buckets && job_bucket_kernel(j, bucket) == i) {
			plan->ready_ns[bucket++] = end_ns;
			host_ns += CALL_NS + NEXT_NS; /* the thread hands it to NCCL */
		}
	}
	if (w && j->has_ranges) {
		job_put_range(w, JOB_FORWARDING, begin_ns, middle_ns);
		job_put_range(w, JOB_BACKWARDING, middle_ns, host_ns);
	}
	plan->end_ns = free_ns;
	plan->host_ns = host_ns;
}

static u64 stage_ns(const struct job *j, u64 replica, u64 step, u64 stage, u64 what)
{
	f64 ns = (f64)(j->kernel_ns * j->n_kernels) / (f64)(2 * j->n_micro) *
		 (1 + JITTER * job_noise(j, replica * JOB_MAX_STAGES + stage, step, what));

	return (u64)(j->heavy >= 0 && stage == (u64)j->heavy ? ns * HEAVY : ns);
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

void job_pipeline(const struct job *j, u64 replica, u64 step, const u64 *begin_ns,
		  struct job_pipeline *p)
{
	u64 free_ns[JOB_MAX_STAGES];

	for (u64 s = 0; s < j->n_stages; s++)
		free_ns[s] = begin_ns[s] + CALL_NS + LATENCY_NS;
	for (int way = 0; way < 2; way++) {
		for (u64 m = 0; m < j->n_micro; m++) {
			for (u64 k = 0; k < j->n_stages; k++) {
				u64 s = way ? j->n_stages - 1 - k : k, from = way ? s + 1 : s - 1;

				p->post_ns[way][s][m] = free_ns[s];
				p->moved_ns[way][s][m] =
					k ? later(free_ns[s], p->end_ns[way][from][m]) + STAGE_NS
					  : free_ns[s];
				p->begin_ns[way][s][m] = p->moved_ns[way][s][m] + GAP_NS;
				p->end_ns[way][s][m] =
					p->begin_ns[way][s][m] +
					stage_ns(j, replica, step, s, (u64)way * 1000 + m);
				free_ns[s] = p->end_ns[way][s][m];
			}
		}
	}
}

/* When each rank has the gradients of each bucket; a pipeline has one bucket at its end. */
static void arrive(const struct job *j, u64 step, const u64 *begin_ns, struct job_plan *plans)
{
	struct job_pipeline *p;

	if (!j->n_stages) {
		for (u64 r = 0; r < j->n_ranks; r++)
			job_compute(j, r, step, begin_ns[r], &plans[r], NULL);
		return;
	}
	p = lull_alloc(1, sizeof(*p));
	for (u64 replica = 0; replica < j->n_ranks / j->n_stages; replica++) {
		job_pipeline(j, replica, step, begin_ns + replica * j->n_stages, p);
		for (u64 s = 0; s < j->n_stages; s++) {
			struct job_plan *plan = &plans[replica * j->n_stages + s];

			plan->end_ns = p->end_ns[1][s][j->n_micro - 1];
			plan->ready_ns[0] = plan->end_ns;
		}
	}
	free(p);
}

void job_meet(struct job *j)
{
	u64 *begin_ns = lull_alloc(j->n_ranks, sizeof(*begin_ns));
	u64 *free_ns = lull_alloc(j->n_ranks, sizeof(*free_ns));
	struct job_plan *plans = lull_alloc(j->n_ranks, sizeof(*plans));

	for (u64 r = 0; r < j->n_ranks; r++)
		begin_ns[r] = free_ns[r] = 1000000 + (u64)(20000 * (1 + job_noise(j, r, 1, 2)));
	for (u64 step = 0; step < j->n_steps; step++) {
		arrive(j, step, begin_ns, plans);
		for (u64 b = 0; b < j->n_buckets; b++) {
			u64 *ready_ns = &j->ready_ns[step * j->n_buckets + b];

			for (u64 r = 0; r < j->n_ranks; r++)
				*ready_ns = later(*ready_ns,
						  later(plans[r].ready_ns[b] + GAP_NS, free_ns[r]));
			for (u64 r = 0; r < j->n_ranks; r++)
				free_ns[r] = job_end_ns(j, r, step, b, *ready_ns) + GAP_NS;
		}
		for (u64 r = 0; r < j->n_ranks; r++)
			begin_ns[r] =
				later(free_ns[r], plans[r].end_ns) + JOB_UPDATE_NS + JOB_SEEN_NS;
	}
	free(begin_ns);
	free(free_ns);
	free(plans);
}
