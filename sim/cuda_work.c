/*
 * cuda_work - what is given to streams: kernels, copies, sets.
 */
#include "cuda_int.h"

#include <stdatomic.h>
#include <string.h>

int lull_sim_queue(struct sim_stream *stream, struct sim_work *work, const struct sim_job *job)
{
	int result;

	work->context_id = stream->context->id;
	work->stream_id = stream->id;
	lull_sim_lock();
	if (stream->capture) {
		result = lull_sim_graph_add(stream->capture, work, job);
		lull_sim_unlock();
		return result;
	}
	lull_sim_place(stream, work, job);
	/* Under the lock, so that jobs are queued in the order of their places in the model. */
	work->ticket = lull_sim_execute(job);
	stream->ticket = work->ticket ? work->ticket : stream->ticket;
	lull_sim_unlock();
	lull_sim_tell(work);
	return SIM_OK;
}

/* ---- kernels ---- */

/* LULL_SIM_DIE_AT=n: the n-th launch is the program's last call. */
static void die_at(void)
{
	static _Atomic u64 n_launches, last; /* UINT64_MAX: there is none */
	u64 n = atomic_fetch_add(&n_launches, 1) + 1;
	u64 knob = atomic_load_explicit(&last, memory_order_relaxed);

	/* Once: it is looked for in the whole environment, which is longer in a recording. */
	if (!knob) {
		knob = (u64)sim_knob("LULL_SIM_DIE_AT", 0);
		knob = knob ? knob : UINT64_MAX;
		atomic_store_explicit(&last, knob, memory_order_relaxed);
	}
	if (knob == n)
		abort();
}

static int launch(const struct sim_function *function, struct sim_work *work, void **params,
		  struct sim_stream *stream)
{
	struct sim_job job = { .kind = SIM_KERNEL };

	if (!function || !stream)
		return SIM_E_HANDLE;
	for (int i = 0; i < 3; i++) {
		if (!work->grid[i] || !work->block[i])
			return SIM_E_VALUE;
		job.grid[i] = work->grid[i];
		job.block[i] = work->block[i];
	}
	if (function->n_params && !params)
		return SIM_E_VALUE;
	for (u32 i = 0; i < function->n_params; i++)
		if (function->param_bytes[i] <= sizeof(job.params[i]))
			memcpy(&job.params[i], params[i], function->param_bytes[i]);
	job.kernel = function->kernel;
	work->name = function->name;
	return lull_sim_queue(stream, work, &job);
}

/* As CUPTI hands them to callbacks. */
struct launch_params {
	void *function;
	u32 grid[3];
	u32 block[3];
	u32 shared_bytes;
	void *stream;
	void **params;
	void **extra;
};

static int launch_kernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
			 unsigned block_x, unsigned block_y, unsigned block_z,
			 unsigned shared_bytes, void *stream, void **params, void **extra)
{
	const struct launch_params params_of = {
		.function = function,
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared_bytes = shared_bytes,
		.stream = stream,
		.params = params,
		.extra = extra,
	};
	struct sim_call call = lull_sim_enter_launch(
		SIM_CALL_cuLaunchKernel, "cuLaunchKernel", &params_of,
		function ? ((const struct sim_function *)function)->name : NULL);
	struct sim_work work = { .kind = SIM_KERNEL,
				 .correlation = call.correlation,
				 .grid = { grid_x, grid_y, grid_z },
				 .block = { block_x, block_y, block_z },
				 .shared_bytes = shared_bytes };

	die_at();
	if (extra)
		return lull_sim_leave(&call, SIM_E_VALUE);
	return lull_sim_leave(&call, launch(function, &work, params, lull_sim_stream(stream)));
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		   void *stream, void **params, void **extra)
{
	return launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
			     shared_bytes, stream, params, extra);
}

/* For programs whose default stream is the one of the thread; here all threads share it. */
int cuLaunchKernel_ptsz(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
			unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
			void *stream, void **params, void **extra)
{
	return launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
			     shared_bytes, stream, params, extra);
}

/* ---- copies ---- */

static u8 copy_kind(enum sim_memory src, enum sim_memory dst)
{
	if (src == SIM_DEVICE)
		return dst == SIM_DEVICE ? SIM_DTOD : SIM_DTOH;
	return dst == SIM_DEVICE ? SIM_HTOD : SIM_HTOH;
}

/*
 * Copy on a stream. The call returns when the copy is done unless it is asynchronous and both sides
 * are pinned or the device's. From pageable memory the real driver copies to a buffer of its own
 * before it returns, which takes about as long.
 */
static int copy(const struct sim_call *call, void *dst, const void *src, size_t bytes,
		struct sim_stream *stream, bool is_async)
{
	struct sim_job job = { .kind = SIM_MEMCPY, .dst = dst, .src = src, .size_bytes = bytes };
	struct sim_work work = { .kind = SIM_MEMCPY,
				 .correlation = call->correlation,
				 .size_bytes = bytes,
				 .src_kind = (u8)lull_sim_memory_kind(src),
				 .dst_kind = (u8)lull_sim_memory_kind(dst),
				 .is_async = is_async };
	bool is_pageable = work.src_kind == SIM_PAGEABLE || work.dst_kind == SIM_PAGEABLE;
	int result;

	if (!stream)
		return SIM_E_HANDLE;
	if (!bytes)
		return SIM_OK;
	if (stream->capture && (is_pageable || !is_async))
		return SIM_E_CAPTURE_UNSUPPORTED;
	work.copy_kind = copy_kind(work.src_kind, work.dst_kind);
	result = lull_sim_queue(stream, &work, &job);
	if (result == SIM_OK && (is_pageable || (!is_async && work.copy_kind != SIM_DTOD)))
		lull_sim_sleep(work.end_ns, work.ticket);
	return result;
}

static void *at(u64 address)
{
	return (void *)(uintptr_t)address;
}

int cuMemcpy(u64 dst, u64 src, size_t bytes)
{
	struct sim_call call = SIM_ENTER(cuMemcpy);

	return lull_sim_leave(&call,
			      copy(&call, at(dst), at(src), bytes, lull_sim_stream(NULL), false));
}

int cuMemcpyAsync(u64 dst, u64 src, size_t bytes, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemcpyAsync);

	return lull_sim_leave(&call,
			      copy(&call, at(dst), at(src), bytes, lull_sim_stream(stream), true));
}

int cuMemcpyHtoD_v2(u64 dst, const void *src, size_t bytes)
{
	struct sim_call call = SIM_ENTER(cuMemcpyHtoD_v2);

	return lull_sim_leave(&call,
			      copy(&call, at(dst), src, bytes, lull_sim_stream(NULL), false));
}

int cuMemcpyDtoH_v2(void *dst, u64 src, size_t bytes)
{
	struct sim_call call = SIM_ENTER(cuMemcpyDtoH_v2);

	return lull_sim_leave(&call,
			      copy(&call, dst, at(src), bytes, lull_sim_stream(NULL), false));
}

int cuMemcpyDtoD_v2(u64 dst, u64 src, size_t bytes)
{
	struct sim_call call = SIM_ENTER(cuMemcpyDtoD_v2);

	return lull_sim_leave(&call,
			      copy(&call, at(dst), at(src), bytes, lull_sim_stream(NULL), false));
}

int cuMemcpyHtoDAsync_v2(u64 dst, const void *src, size_t bytes, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemcpyHtoDAsync_v2);

	return lull_sim_leave(&call,
			      copy(&call, at(dst), src, bytes, lull_sim_stream(stream), true));
}

int cuMemcpyDtoHAsync_v2(void *dst, u64 src, size_t bytes, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemcpyDtoHAsync_v2);

	return lull_sim_leave(&call,
			      copy(&call, dst, at(src), bytes, lull_sim_stream(stream), true));
}

int cuMemcpyDtoDAsync_v2(u64 dst, u64 src, size_t bytes, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemcpyDtoDAsync_v2);

	return lull_sim_leave(&call,
			      copy(&call, at(dst), at(src), bytes, lull_sim_stream(stream), true));
}

/* ---- sets; none of them waits ---- */

static int set(const struct sim_call *call, u64 dst, u32 value, u64 value_bytes, size_t n,
	       struct sim_stream *stream)
{
	struct sim_job job = { .kind = SIM_MEMSET,
			       .dst = at(dst),
			       .size_bytes = n * value_bytes,
			       .value = value,
			       .value_bytes = (u32)value_bytes };
	struct sim_work work = { .kind = SIM_MEMSET,
				 .correlation = call->correlation,
				 .size_bytes = n * value_bytes,
				 .value = value,
				 .dst_kind = (u8)lull_sim_memory_kind(at(dst)) };

	if (!stream)
		return SIM_E_HANDLE;
	return n ? lull_sim_queue(stream, &work, &job) : SIM_OK;
}

int cuMemsetD8_v2(u64 dst, u8 value, size_t n)
{
	struct sim_call call = SIM_ENTER(cuMemsetD8_v2);

	return lull_sim_leave(&call, set(&call, dst, value, 1, n, lull_sim_stream(NULL)));
}

int cuMemsetD32_v2(u64 dst, u32 value, size_t n)
{
	struct sim_call call = SIM_ENTER(cuMemsetD32_v2);

	return lull_sim_leave(&call, set(&call, dst, value, 4, n, lull_sim_stream(NULL)));
}

int cuMemsetD8Async(u64 dst, u8 value, size_t n, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemsetD8Async);

	return lull_sim_leave(&call, set(&call, dst, value, 1, n, lull_sim_stream(stream)));
}

int cuMemsetD32Async(u64 dst, u32 value, size_t n, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemsetD32Async);

	return lull_sim_leave(&call, set(&call, dst, value, 4, n, lull_sim_stream(stream)));
}
