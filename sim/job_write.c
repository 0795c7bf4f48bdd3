#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "sim/job.h"
#include "trace/writer.h"

/* Truth begins here, in the reference's UTC. */
#define UTC_NS 1700000000000000000ULL
/* The world's communicator, and those of two stages. */
#define WORLD_COMM 0x5eed00000000001ULL
#define PAIR_COMM  0x5eed10000000000ULL
/* One for each tensor parallel group. */
#define TENSOR_COMM 0x5eed20000000000ULL
/* Kernels between readings of the clock. */
#define READING_NS 500000u

enum { LANE_HOST = 1, LANE_COMPUTE, LANE_COMM };

struct job_writer {
	const struct job *job;
	struct lull_writer *w;
	u64 rank;
	f64 drift;     /* of this host's clock: share */
	u64 offset_ns; /* of its monotonic clock, at the truth's 0 */
	u64 epoch_ns;  /* of the report, on that clock */
	u64 seq;       /* of the world's communicator */
	u64 tensor_seq;
	u32 correlation;
	u32 names[8]; /* string ids */
};

enum { NAME_LAUNCH, NAME_SYNC, NAME_ALLREDUCE, NAME_SEND, NAME_RECV, NAME_FLOAT, NAME_RING };

/* A moment of the truth on the clock of the report. */
static u64 at(const struct job_writer *w, u64 true_ns)
{
	return (u64)((f64)true_ns * (1 + w->drift) + 0.5) + w->offset_ns - w->epoch_ns;
}

static void call(struct job_writer *w, u32 name, u64 begin_ns, u64 end_ns)
{
	struct lull_cuda_call_row row = { .start_ns = at(w, begin_ns),
					  .dur_ns = end_ns - begin_ns,
					  .lane = LANE_HOST,
					  .name = w->names[name],
					  .correlation = ++w->correlation,
					  .api = 2 };

	lull_writer_add(w->w, LULL_TABLE_cuda_call, &row);
}

void job_put_kernel(struct job_writer *w, enum job_kernel what, u64 host_ns, u64 begin_ns,
		    u64 end_ns)
{
	struct lull_kernel_row row = { .start_ns = at(w, begin_ns),
				       .dur_ns = at(w, end_ns) - at(w, begin_ns),
				       .lane = what >= JOB_ALLREDUCE ? LANE_COMM : LANE_COMPUTE,
				       .launch = (u32)what,
				       .process = 1 };

	if (what >= JOB_ALLREDUCE && w->job->is_mute)
		return;
	call(w, NAME_LAUNCH, host_ns, host_ns + 5000);
	row.correlation = w->correlation;
	lull_writer_add(w->w, LULL_TABLE_kernel, &row);
}

void job_put_range(struct job_writer *w, enum job_range what, u64 begin_ns, u64 end_ns)
{
	struct lull_range_row row = { .start_ns = at(w, begin_ns),
				      .dur_ns = end_ns - begin_ns,
				      .lane = LANE_HOST,
				      .label = (u32)what };

	lull_writer_add(w->w, LULL_TABLE_range, &row);
}

/* The operation as the plugin tells it: when it was put in line. */
static void operation(struct job_writer *w, u32 name, u64 host_ns, u64 comm, i64 peer)
{
	const struct job *j = w->job;
	bool is_world = comm == WORLD_COMM, is_tensor = comm == TENSOR_COMM;
	struct lull_collective_row row = { .start_ns = at(w, host_ns),
					   .dur_ns = 4000,
					   .lane = LANE_HOST,
					   .source = 2,
					   .name = w->names[name],
					   .comm = comm,
					   .n_ranks = (u32)(is_world ? j->n_ranks : 2),
					   .rank = (u32)(is_world ? w->rank : 0),
					   .datatype = w->names[NAME_FLOAT],
					   .peer = peer,
					   .seq = is_world ? w->seq++ : 0,
					   .algorithm = w->names[NAME_RING],
					   .n_channels = 8 };

	row.in_bytes = row.out_bytes = is_world ? j->bytes / j->n_buckets : 4 << 20;
	if (is_world && j->n_tensor > 1) {
		row.comm += w->rank % j->n_tensor;
		row.n_ranks = (u32)(j->n_ranks / j->n_tensor);
		row.rank = (u32)(w->rank / j->n_tensor);
	} else if (is_tensor) {
		row.comm += w->rank / j->n_tensor;
		row.n_ranks = (u32)j->n_tensor;
		row.rank = (u32)(w->rank % j->n_tensor);
		row.seq = w->tensor_seq++;
	} else if (!is_world) {
		row.rank = (u32)(1 - peer);
	}
	if (j->is_mute)
		return;
	lull_writer_add(w->w, LULL_TABLE_collective, &row);
}

void job_put_tensor(struct job_writer *w, u64 host_ns, u64 begin_ns, u64 end_ns)
{
	operation(w, NAME_ALLREDUCE, host_ns - 1000, TENSOR_COMM, -1);
	job_put_kernel(w, JOB_ALLREDUCE, host_ns, begin_ns, end_ns);
}

static void step_row(struct job_writer *w, u64 number, u64 begin_ns, u64 end_ns)
{
	struct lull_step_row row = { .start_ns = at(w, begin_ns),
				     .dur_ns = end_ns - begin_ns,
				     .lane = LANE_HOST,
				     .number = number };

	lull_writer_add(w->w, LULL_TABLE_step, &row);
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Readings of the clock: lower while the device is throttled. */
static void readings(struct job_writer *w, u64 step, u64 begin_ns, u64 end_ns)
{
	const struct job *j = w->job;
	bool is_low = j->slow >= 0 && w->rank == (u64)j->slow && j->cause == JOB_THROTTLED &&
		      step >= j->slow_from;

	for (u64 t = begin_ns; t < end_ns; t += READING_NS) {
		struct lull_counter_row row = { .start_ns = at(w, t),
						.metric = 1,
						.device = 1,
						.value = is_low ? 1365 : 1980 };

		lull_writer_add(w->w, LULL_TABLE_counter, &row);
	}
}

/* Sends and receives of one stage, and what it computes between them. */
static void put_stage(struct job_writer *w, u64 stage, const struct job_pipeline *p, u64 *host_ns)
{
	const struct job *j = w->job;
	u64 pair = PAIR_COMM + w->rank;

	for (int way = 0; way < 2; way++) {
		bool is_first = way ? stage + 1 == j->n_stages : stage == 0;
		bool is_last = way ? stage == 0 : stage + 1 == j->n_stages;
		u64 next = way ? stage - 1 : stage + 1;

		/* Of two stages the first has the communicator's rank 0. */
		for (u64 m = 0; m < j->n_micro; m++) {
			if (!is_first) {
				operation(w, NAME_RECV, *host_ns - 1000, way ? pair : pair - 1,
					  way ? 1 : 0);
				job_put_kernel(w, JOB_SENDRECV, *host_ns, p->post_ns[way][stage][m],
					       p->moved_ns[way][stage][m]);
				*host_ns += 8000;
			}
			job_put_kernel(w, way ? JOB_BACKWARD : JOB_FORWARD, *host_ns,
				       p->begin_ns[way][stage][m], p->end_ns[way][stage][m]);
			*host_ns += 8000;
			if (!is_last) {
				operation(w, NAME_SEND, *host_ns - 1000, way ? pair - 1 : pair,
					  way ? 0 : 1);
				job_put_kernel(w, JOB_SENDRECV, *host_ns, p->end_ns[way][stage][m],
					       p->moved_ns[way][next][m]);
				*host_ns += 8000;
			}
		}
	}
}

/* The collectives of the world after what `plan` says; returns when the step is over. */
static u64 put_world(struct job_writer *w, u64 step, const struct job_plan *plan, u64 *free_ns)
{
	const struct job *j = w->job;
	u64 host_ns = plan->host_ns, end_ns;

	for (u64 b = 0; b < j->n_buckets; b++) {
		u64 begin_ns = later(plan->ready_ns[b] + 900, *free_ns);
		u64 until_ns =
			job_end_ns(j, w->rank, step, b, j->ready_ns[step * j->n_buckets + b]);

		operation(w, NAME_ALLREDUCE, host_ns - 1000, WORLD_COMM, -1);
		job_put_kernel(w, JOB_ALLREDUCE, host_ns, begin_ns, until_ns);
		host_ns += 8000;
		*free_ns = until_ns + 900;
	}
	end_ns = later(*free_ns, plan->end_ns);
	job_put_kernel(w, JOB_UPDATE, host_ns, end_ns + 1000, end_ns + JOB_UPDATE_NS);
	call(w, NAME_SYNC, host_ns + 8000, end_ns + JOB_UPDATE_NS + 5000);
	return end_ns + JOB_UPDATE_NS + JOB_SEEN_NS;
}

static u64 first_ns(const struct job *j, u64 rank)
{
	return 1000000 + (u64)(20000 * (1 + job_noise(j, rank, 1, 2)));
}

static void put_ddp(struct job_writer *w)
{
	const struct job *j = w->job;
	u64 begin_ns = first_ns(j, w->rank), free_ns = begin_ns;

	for (u64 step = 0; step < j->n_steps; step++) {
		struct job_plan plan = { .end_ns = 0 };
		u64 end_ns;

		job_compute(j, w->rank, step, begin_ns, &plan, w);
		end_ns = put_world(w, step, &plan, &free_ns);
		step_row(w, step, begin_ns, end_ns);
		readings(w, step, begin_ns, end_ns);
		begin_ns = end_ns;
	}
}

static void put_pipeline(struct job_writer *w)
{
	const struct job *j = w->job;
	u64 replica = w->rank / j->n_stages, own = w->rank % j->n_stages;
	u64 begin_ns[JOB_MAX_STAGES], free_ns[JOB_MAX_STAGES];
	struct job_pipeline *p = lull_alloc(1, sizeof(*p));

	for (u64 s = 0; s < j->n_stages; s++)
		begin_ns[s] = free_ns[s] = first_ns(j, replica * j->n_stages + s);
	for (u64 step = 0; step < j->n_steps; step++) {
		u64 from_ns = begin_ns[own];

		job_pipeline(j, replica, step, begin_ns, p);
		for (u64 s = 0; s < j->n_stages; s++) {
			u64 rank = replica * j->n_stages + s;
			struct job_plan plan = { .end_ns = p->end_ns[1][s][j->n_micro - 1] };

			plan.ready_ns[0] = plan.end_ns;
			plan.host_ns = begin_ns[s] + 1000;
			if (s == own) {
				put_stage(w, s, p, &plan.host_ns);
				begin_ns[s] = put_world(w, step, &plan, &free_ns[s]);
				step_row(w, step, from_ns, begin_ns[s]);
			} else {
				free_ns[s] = job_end_ns(j, rank, step, 0, j->ready_ns[step]) + 900;
				begin_ns[s] = later(free_ns[s], plan.end_ns) + JOB_UPDATE_NS +
					      JOB_SEEN_NS;
			}
		}
	}
	free(p);
}

static void meta(struct job_writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void meta(struct job_writer *w, const char *key, const char *fmt, ...)
{
	struct lull_meta_row row = { .key = lull_writer_string(w->w, key, strlen(key)) };
	struct lull_str text = LULL_STR_INIT;
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(&text, fmt, ap);
	va_end(ap);
	row.value = lull_writer_string(w->w, lull_str_text(&text), text.len);
	lull_writer_add_dim(w->w, LULL_TABLE_meta, &row);
	lull_str_release(&text);
}

static u32 word(struct job_writer *w, const char *text)
{
	return lull_writer_string(w->w, text, strlen(text));
}

/* "rank3_forward", as programs name their ranges. */
static void put_pass_label(struct job_writer *w, const char *pass)
{
	struct lull_label_row label = { .api = 1 };
	char name[48];

	snprintf(name, sizeof(name), "rank%llu_%s", (unsigned long long)w->rank, pass);
	label.name = word(w, name);
	lull_writer_add_dim(w->w, LULL_TABLE_label, &label);
}

static void put_dims(struct job_writer *w)
{
	static const char *const names[] = { "cudaLaunchKernel",
					     "cudaStreamSynchronize",
					     "AllReduce",
					     "Send",
					     "Recv",
					     "float32",
					     "RING" };
	static const char *const kernels[] = { "sm90_gemm_forward", "sm90_gemm_backward",
					       "multi_tensor_apply_adam",
					       "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
					       "ncclDevKernel_SendRecv" };
	static const char *const ranges[] = { "dataloader.next", "gc.collect" };
	const struct job *j = w->job;
	struct lull_process_row process = { .pid = (u32)(1000 + w->rank),
					    .name = word(w, "train"),
					    .has_agent = 1 };
	struct lull_device_row device = { .process = 1,
					  .device_id = (u32)(w->rank % j->per_host),
					  .name = word(w, "Simulated GPU"),
					  .clock_hz = 1980000000,
					  .is_simulated = 1 };
	struct lull_metric_row metric = { .name = word(w, "sm_clock"),
					  .unit = word(w, "MHz"),
					  .source = word(w, "nvml") };

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		w->names[i] = word(w, names[i]);
	lull_writer_add_dim(w->w, LULL_TABLE_process, &process);
	lull_writer_add_dim(w->w, LULL_TABLE_device, &device);
	for (u32 i = LANE_HOST; i <= LANE_COMM; i++) {
		struct lull_lane_row lane = { .kind = i == LANE_HOST ? 1 : 2,
					      .process = 1,
					      .tid = i == LANE_HOST ? process.pid : 0,
					      .name = i == LANE_HOST ? word(w, "main") : 0,
					      .device = i == LANE_HOST ? 0 : 1,
					      .stream_id = i * 7 };

		lull_writer_add_dim(w->w, LULL_TABLE_lane, &lane);
	}
	for (size_t i = 0; i < LULL_COUNT_OF(kernels); i++) {
		struct lull_launch_row launch = { .name = word(w, kernels[i]) };

		lull_writer_add_dim(w->w, LULL_TABLE_launch, &launch);
	}
	for (size_t i = 0; i < LULL_COUNT_OF(ranges); i++) {
		struct lull_label_row label = { .name = word(w, ranges[i]), .api = 1 };

		lull_writer_add_dim(w->w, LULL_TABLE_label, &label);
	}
	put_pass_label(w, "forward");
	put_pass_label(w, "backward");
	lull_writer_add_dim(w->w, LULL_TABLE_metric, &metric);
	meta(w, "rank", "%llu", (unsigned long long)w->rank);
	meta(w, "local_rank", "%llu", (unsigned long long)(w->rank % j->per_host));
	meta(w, "world_size", "%llu", (unsigned long long)j->n_ranks);
	meta(w, "host", "node%04llu", (unsigned long long)(w->rank / j->per_host));
	meta(w, "job", "%s", j->name);
	meta(w, "recording.version", "%s", j->version);
}

/* Cut the file off in the middle of a block, as a full disk would. */
static int cut(const char *path, struct lull_err *err)
{
	FILE *f = fopen(path, "r+e");
	long len;

	if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0 ||
	    ftruncate(fileno(f), len * 2 / 5)) {
		if (f)
			fclose(f);
		return lull_fail_errno(err, "cutting %s", path);
	}
	return fclose(f) ? lull_fail_errno(err, "cutting %s", path) : LULL_OK;
}

int job_write(const struct job *j, u64 rank, struct lull_err *err)
{
	struct job_writer w = { .job = j, .rank = rank };
	u64 host = rank / j->per_host;
	/* The reference, rank 0, has the right time. */
	f64 off = host ? (f64)j->max_offset_ns * job_noise(j, host, 11, 0) : 0;
	struct lull_file_info info = { .flags = LULL_FILE_SIMULATED };
	struct lull_str path = LULL_STR_INIT;
	int rc;

	w.drift = host ? (f64)j->max_drift_ppm * 1e-6 * job_noise(j, host, 12, 0) : 0;
	/* Since each host's boot; the recorder of each rank began at another moment. */
	w.offset_ns = 1000000000000ULL * (host % 97 + 1);
	w.epoch_ns = w.offset_ns + job_hash(j, rank, 13, 0) % 900000;
	info.epoch_ns = w.epoch_ns;
	info.epoch_utc_ns = UTC_NS + (u64)(i64)off + (w.epoch_ns - w.offset_ns);
	for (int i = 0; i < 16; i++)
		info.id[i] = (u8)job_hash(j, rank, 14, (u64)i);
	lull_str_addf(&path, "%s/rank%04llu.lull", j->folder, (unsigned long long)rank);
	unlink(lull_str_text(&path));
	rc = lull_writer_open(&w.w, lull_str_text(&path), &info, err);
	if (!rc) {
		lull_writer_set_temporary(w.w);
		put_dims(&w);
		if (j->n_stages)
			put_pipeline(&w);
		else
			put_ddp(&w);
		rc = lull_writer_seal(w.w, err);
	}
	if (!rc && j->truncated >= 0 && rank == (u64)j->truncated)
		rc = cut(lull_str_text(&path), err);
	lull_str_release(&path);
	return rc;
}
