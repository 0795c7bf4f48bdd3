/*
 * nvtx cuda: names that the program gives to devices, contexts and streams.
 */
#include "agent/cuda/cuda.h"
#include "agent/nvtx/nvtx_int.h"

static void name_a(u32 what, u64 handle, const char *name)
{
	if (name)
		lull_cuda_named(what, handle, name, strlen(name));
}

static void name_w(u32 what, u64 handle, const wchar_t *name)
{
	char text[LULL_NVTX_TEXT_BYTES];

	lull_cuda_named(what, handle, text, lull_nvtx_narrow(name, text, sizeof(text)));
}

static void name_cu_device_a(int device, const char *name)
{
	name_a(LULL_NAMED_DEVICE, (u64)device, name);
}

static void name_cu_device_w(int device, const wchar_t *name)
{
	name_w(LULL_NAMED_DEVICE, (u64)device, name);
}

static void name_cu_context_a(void *context, const char *name)
{
	name_a(LULL_NAMED_CONTEXT, (u64)context, name);
}

static void name_cu_context_w(void *context, const wchar_t *name)
{
	name_w(LULL_NAMED_CONTEXT, (u64)context, name);
}

static void name_cu_stream_a(void *stream, const char *name)
{
	name_a(LULL_NAMED_STREAM, (u64)stream, name);
}

static void name_cu_stream_w(void *stream, const wchar_t *name)
{
	name_w(LULL_NAMED_STREAM, (u64)stream, name);
}

#define AS_SLOT(slot, ours, theirs, ret, args) [slot] = (lull_nvtx_fn *)ours,
static lull_nvtx_fn *const of_driver[] = { LULL_NVTX_CUDA(AS_SLOT) };
static lull_nvtx_fn *const of_runtime[] = { LULL_NVTX_CUDART(AS_SLOT) };
#undef AS_SLOT

void lull_nvtx_fill_cuda(const struct lull_nvtx_callbacks *callbacks)
{
	lull_nvtx_fill_table(callbacks, LULL_NVTX_MODULE_CUDA, of_driver, LULL_COUNT_OF(of_driver));
	lull_nvtx_fill_table(callbacks, LULL_NVTX_MODULE_CUDART, of_runtime,
			     LULL_COUNT_OF(of_runtime));
}
