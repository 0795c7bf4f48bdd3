/*
 * cuda_objects - a program with one of each: a stream with a priority and a name, a module that is
 * loaded and unloaded, unified memory that moves, device memory that comes and goes.
 *
 * libcuda is found at run time; exit status 77 means that there is none. With OBJECTS_WAIT=1
 * unified memory is used only when it is watched, or that was refused.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/nvtx/nvtx_abi.h"
#include "support/guest.h"

#define MANAGED_BYTES 8192
#define DEVICE_BYTES  123456

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxGetCurrent, get_current, (void **))                                       \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleUnload, unload, (void *))                                              \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuStreamCreateWithPriority, new_stream, (void **, unsigned, int))              \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                    \
	CALL(cuMemFree_v2, release, (uint64_t))                                             \
	CALL(cuMemAllocManaged, alloc_managed, (uint64_t *, size_t, unsigned))              \
	CALL(cuMemPrefetchAsync, prefetch, (uint64_t, size_t, int, void *))                 \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry nothing()\n{\n	ret;\n}\n";

/* ---- NVTX's functions that name things ---- */

static void (*name_context)(void *context, const char *name);
static void (*name_stream)(void *stream, const wchar_t *name);
static void (*name_device)(int device, const char *name);

static int find_table(u32 module, lull_nvtx_fn ****table, u32 *n)
{
	static lull_nvtx_fn **slots[7];

	slots[1] = (lull_nvtx_fn **)&name_device;
	slots[3] = (lull_nvtx_fn **)&name_context;
	slots[6] = (lull_nvtx_fn **)&name_stream;
	*table = slots;
	*n = 7;
	return module == LULL_NVTX_MODULE_CUDA;
}

static const void *get_export(u32 export_id)
{
	static const struct lull_nvtx_callbacks callbacks = { sizeof(callbacks), find_table };

	return export_id == LULL_NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

static void name_things(void *context, void *stream)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*init)(lull_nvtx_get_export * get_export) = NULL;

	if (tool)
		*(void **)&init = dlsym(tool, "InitializeInjectionNvtx2");
	if (!init || !init(get_export))
		return;
	name_context(context, "trainer");
	name_stream(stream, L"copies ⇄");
	name_device(0, "the big one");
}

int main(void)
{
	void *context, *stream, *module, *function;
	uint64_t device, managed;

	if (cuda_guest_find() != 0)
		return 77;
	DO(init, 0);
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(get_current, &context);
	DO(new_stream, &stream, 1, -3);
	name_things(context, stream);
	DO(load, &module, ptx);
	DO(get_function, &function, module, "nothing");
	DO(alloc, &device, DEVICE_BYTES);
	/* Unified memory is watched from a moment after the context on. */
	if (getenv("OBJECTS_WAIT"))
		guest_wait_for(cuda_guest_ask("unified"));
	DO(alloc_managed, &managed, MANAGED_BYTES, 1);
	DO(prefetch, managed, MANAGED_BYTES, 0, stream);
	DO(launch, function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	DO(synchronize);
	DO(release, device);
	DO(release, managed);
	DO(unload, module);
	printf("ptx_bytes=%zu managed_bytes=%d device_bytes=%d\n", strlen(ptx), MANAGED_BYTES,
	       DEVICE_BYTES);
	return 0;
}
