/*
 * libcudart - a stand-in for the CUDA runtime: what it asks of the driver, and CUPTI's callbacks
 * around it. A kernel is the driver's function.
 */
#include "cudart.h"

#include <pthread.h>

#include "cuda_int.h"

#define E_NO_DEVICE 100

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *primary; /* the context that all threads of the program share */
static _Thread_local bool has_context;
static _Thread_local int last_error;

enum runtime_cbid {
#define CALL(cbid, version, name, params) RUNTIME_##name = cbid,
#include "runtime.def"
#undef CALL
};

static void start(void)
{
	if (cuInit(0) != SIM_OK || cuDevicePrimaryCtxRetain(&primary, 0) != SIM_OK)
		primary = NULL;
}

/* The first call that needs the device starts it, the first of a thread gives it the context. */
static int ready(void)
{
	void *current = NULL;

	if (has_context)
		return SIM_OK;
	pthread_once(&once, start);
	if (!primary)
		return E_NO_DEVICE;
	if (cuCtxGetCurrent(&current) == SIM_OK && !current)
		cuCtxSetCurrent(primary);
	has_context = true;
	return SIM_OK;
}

static struct sim_call enter(u32 cbid, const char *name, const void *params)
{
	struct sim_call call = {
		.domain = SIM_RUNTIME, .cbid = cbid, .name = name, .params = params
	};

	lull_sim_runtime_enter(&call);
	return call;
}
#define ENTER(name, ...) enter(RUNTIME_##name, #name, (const void *[]){ __VA_ARGS__ })

static int leave(struct sim_call *call, int result)
{
	if (result)
		last_error = result;
	call->result = result;
	lull_sim_runtime_leave(call);
	return result;
}

/* A call that does nothing but this, on the device. */
#define RUN(name, expression, ...)                                \
	do {                                                      \
		struct sim_call call_ = ENTER(name, __VA_ARGS__); \
		int result_ = ready();                            \
                                                                  \
		if (!result_)                                     \
			result_ = (expression);                   \
		return leave(&call_, result_);                    \
	} while (0)

int cudaGetLastError(void)
{
	struct sim_call call = ENTER(cudaGetLastError, NULL);
	int error = last_error;

	last_error = 0;
	call.result = error;
	lull_sim_runtime_leave(&call);
	return error;
}

int cudaGetDevice(int *device)
{
	RUN(cudaGetDevice, cuCtxGetDevice(device), device);
}

int cudaMalloc(void **at, size_t bytes)
{
	RUN(cudaMalloc, cuMemAlloc_v2((u64 *)at, bytes), at);
}

int cudaFree(void *at)
{
	RUN(cudaFree, at ? cuMemFree_v2((u64)at) : SIM_OK, at);
}

static int copy(void *dst, const void *src, size_t bytes, int kind)
{
	if (kind == SIM_COPY_TO_DEVICE)
		return cuMemcpyHtoD_v2((u64)dst, src, bytes);
	if (kind == SIM_COPY_TO_HOST)
		return cuMemcpyDtoH_v2(dst, (u64)src, bytes);
	return cuMemcpy((u64)dst, (u64)src, bytes);
}

int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
	RUN(cudaMemcpy, copy(dst, src, bytes, kind), dst);
}

static int copy_async(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
	if (kind == SIM_COPY_TO_DEVICE)
		return cuMemcpyHtoDAsync_v2((u64)dst, src, bytes, stream);
	if (kind == SIM_COPY_TO_HOST)
		return cuMemcpyDtoHAsync_v2(dst, (u64)src, bytes, stream);
	return cuMemcpyAsync((u64)dst, (u64)src, bytes, stream);
}

int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
	RUN(cudaMemcpyAsync, copy_async(dst, src, bytes, kind, stream), dst);
}

int cudaMemsetAsync(void *dst, int value, size_t bytes, void *stream)
{
	RUN(cudaMemsetAsync, cuMemsetD8Async((u64)dst, (u8)value, bytes, stream), dst);
}

int cudaStreamCreate(void **stream)
{
	RUN(cudaStreamCreate, cuStreamCreate(stream, 0), stream);
}

int cudaStreamSynchronize(void *stream)
{
	RUN(cudaStreamSynchronize, cuStreamSynchronize(stream), stream);
}

int cudaStreamDestroy(void *stream)
{
	RUN(cudaStreamDestroy, cuStreamDestroy_v2(stream), stream);
}

int cudaEventCreate(void **event)
{
	RUN(cudaEventCreate, cuEventCreate(event, 0), event);
}

int cudaEventRecord(void *event, void *stream)
{
	RUN(cudaEventRecord, cuEventRecord(event, stream), event, stream);
}

int cudaEventSynchronize(void *event)
{
	RUN(cudaEventSynchronize, cuEventSynchronize(event), event);
}

int cudaEventDestroy(void *event)
{
	RUN(cudaEventDestroy, cuEventDestroy_v2(event), event);
}

int cudaDeviceSynchronize(void)
{
	RUN(cudaDeviceSynchronize, cuCtxSynchronize(), NULL);
}

int cudaProfilerStart(void)
{
	RUN(cudaProfilerStart, cuProfilerStart(), NULL);
}

int cudaProfilerStop(void)
{
	RUN(cudaProfilerStop, cuProfilerStop(), NULL);
}

int cudaLibraryLoadData(void **library, const void *code, void *jit_options, void **jit_values,
			unsigned n_jit, void *options, void **values, unsigned n_options)
{
	(void)jit_options, (void)jit_values, (void)n_jit;
	(void)options, (void)values, (void)n_options;
	RUN(cudaLibraryLoadData, cuModuleLoadData(library, code), library);
}

int cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
	RUN(cudaLibraryGetKernel, cuModuleGetFunction(kernel, library, name), kernel);
}

static int launch(const void *kernel, struct sim_dim3 grid, struct sim_dim3 block, void **args,
		  size_t shared_bytes, void *stream)
{
	return cuLaunchKernel((void *)(uintptr_t)kernel, grid.x, grid.y, grid.z, block.x, block.y,
			      block.z, (unsigned)shared_bytes, stream, args, NULL);
}

int cudaLaunchKernel(const void *kernel, struct sim_dim3 grid, struct sim_dim3 block, void **args,
		     size_t shared_bytes, void *stream)
{
	RUN(cudaLaunchKernel, launch(kernel, grid, block, args, shared_bytes, stream), kernel);
}

int __cudaLaunchKernel(const void *kernel, struct sim_dim3 grid, struct sim_dim3 block, void **args,
		       size_t shared_bytes, void *stream)
{
	RUN(__cudaLaunchKernel, launch(kernel, grid, block, args, shared_bytes, stream), kernel);
}

int cudaLaunchKernelExC(const struct sim_launch *l, const void *kernel, void **args)
{
	RUN(cudaLaunchKernelExC,
	    launch(kernel, l->grid, l->block, args, l->shared_bytes, l->stream), l);
}
