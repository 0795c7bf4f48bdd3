#include "bench/gen_host.h"

#include "base/str.h"
#include "trace/writer.h"

#define N_THREADS 8u
#define N_FRAMES  400u
#define N_STACKS  4000u
#define N_NAMES	  60u
#define N_METRICS 12u
#define STREAM	  (N_THREADS + 1)

struct gen {
	struct lull_writer *w;
	u64 random;
	u64 bits;   /* of this round */
	u64 now_ns; /* of this round */
	u32 lane;   /* of this round: a thread */
	u64 n;
	u32 names[N_NAMES];
};

static u64 next_random(struct gen *g)
{
	g->random ^= g->random << 13;
	g->random ^= g->random >> 7;
	g->random ^= g->random << 17;
	return g->random;
}

static u32 text(struct gen *g, const char *format, unsigned number)
{
	struct lull_str s = LULL_STR_INIT;
	u32 id;

	lull_str_addf(&s, format, number);
	id = lull_writer_string(g->w, s.at, s.len);
	lull_str_release(&s);
	return id;
}

/* Durations from 1 us to some 100 us. */
static u64 duration(const struct gen *g)
{
	return 1000 + (g->bits >> 8) % 4096 * ((g->bits >> 20) % 16 + 1);
}

/* ---- dimensions ---- */

static void add_threads(struct gen *g)
{
	u32 python = text(g, "python 3.12.1", 0), name = text(g, "python3", 0);

	lull_writer_add_dim(g->w, LULL_TABLE_process,
			    &(struct lull_process_row){
				    .pid = 1, .has_agent = 1, .runtime = python, .name = name });
	lull_writer_add_dim(g->w, LULL_TABLE_device,
			    &(struct lull_device_row){ .process = 1, .name = text(g, "GPU", 0) });
	for (u32 t = 0; t < N_THREADS; t++)
		lull_writer_add_dim(g->w, LULL_TABLE_lane,
				    &(struct lull_lane_row){
					    .kind = 1, .process = 1, .tid = 1 + t, .name = name });
	lull_writer_add_dim(
		g->w, LULL_TABLE_lane,
		&(struct lull_lane_row){ .kind = 2, .process = 1, .device = 1, .stream_id = 7 });
}

/* A tree of stacks: each one is a frame on an earlier one. */
static void add_stacks(struct gen *g)
{
	u32 file = text(g, "/srv/train/train.py", 0);

	for (u32 f = 0; f < N_FRAMES; f++)
		lull_writer_add_dim(g->w, LULL_TABLE_frame,
				    &(struct lull_frame_row){ .kind = 2,
							      .function = text(g, "function_%u", f),
							      .file = file,
							      .line = f });
	for (u32 s = 0; s < N_STACKS; s++)
		lull_writer_add_dim(g->w, LULL_TABLE_stack,
				    &(struct lull_stack_row){
					    .parent = s < 8 ? 0 : 1 + (u32)(next_random(g) % s),
					    .frame = 1 + (u32)(next_random(g) % N_FRAMES) });
}

static void add_names(struct gen *g)
{
	for (u32 i = 0; i < N_NAMES; i++) {
		g->names[i] = text(g, "name_%u", i);
		lull_writer_add_dim(g->w, LULL_TABLE_op_label,
				    &(struct lull_op_label_row){ .name = text(g, "aten::op_%u", i),
								 .kind = 1 });
		lull_writer_add_dim(g->w, LULL_TABLE_launch,
				    &(struct lull_launch_row){ .name = text(g, "kernel_%u", i),
							       .grid_x = 1,
							       .grid_y = 1,
							       .grid_z = 1,
							       .block_x = 128,
							       .block_y = 1,
							       .block_z = 1 });
	}
	for (u32 i = 0; i < N_METRICS; i++)
		lull_writer_add_dim(g->w, LULL_TABLE_metric,
				    &(struct lull_metric_row){ .name = text(g, "metric_%u", i),
							       .unit = text(g, "%%", 0),
							       .source = text(g, "nvml", 0) });
}

/* ---- rows ---- */

static void add_calls(struct gen *g)
{
	u64 dur_ns = duration(g);
	u32 name = g->names[g->bits % N_NAMES];

	lull_writer_add(
		g->w, LULL_TABLE_oscall,
		&(struct lull_oscall_row){
			.start_ns = g->now_ns, .dur_ns = dur_ns, .lane = g->lane, .name = name });
	lull_writer_add(
		g->w, LULL_TABLE_lib_call,
		&(struct lull_lib_call_row){
			.start_ns = g->now_ns, .dur_ns = dur_ns, .lane = g->lane, .name = name });
	lull_writer_add(g->w, LULL_TABLE_mpi_call,
			&(struct lull_mpi_call_row){ .start_ns = g->now_ns,
						     .dur_ns = dur_ns,
						     .lane = g->lane,
						     .name = name,
						     .kind = 1 + (u8)(g->bits >> 40) % 2,
						     .comm = 1,
						     .n_ranks = 8,
						     .peer = (i64)(g->bits >> 44) % 8,
						     .root = -1,
						     .send_bytes = g->bits % 65536,
						     .recv_bytes = g->bits % 4096 });
	lull_writer_add(g->w, LULL_TABLE_gil_wait,
			&(struct lull_gil_wait_row){ .start_ns = g->now_ns + dur_ns / 2,
						     .dur_ns = dur_ns / 4,
						     .lane = g->lane,
						     .n_slices = 1 });
	lull_writer_add(g->w, LULL_TABLE_sched,
			&(struct lull_sched_row){ .start_ns = g->now_ns,
						  .dur_ns = dur_ns,
						  .lane = g->lane,
						  .cpu = (u16)(g->bits >> 50) % 16,
						  .end_reason = 1 + (u8)(g->bits >> 60) % 2 });
}

static void add_samples(struct gen *g)
{
	u32 stack = 1 + (u32)(g->bits >> 12) % N_STACKS;

	lull_writer_add(g->w, LULL_TABLE_sample,
			&(struct lull_sample_row){ .start_ns = g->now_ns,
						   .lane = g->lane,
						   .stack = stack,
						   .weight_ns = 1000000,
						   .source = 1 });
	lull_writer_add(g->w, LULL_TABLE_pysample,
			&(struct lull_pysample_row){ .start_ns = g->now_ns,
						     .lane = g->lane,
						     .stack = stack,
						     .has_gil = (u8)(g->bits & 1) });
	lull_writer_add(g->w, LULL_TABLE_counter,
			&(struct lull_counter_row){ .start_ns = g->now_ns,
						    .metric = 1 + (u32)(g->bits % N_METRICS),
						    .device = 1,
						    .value = (f64)(g->bits >> 20 & 127) });
}

/* An operator with its launch and kernel. */
static void add_op(struct gen *g, u64 i)
{
	u64 dur_ns = duration(g);

	lull_writer_add(g->w, LULL_TABLE_op,
			&(struct lull_op_row){ .start_ns = g->now_ns,
					       .dur_ns = dur_ns,
					       .lane = g->lane,
					       .label = 1 + (u32)(g->bits % N_NAMES),
					       .sequence = -1,
					       .external_id = i + 1 });
	lull_writer_add(g->w, LULL_TABLE_cuda_call,
			&(struct lull_cuda_call_row){ .start_ns = g->now_ns + dur_ns / 4,
						      .dur_ns = dur_ns / 4,
						      .lane = g->lane,
						      .name = g->names[0],
						      .correlation = (u32)i + 1,
						      .api = 2 });
	lull_writer_add(g->w, LULL_TABLE_kernel,
			&(struct lull_kernel_row){ .start_ns = g->now_ns + dur_ns,
						   .dur_ns = 900,
						   .lane = STREAM,
						   .launch = 1 + (u32)(g->bits % N_NAMES),
						   .correlation = (u32)i + 1,
						   .process = 1 });
}

/* Every second row takes back what the one before it took; addresses come again. */
static void add_memory(struct gen *g, u64 i)
{
	u64 size_bytes = 512 * (1 + (i / 2) % 1000), address = (1 + i / 2 % 4096) << 20;

	lull_writer_add(
		g->w, LULL_TABLE_alloc,
		&(struct lull_alloc_row){ .start_ns = g->now_ns,
					  .lane = g->lane,
					  .device_kind = 1,
					  .address = address,
					  .size_bytes = i % 2 ? -(i64)size_bytes : (i64)size_bytes,
					  .allocated_bytes = i % 2 ? 0 : size_bytes,
					  .reserved_bytes = 2 << 20 });
	lull_writer_add(g->w, LULL_TABLE_cuda_memory,
			&(struct lull_cuda_memory_row){ .start_ns = g->now_ns,
							.address = address,
							.size_bytes = size_bytes,
							.memory_kind = 3,
							.operation = 1 + (u8)(i % 2),
							.device = 1,
							.process = 1 });
	lull_writer_add(g->w, LULL_TABLE_um_event,
			&(struct lull_um_event_row){ .start_ns = g->now_ns,
						     .dur_ns = duration(g),
						     .kind = 1 + (u8)(g->bits % 4),
						     .address = (g->bits >> 24) % (1 << 18) << 16,
						     .size_bytes = 4096 * (g->bits % 16),
						     .n_faults = 1,
						     .cause = 1 + (u32)(g->bits % 3),
						     .process = 1 });
	lull_writer_add(g->w, LULL_TABLE_memset,
			&(struct lull_memset_row){ .start_ns = g->now_ns,
						   .dur_ns = 700,
						   .lane = STREAM,
						   .size_bytes = size_bytes,
						   .memory_kind = 3,
						   .process = 1 });
}

int gen_host(const char *path, u64 n, struct lull_err *err)
{
	struct lull_file_info info = { .epoch_ns = 1 };
	struct gen g = { .random = 88172645463325252u, .n = n };
	int rc = lull_writer_open(&g.w, path, &info, err);

	if (rc)
		return rc;
	add_threads(&g);
	add_stacks(&g);
	add_names(&g);
	for (u64 i = 0; i < n; i++) {
		g.bits = next_random(&g);
		/* Threads take turns, and none has two things at once. */
		g.lane = 1 + (u32)(i % N_THREADS);
		g.now_ns += 9000;
		add_calls(&g);
		add_samples(&g);
		add_op(&g, i);
		add_memory(&g, i);
	}
	return lull_writer_seal(g.w, err);
}
