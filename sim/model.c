#include "cuda_int.h"

#include <string.h>

/*
 * The model decides at the moment of queueing when work will run:
 *
 *	begin = the latest of: now plus a latency, the end of the stream's queue, what the default
 *	        stream's rule asks for, and the moment when the engine is free
 *	end   = begin + cost
 *
 * Engines: one for copies to the device, one for copies from it, and the multiprocessors, of which
 * a kernel takes as many as it has blocks. So kernels of several streams overlap if they are small.
 * Copies within the device and sets are done by the multiprocessors and take all of them.
 */

#define LATENCY_NS	 3000  /* from the call to the device */
#define KERNEL_NS	 2000  /* the shortest kernel */
#define COPY_NS		 1500  /* the shortest copy */
#define FLOPS		 6e9   /* slow enough that the executor's CPU keeps up */
#define PINNED_BYTES	 0.5e9 /* a second */
#define PAGEABLE_BYTES	 0.1e9
#define DEVICE_BYTES	 20e9
#define MAX_COST_ENTRIES 16

/* LULL_SIM_COST=name:ns,name:ns; how long kernels of these names take. */
struct cost {
	char name[64];
	u64 ns;
};

static struct {
	bool is_ready;
	f64 rate;
	u64 kernel_ns; /* of a kernel that we know nothing about, 0 = by its threads */
	u64 sm_free_ns[SIM_DEVICE_SMS];
	u64 copy_free_ns[2]; /* to the device, from it */
	size_t n_costs;
	struct cost costs[MAX_COST_ENTRIES];
} model;

static void read_costs(const char *text)
{
	while (text && *text && model.n_costs < MAX_COST_ENTRIES) {
		struct cost *cost = &model.costs[model.n_costs];
		size_t n = strcspn(text, ":,");

		if (text[n] == ':' && n < sizeof(cost->name)) {
			memcpy(cost->name, text, n);
			cost->ns = strtoull(text + n + 1, NULL, 10);
			model.n_costs++;
		}
		text += strcspn(text, ",");
		text += *text == ',';
	}
}

static void prepare(void)
{
	if (model.is_ready)
		return;
	model.is_ready = true;
	model.rate = sim_knob("LULL_SIM_RATE", 1);
	if (model.rate <= 0)
		model.rate = 1;
	model.kernel_ns = (u64)sim_knob("LULL_SIM_KERNEL_NS", 0);
	read_costs(getenv("LULL_SIM_COST"));
}

static f64 kernel_cost_ns(const struct sim_work *work, const struct sim_job *job)
{
	for (size_t i = 0; i < model.n_costs; i++)
		if (strcmp(model.costs[i].name, work->name) == 0)
			return (f64)model.costs[i].ns;
	if (model.kernel_ns)
		return (f64)model.kernel_ns;
	return KERNEL_NS + lull_sim_kernel_flops(job) * 1e9 / FLOPS;
}

static f64 copy_cost_ns(const struct sim_work *work)
{
	f64 rate = PINNED_BYTES;

	if (work->copy_kind == SIM_DTOD || work->kind == SIM_MEMSET)
		rate = DEVICE_BYTES;
	else if (work->src_kind == SIM_PAGEABLE || work->dst_kind == SIM_PAGEABLE)
		rate = PAGEABLE_BYTES;
	return COPY_NS + (f64)work->size_bytes * 1e9 / rate;
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* The default stream waits for all blocking streams, and they for it. */
static u64 ready_ns(const struct sim_stream *stream)
{
	const struct sim_stream *null_stream = &stream->context->null_stream;
	u64 ns = later(sim_now_ns() + LATENCY_NS, stream->end_ns);

	if (stream == null_stream) {
		for (const struct sim_stream *s = stream->context->streams; s; s = s->next)
			ns = s->is_blocking ? later(ns, s->end_ns) : ns;
	} else if (stream->is_blocking) {
		ns = later(ns, null_stream->end_ns);
	}
	return ns;
}

/* The multiprocessor that is free first among those not taken yet. */
static u32 next_free(const bool *is_taken)
{
	u32 best = SIM_DEVICE_SMS;

	for (u32 i = 0; i < SIM_DEVICE_SMS; i++)
		if (!is_taken[i] &&
		    (best == SIM_DEVICE_SMS || model.sm_free_ns[i] < model.sm_free_ns[best]))
			best = i;
	return best;
}

/* Take `n` multiprocessors from when all of them are free; returns the start. */
static u64 take_sms(u32 n, u64 from_ns, u64 dur_ns)
{
	bool is_taken[SIM_DEVICE_SMS] = { false };

	for (u32 i = 0; i < n; i++) {
		u32 sm = next_free(is_taken);

		is_taken[sm] = true;
		from_ns = later(from_ns, model.sm_free_ns[sm]);
	}
	for (u32 i = 0; i < SIM_DEVICE_SMS; i++)
		if (is_taken[i])
			model.sm_free_ns[i] = from_ns + dur_ns;
	return from_ns;
}

static u64 take_copy_engine(u32 engine, u64 from_ns, u64 dur_ns)
{
	from_ns = later(from_ns, model.copy_free_ns[engine]);
	model.copy_free_ns[engine] = from_ns + dur_ns;
	return from_ns;
}

static u32 sms_of(const struct sim_work *work)
{
	u64 n_blocks = (u64)work->grid[0] * work->grid[1] * work->grid[2];

	if (work->kind != SIM_KERNEL || n_blocks > SIM_DEVICE_SMS)
		return SIM_DEVICE_SMS;
	return n_blocks ? (u32)n_blocks : 1;
}

void lull_sim_place(struct sim_stream *stream, struct sim_work *work, const struct sim_job *job)
{
	u64 from_ns, dur_ns;

	prepare();
	from_ns = ready_ns(stream);
	dur_ns = (u64)((work->kind == SIM_KERNEL ? kernel_cost_ns(work, job) : copy_cost_ns(work)) /
		       model.rate);
	if (work->kind == SIM_MEMCPY && work->copy_kind != SIM_DTOD)
		work->start_ns = take_copy_engine(work->copy_kind == SIM_DTOH, from_ns, dur_ns);
	else
		work->start_ns = take_sms(sms_of(work), from_ns, dur_ns);
	work->end_ns = work->start_ns + dur_ns;
	stream->end_ns = work->end_ns;
}
