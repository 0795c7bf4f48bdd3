#include "bench/gen_report.h"

#include <math.h>

#include "base/str.h"
#include "trace/writer.h"

#define N_PROCESSES    2u
#define N_WORKERS      4u
#define N_STREAMS      3u
#define N_LANES	       (2 + N_WORKERS + N_STREAMS) /* of each process */
#define N_KERNEL_NAMES 220u
#define N_LABELS       190u
#define N_CALL_NAMES   40u
#define N_OS_NAMES     50u
#define N_OPS	       1100u
#define LAYER_OPS      14u
#define N_SHAPES       3u /* launches of an operator whose shape changes */
#define QUEUE_NS       8000000u
#define TICK_NS	       32u

/* What one launch of the program is. */
struct op {
	u32 launch;	 /* first of N_SHAPES */
	u32 label;	 /* of the range around it */
	u32 call_name;	 /* string id */
	u32 stream;	 /* index */
	f64 mean_ns;	 /* on the device */
	f64 sigma;	 /* of its logarithm */
	bool is_copy;	 /* a copy instead of a kernel */
	bool is_dynamic; /* its shape changes */
};

struct process {
	u32 number;		  /* 0 or 1 */
	u64 cpu_ns;		  /* now on the thread that launches */
	u64 stream_ns[N_STREAMS]; /* when its last work ends */
	u64 worker_ns[N_WORKERS];
	u32 worker_name[N_WORKERS];
	u32 correlation;
	u64 n_steps;
};

struct gen {
	const struct gen_report_options *options;
	struct lull_writer *w;
	u64 random;
	u64 n_kernels;
	struct op ops[N_OPS];
	u32 os_names[N_OS_NAMES];
	u32 sync_name; /* string id */
	u32 first_layer_label;
};

/* ---- random numbers ---- */

static u64 bits(struct gen *g)
{
	g->random ^= g->random << 13;
	g->random ^= g->random >> 7;
	g->random ^= g->random << 17;
	return g->random;
}

static f64 uniform(struct gen *g)
{
	return (f64)(bits(g) >> 11) * 0x1p-53;
}

/* The sum of four pieces of a random word is close enough to normal, and quick. */
static f64 normal(struct gen *g)
{
	u64 b = bits(g);
	f64 sum = (f64)((b & 0xffff) + (b >> 16 & 0xffff) + (b >> 32 & 0xffff) + (b >> 48));

	return (sum / 65536.0 - 2.0) * 1.7320508;
}

static u64 log_normal(struct gen *g, f64 median, f64 sigma)
{
	return (u64)(median * exp(sigma * normal(g))) + 1;
}

/* Zipf (1.05) over 0 .. n - 1 by inversion of its integral. */
static u32 zipf(struct gen *g, u32 n)
{
	const f64 s = 1.05;
	f64 u = uniform(g) * (1 - pow(n + 1.0, 1 - s));
	u32 k = (u32)pow(1 - u, 1 / (1 - s));

	return k < 1 ? 0 : k > n ? n - 1 : k - 1;
}

/* ---- dimensions ---- */

static u32 text(struct gen *g, const char *format, unsigned number)
{
	struct lull_str s = LULL_STR_INIT;
	u32 id;

	lull_str_addf(&s, format, number);
	id = lull_writer_string(g->w, s.at, s.len);
	lull_str_release(&s);
	return id;
}

static u32 lane_of(const struct process *p, u32 ix)
{
	return p->number * N_LANES + ix + 1;
}

static void add_process(struct gen *g, u32 ix)
{
	struct lull_process_row process = { .pid = 1000 + 100 * ix,
					    .name = text(g, "python3", 0),
					    .has_agent = 1 };
	u32 process_id = lull_writer_add_dim(g->w, LULL_TABLE_process, &process);
	struct lull_device_row device = { .process = process_id,
					  .device_id = ix,
					  .name = text(g, "Test GPU", 0),
					  .uuid = text(g, "uuid %u", ix),
					  .capability = 90,
					  .n_sms = 132 };
	u32 device_id = lull_writer_add_dim(g->w, LULL_TABLE_device, &device);

	for (u32 l = 0; l < N_LANES; l++) {
		bool is_stream = l >= 2 + N_WORKERS;
		struct lull_lane_row lane = { .kind = is_stream ? 2 : 1, .process = process_id };

		if (is_stream) {
			lane.device = device_id;
			lane.context_id = 1;
			lane.stream_id = 7 * (l - 1 - N_WORKERS);
		} else {
			lane.tid = process.pid + l;
			lane.name = l == 0   ? text(g, "main", 0)
				    : l == 1 ? text(g, "autograd", 0)
					     : text(g, "worker %u", l - 1);
		}
		lull_writer_add_dim(g->w, LULL_TABLE_lane, &lane);
	}
}

/* A name as long as those of real kernels; half of them are. */
static u32 kernel_name(struct gen *g, u32 number)
{
	return number % 2
		       ? text(g, "void ns::kernel_%u<float>(float*)", number)
		       : text(g,
			      "void at::native::vectorized_elementwise_kernel<4, "
			      "at::native::Functor_%u"
			      "<float>, std::array<char*, 3ul> >(int, at::native::Functor<float>, "
			      "std::array<char*, 3ul>)",
			      number);
}

static u32 add_launches(struct gen *g)
{
	u32 name = zipf(g, N_KERNEL_NAMES), first = 0;

	for (u32 i = 0; i < N_SHAPES; i++) {
		struct lull_launch_row launch = { .name = kernel_name(g, name),
						  .grid_x = 1 + (u32)(bits(g) % 4096),
						  .grid_y = 1,
						  .grid_z = 1,
						  .block_x = 128,
						  .block_y = 1,
						  .block_z = 1,
						  .registers = 32 + name % 64 };
		u32 id = lull_writer_add_dim(g->w, LULL_TABLE_launch, &launch);

		first = first ? first : id;
	}
	return first;
}

static void make_op(struct gen *g, u32 ix)
{
	struct op *op = &g->ops[ix];
	f64 which = uniform(g);

	if (ix >= LAYER_OPS && uniform(g) < 0.62) {
		*op = g->ops[ix - LAYER_OPS];
		return;
	}
	*op = (struct op){
		.label = 1 + zipf(g, N_LABELS),
		.call_name = text(g, "cudaApiCall_%u_v7000", zipf(g, N_CALL_NAMES)),
		.stream = which < 0.93	 ? 0
			  : which < 0.97 ? 1
					 : 2,
		.mean_ns = uniform(g) < 0.5 ? 2400 : 48000,
		.sigma = 0.01 + 0.15 * uniform(g),
		.is_copy = which >= 0.93 && which < 0.97,
		.is_dynamic = uniform(g) < 0.08,
	};
	op->launch = add_launches(g);
}

static void add_dims(struct gen *g)
{
	for (u32 p = 0; p < N_PROCESSES; p++)
		add_process(g, p);
	for (u32 i = 0; i < N_LABELS; i++) {
		struct lull_label_row label = { .name = text(g, "aten::operator_%u", i), .api = 1 };

		lull_writer_add_dim(g->w, LULL_TABLE_label, &label);
	}
	g->first_layer_label = N_LABELS + 1;
	for (u32 i = 0; i <= N_OPS / LAYER_OPS; i++) {
		struct lull_label_row label = { .name = text(g, "layer %u", i), .api = 1 };

		lull_writer_add_dim(g->w, LULL_TABLE_label, &label);
	}
	for (u32 i = 0; i < N_OS_NAMES; i++)
		g->os_names[i] = text(g, "os_call_%u", i);
	g->sync_name = text(g, "cudaDeviceSynchronize_v3020", 0);
	for (u32 i = 0; i < N_OPS; i++)
		make_op(g, i);
}

/* ---- what happens ---- */

static u64 ticks(struct gen *g, u64 ns)
{
	u64 rounded = ns / TICK_NS * TICK_NS;

	return rounded + (uniform(g) < 0.3 ? 1 : 0);
}

/* The work that a call started, once its stream is free; returns when it begins. */
static u64 run_on_device(struct gen *g, struct process *p, const struct op *op)
{
	u64 *free_ns = &p->stream_ns[op->stream], ready_ns = p->cpu_ns + 2500;
	u64 begin_ns = ticks(g, (ready_ns > *free_ns ? ready_ns : *free_ns) + 1200);
	u64 dur_ns = ticks(g, TICK_NS + log_normal(g, op->mean_ns, op->sigma));
	u32 lane = lane_of(p, 2 + N_WORKERS + op->stream);

	if (op->is_copy) {
		lull_writer_add(g->w, LULL_TABLE_memcpy,
				&(struct lull_memcpy_row){ .start_ns = begin_ns,
							   .dur_ns = dur_ns,
							   .lane = lane,
							   .size_bytes = (u64)op->mean_ns * 24,
							   .correlation = p->correlation,
							   .copy_kind = op->mean_ns < 10000 ? 1 : 8,
							   .src_kind = op->mean_ns < 10000 ? 2 : 3,
							   .dst_kind = 3,
							   .process = p->number + 1 });
	} else {
		u32 shape = op->is_dynamic ? (u32)(bits(g) % N_SHAPES) : 0;

		g->n_kernels++;
		lull_writer_add(g->w, LULL_TABLE_kernel,
				&(struct lull_kernel_row){ .start_ns = begin_ns,
							   .dur_ns = dur_ns,
							   .lane = lane,
							   .launch = op->launch + shape,
							   .correlation = p->correlation,
							   .process = p->number + 1 });
	}
	*free_ns = begin_ns + dur_ns;
	return begin_ns;
}

static void add_call(struct gen *g, struct process *p, u32 lane, u32 name, u64 dur_ns)
{
	lull_writer_add(g->w, LULL_TABLE_cuda_call,
			&(struct lull_cuda_call_row){ .start_ns = p->cpu_ns,
						      .dur_ns = dur_ns,
						      .lane = lane,
						      .name = name,
						      .correlation = p->correlation,
						      .api = 2 });
}

static void add_range(struct gen *g, const struct lull_range_row *range)
{
	if (g->options->has_ranges)
		lull_writer_add(g->w, LULL_TABLE_range, range);
}

static void run_op(struct gen *g, struct process *p, u32 ix)
{
	const struct op *op = &g->ops[ix];
	u32 lane = lane_of(p, ix < N_OPS / 2 ? 0 : 1);
	u64 begin_ns = p->cpu_ns, dur_ns = log_normal(g, 2600, 0.35);

	p->cpu_ns += log_normal(g, ix < N_OPS / 2 ? 9000 : 1500, 0.5);
	p->correlation += 1 + (u32)(ix * 7 % 12);
	/* A full queue lets the call wait. */
	if (p->stream_ns[op->stream] > p->cpu_ns + QUEUE_NS)
		dur_ns += p->stream_ns[op->stream] - p->cpu_ns - QUEUE_NS;
	add_call(g, p, lane, op->call_name, dur_ns);
	run_on_device(g, p, op);
	p->cpu_ns += dur_ns + log_normal(g, 300, 0.3);
	if (ix % 4 == 0)
		add_range(g, &(struct lull_range_row){ .start_ns = begin_ns,
						       .dur_ns = p->cpu_ns - begin_ns,
						       .depth = 1,
						       .lane = lane,
						       .label = op->label });
}

static void run_layer(struct gen *g, struct process *p, u32 first_op)
{
	u32 end = first_op + LAYER_OPS < N_OPS ? first_op + LAYER_OPS : N_OPS;
	u32 lane = lane_of(p, first_op < N_OPS / 2 ? 0 : 1);
	u64 begin_ns = p->cpu_ns;

	/* No layer lies on two threads. */
	if (first_op < N_OPS / 2 && end > N_OPS / 2)
		end = N_OPS / 2;
	for (u32 i = first_op; i < end && g->n_kernels < g->options->n_kernels; i++)
		run_op(g, p, i);
	add_range(g,
		  &(struct lull_range_row){ .start_ns = begin_ns,
					    .dur_ns = p->cpu_ns - begin_ns,
					    .depth = 0,
					    .lane = lane,
					    .label = g->first_layer_label + first_op / LAYER_OPS });
	if (end == N_OPS / 2 && end < first_op + LAYER_OPS)
		run_layer(g, p, end);
}

/* Workers call into the C library, by a Markov chain, until the step is over. */
static void run_workers(struct gen *g, struct process *p)
{
	for (u32 n = 0; n < N_WORKERS; n++) {
		for (u32 i = 0; i < N_OPS / 4 / N_WORKERS && p->worker_ns[n] < p->cpu_ns; i++) {
			u32 name = uniform(g) < 0.7 ? p->worker_name[n] * 7 % N_OS_NAMES
						    : zipf(g, N_OS_NAMES);
			u64 dur_ns = log_normal(g, 1500.0 * (name + 1), 0.5 + 0.02 * name);

			p->worker_name[n] = name;
			lull_writer_add(g->w, LULL_TABLE_oscall,
					&(struct lull_oscall_row){
						.start_ns = p->worker_ns[n],
						.dur_ns = dur_ns,
						.lane = lane_of(p, 2 + n),
						.name = g->os_names[name],
						.ret = name % 3 ? 0 : (i64)log_normal(g, 4096, 0.8),
						.arg = name % 4 ? 3 + name % 9 : 0 });
			p->worker_ns[n] += dur_ns + log_normal(g, 3000, 1.0);
		}
		if (p->worker_ns[n] < p->cpu_ns)
			p->worker_ns[n] = p->cpu_ns;
	}
}

static void run_step(struct gen *g, struct process *p)
{
	u64 begin_ns = p->cpu_ns, last_ns = 0;

	p->cpu_ns += log_normal(g, 1500000, 0.5); /* waits for data */
	for (u32 i = 0; i < N_OPS; i += LAYER_OPS)
		run_layer(g, p, i);
	for (u32 s = 0; s < N_STREAMS; s++)
		last_ns = p->stream_ns[s] > last_ns ? p->stream_ns[s] : last_ns;
	last_ns = last_ns > p->cpu_ns + 2000 ? last_ns : p->cpu_ns + 2000;
	p->correlation++;
	add_call(g, p, lane_of(p, 0), g->sync_name, last_ns - p->cpu_ns);
	p->cpu_ns = last_ns + 1000;
	if (g->options->has_ranges)
		lull_writer_add(g->w, LULL_TABLE_step,
				&(struct lull_step_row){ .start_ns = begin_ns,
							 .dur_ns = p->cpu_ns - begin_ns,
							 .lane = lane_of(p, 0),
							 .number = p->n_steps });
	if (g->options->has_oscalls)
		run_workers(g, p);
	p->n_steps++;
}

int gen_report(const char *path, const struct gen_report_options *options, struct lull_err *err)
{
	struct lull_file_info info = { .epoch_ns = 1, .epoch_utc_ns = 1700000000000000000u };
	struct gen g = { .options = options, .random = 88172645463325252u };
	struct process processes[N_PROCESSES] = { { .number = 0 }, { .number = 1 } };

	if (lull_writer_open(&g.w, path, &info, err))
		return err->code;
	add_dims(&g);
	while (g.n_kernels < options->n_kernels)
		run_step(&g, &processes[processes[0].cpu_ns > processes[1].cpu_ns]);
	return lull_writer_seal(g.w, err);
}
