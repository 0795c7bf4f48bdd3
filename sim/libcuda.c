/*
 * libcuda - a stand-in for the CUDA driver: start, devices, contexts, modules, memory, errors.
 * README.md says what it does and does not do; cuda_int.h, how it is made.
 */
#include "cuda_int.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DRIVER_VERSION 13000

/* Of cuPointerGetAttribute(). */
#define MEMORY_TYPE 2
#define TYPE_HOST   1
#define TYPE_DEVICE 2

static struct {
	pthread_mutex_t start_lock; /* recursive: what is injected may call cuInit() */
	pthread_once_t once;
	bool is_started;
	struct sim_context *contexts;
	struct sim_context *primary;
	u32 n_contexts;
	_Atomic u32 n_modules;
} sim = { .once = PTHREAD_ONCE_INIT };

/* Kernel names stay valid for ever, since records that nobody fetched yet point to them. */
struct module {
	struct sim_function *functions;
	u32 id;
};

static _Thread_local struct sim_context *current;

static void make_start_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&sim.start_lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* As the driver does: load what the variable names and call its one function. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *library;

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

int cuInit(unsigned flags)
{
	struct sim_call call = SIM_ENTER(cuInit);

	pthread_once(&sim.once, make_start_lock);
	pthread_mutex_lock(&sim.start_lock);
	if (!sim.is_started) {
		sim.is_started = true;
		inject();
	}
	pthread_mutex_unlock(&sim.start_lock);
	return lull_sim_leave(&call, flags ? SIM_E_VALUE : SIM_OK);
}

int cuDriverGetVersion(int *version)
{
	struct sim_call call = SIM_ENTER(cuDriverGetVersion);

	*version = DRIVER_VERSION;
	return lull_sim_leave(&call, SIM_OK);
}

/* ---- devices: there is one ---- */

/* Any call but cuInit() needs it before. */
static int check_device(int device)
{
	if (!sim.is_started)
		return SIM_E_UNINITIALIZED;
	return device == 0 ? SIM_OK : SIM_E_DEVICE;
}

int cuDeviceGetCount(int *count)
{
	struct sim_call call = SIM_ENTER(cuDeviceGetCount);

	*count = 1;
	return lull_sim_leave(&call, check_device(0));
}

int cuDeviceGet(int *device, int ordinal)
{
	struct sim_call call = SIM_ENTER(cuDeviceGet);

	*device = ordinal;
	return lull_sim_leave(&call, check_device(ordinal));
}

int cuDeviceGetName(char *name, int room, int device)
{
	struct sim_call call = SIM_ENTER(cuDeviceGetName);

	if (room > 0)
		snprintf(name, (size_t)room, "%s", SIM_DEVICE_NAME);
	return lull_sim_leave(&call, check_device(device));
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	struct sim_call call = SIM_ENTER(cuDeviceTotalMem_v2);

	*bytes = SIM_DEVICE_MEMORY;
	return lull_sim_leave(&call, check_device(device));
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
	struct sim_call call = SIM_ENTER(cuDeviceGetUuid_v2);

	memcpy(uuid, SIM_DEVICE_UUID, 16);
	return lull_sim_leave(&call, check_device(device));
}

/* Attributes by the driver's numbers; those that are not here are 0. */
static const struct {
	int attribute;
	int value;
} attributes[] = {
	{ 1, 1024 }, /* threads of a block */
	{ 2, 1024 }, /* the same in x, y, z */
	{ 3, 1024 },
	{ 4, 64 },
	{ 5, 2147483647 }, /* blocks of a grid in x, y, z */
	{ 6, 65535 },
	{ 7, 65535 },
	{ 8, 49152 },  /* shared memory of a block */
	{ 10, 32 },    /* threads of a warp */
	{ 12, 65536 }, /* registers of a block */
	{ 13, SIM_DEVICE_CLOCK_KHZ },
	{ 16, SIM_DEVICE_SMS },
	{ 31, 1 },	 /* kernels run side by side */
	{ 36, 1000000 }, /* memory clock, kHz */
	{ 37, 128 },	 /* memory bus, bits */
	{ 38, SIM_DEVICE_L2_BYTES },
	{ 39, 2048 }, /* threads of a multiprocessor */
	{ 40, 2 },    /* copy engines */
	{ 41, 1 },    /* unified addresses */
	{ 75, SIM_DEVICE_MAJOR },
	{ 76, SIM_DEVICE_MINOR },
};

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	struct sim_call call = SIM_ENTER(cuDeviceGetAttribute);

	*value = 0;
	for (size_t i = 0; i < LULL_COUNT_OF(attributes); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	return lull_sim_leave(&call, check_device(device));
}

/* ---- contexts ---- */

struct sim_context *lull_sim_context(void)
{
	return current;
}

static struct sim_context *new_context(void)
{
	const struct sim_hooks *hooks = lull_sim_hooks();
	struct sim_context *context = calloc(1, sizeof(*context));
	struct sim_object object;

	if (!context)
		return NULL;
	lull_sim_lock();
	context->id = ++sim.n_contexts;
	lull_sim_stream_init(&context->null_stream, context);
	context->next = sim.contexts;
	sim.contexts = context;
	lull_sim_unlock();
	object = lull_sim_object(&context->null_stream);
	if (hooks) {
		hooks->object(&(struct sim_object){ .context_id = context->id,
						    .null_stream_id = object.stream_id,
						    .handle = context });
		hooks->object(&object);
	}
	return context;
}

static int create_context(void **context, int device)
{
	int result = check_device(device);

	if (result)
		return result;
	current = new_context();
	*context = current;
	return current ? SIM_OK : SIM_E_MEMORY;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	struct sim_call call = SIM_ENTER(cuCtxCreate_v2);

	(void)flags;
	return lull_sim_leave(&call, create_context(context, device));
}

int cuCtxCreate_v4(void **context, void *params, unsigned flags, int device)
{
	struct sim_call call = SIM_ENTER(cuCtxCreate_v4);

	(void)params;
	(void)flags;
	return lull_sim_leave(&call, create_context(context, device));
}

/* The context itself stays: another thread may still have it as its own. */
int cuCtxDestroy_v2(void *context)
{
	struct sim_call call = SIM_ENTER(cuCtxDestroy_v2);
	u64 end_ns, ticket;

	if (!context)
		return lull_sim_leave(&call, SIM_E_CONTEXT);
	lull_sim_context_end(context, &end_ns, &ticket);
	lull_sim_sleep(end_ns, ticket);
	if (current == context)
		current = NULL;
	return lull_sim_leave(&call, SIM_OK);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	struct sim_call call = SIM_ENTER(cuDevicePrimaryCtxRetain);
	int result = check_device(device);

	if (result)
		return lull_sim_leave(&call, result);
	pthread_mutex_lock(&sim.start_lock);
	if (!sim.primary)
		sim.primary = new_context();
	pthread_mutex_unlock(&sim.start_lock);
	*context = sim.primary;
	return lull_sim_leave(&call, sim.primary ? SIM_OK : SIM_E_MEMORY);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	struct sim_call call = SIM_ENTER(cuDevicePrimaryCtxRelease_v2);

	return lull_sim_leave(&call, check_device(device));
}

int cuCtxSetCurrent(void *context)
{
	struct sim_call call = SIM_ENTER(cuCtxSetCurrent);

	current = context;
	return lull_sim_leave(&call, SIM_OK);
}

int cuCtxGetCurrent(void **context)
{
	struct sim_call call = SIM_ENTER(cuCtxGetCurrent);

	*context = current;
	return lull_sim_leave(&call, SIM_OK);
}

int cuCtxGetDevice(int *device)
{
	struct sim_call call = SIM_ENTER(cuCtxGetDevice);

	*device = 0;
	return lull_sim_leave(&call, current ? SIM_OK : SIM_E_CONTEXT);
}

SIM_EXPORT void lull_sim_replay(void (*object)(const struct sim_object *object))
{
	lull_sim_lock();
	for (struct sim_context *c = sim.contexts; c; c = c->next) {
		struct sim_object stream = lull_sim_object(&c->null_stream);

		object(&(struct sim_object){
			.context_id = c->id, .null_stream_id = stream.stream_id, .handle = c });
		object(&stream);
		for (struct sim_stream *s = c->streams; s; s = s->next) {
			stream = lull_sim_object(s);
			object(&stream);
		}
	}
	lull_sim_unlock();
}

/* ---- modules ---- */

int cuModuleLoadData(void **module, const void *image)
{
	struct sim_call call = SIM_ENTER(cuModuleLoadData);
	struct sim_event event = { .kind = SIM_COMPILED,
				   .correlation = call.correlation,
				   .start_ns = sim_now_ns() };
	struct module *m;

	if (!current)
		return lull_sim_leave(&call, SIM_E_CONTEXT);
	m = calloc(1, sizeof(*m));
	if (!m)
		return lull_sim_leave(&call, SIM_E_MEMORY);
	m->functions = lull_sim_ptx_parse(image);
	if (!m->functions) {
		free(m);
		return lull_sim_leave(&call, SIM_E_PTX);
	}
	*module = m;
	event.size_bytes = strlen(image);
	event.module_id = m->id = atomic_fetch_add(&sim.n_modules, 1) + 1;
	lull_sim_tell_event(&event);
	event.kind = SIM_LOADED;
	lull_sim_tell_event(&event);
	return lull_sim_leave(&call, SIM_OK);
}

int cuModuleUnload(void *module)
{
	struct sim_call call = SIM_ENTER(cuModuleUnload);
	struct sim_event event = { .kind = SIM_UNLOADED };

	if (module) {
		event.module_id = ((struct module *)module)->id;
		lull_sim_tell_event(&event);
	}
	return lull_sim_leave(&call, module ? SIM_OK : SIM_E_HANDLE);
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	struct sim_call call = SIM_ENTER(cuModuleGetFunction);

	if (!module)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	for (struct sim_function *f = ((struct module *)module)->functions; f; f = f->next) {
		if (strcmp(f->name, name) == 0) {
			*function = f;
			return lull_sim_leave(&call, SIM_OK);
		}
	}
	return lull_sim_leave(&call, SIM_E_NOT_FOUND);
}

/*
 * Every kernel takes 32 registers and nothing else. LULL_SIM_KERNEL_HANDLES=1: handles are those of
 * kernels of a library, and no functions; 2: nor does the context have functions for them.
 */
enum { N_REGISTERS = 4 };

int cuFuncGetAttribute(int *value, int attribute, void *function)
{
	struct sim_call call = SIM_ENTER(cuFuncGetAttribute);
	bool is_kernel = sim_knob("LULL_SIM_KERNEL_HANDLES", 0) > 0 && !((uintptr_t)function & 1);

	if (!function || is_kernel)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	*value = attribute == N_REGISTERS ? 32 : 0;
	return lull_sim_leave(&call, SIM_OK);
}

int cuKernelGetFunction(void **function, void *kernel)
{
	struct sim_call call = SIM_ENTER(cuKernelGetFunction);

	if (!kernel || sim_knob("LULL_SIM_KERNEL_HANDLES", 0) != 1)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	*function = (u8 *)kernel + 1;
	return lull_sim_leave(&call, SIM_OK);
}

int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
	struct sim_call call = SIM_ENTER(cuKernelGetAttribute);

	if (!kernel || device != 0)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	*value = attribute == N_REGISTERS ? 32 : 0;
	return lull_sim_leave(&call, SIM_OK);
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes)
{
	struct sim_call call = SIM_ENTER(cuMemGetInfo_v2);

	*all_bytes = SIM_DEVICE_MEMORY;
	*free_bytes = SIM_DEVICE_MEMORY - lull_sim_memory_used();
	return lull_sim_leave(&call, current ? SIM_OK : SIM_E_CONTEXT);
}

static int allocate(void **at, size_t bytes, enum sim_memory kind, u32 correlation)
{
	if (!current)
		return SIM_E_CONTEXT;
	if (!bytes)
		return SIM_E_VALUE;
	*at = lull_sim_memory_new(bytes, kind);
	if (!*at)
		return SIM_E_MEMORY;
	lull_sim_tell_event(&(struct sim_event){ .kind = SIM_ALLOCATED,
						 .memory = kind,
						 .correlation = correlation,
						 .address = (u64)(uintptr_t)*at,
						 .size_bytes = bytes });
	return SIM_OK;
}

int cuMemAlloc_v2(u64 *at, size_t bytes)
{
	struct sim_call call = SIM_ENTER(cuMemAlloc_v2);
	void *memory = NULL;
	int result = allocate(&memory, bytes, SIM_DEVICE, call.correlation);

	*at = (u64)(uintptr_t)memory;
	return lull_sim_leave(&call, result);
}

int cuMemAllocHost_v2(void **at, size_t bytes)
{
	struct sim_call call = SIM_ENTER(cuMemAllocHost_v2);

	return lull_sim_leave(&call, allocate(at, bytes, SIM_PINNED, call.correlation));
}

int cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	struct sim_call call = SIM_ENTER(cuMemHostAlloc);

	(void)flags;
	return lull_sim_leave(&call, allocate(at, bytes, SIM_PINNED, call.correlation));
}

/* Memory of both sides: lies with the host until it is prefetched. */
int cuMemAllocManaged(u64 *at, size_t bytes, unsigned flags)
{
	struct sim_call call = SIM_ENTER(cuMemAllocManaged);
	void *memory = NULL;
	int result = allocate(&memory, bytes, SIM_MANAGED, call.correlation);

	(void)flags;
	*at = (u64)(uintptr_t)memory;
	if (!result)
		lull_sim_tell_event(&(struct sim_event){ .kind = SIM_FAULTED, .address = *at });
	return lull_sim_leave(&call, result);
}

/* Told, and not modelled: the data are where they are. */
int cuMemPrefetchAsync(u64 at, size_t bytes, int device, void *stream)
{
	struct sim_call call = SIM_ENTER(cuMemPrefetchAsync);
	struct sim_event event = {
		.kind = SIM_MIGRATED, .address = at, .size_bytes = bytes, .start_ns = sim_now_ns()
	};

	if (lull_sim_memory_kind((void *)(uintptr_t)at) != SIM_MANAGED || !lull_sim_stream(stream))
		return lull_sim_leave(&call, SIM_E_VALUE);
	if (device >= 0)
		lull_sim_tell_event(&event);
	return lull_sim_leave(&call, SIM_OK);
}

int cuProfilerStart(void)
{
	struct sim_call call = SIM_ENTER(cuProfilerStart);

	return lull_sim_leave(&call, SIM_OK);
}

int cuProfilerStop(void)
{
	struct sim_call call = SIM_ENTER(cuProfilerStop);

	return lull_sim_leave(&call, SIM_OK);
}

/* Memory is given back when all that may use it is done, as the driver does it. */
static int give_back(void *at, enum sim_memory kind)
{
	u64 end_ns, ticket;

	if (!current)
		return SIM_E_CONTEXT;
	lull_sim_context_end(current, &end_ns, &ticket);
	lull_sim_sleep(end_ns, ticket);
	lull_sim_tell_event(&(struct sim_event){ .kind = SIM_RELEASED,
						 .memory = kind,
						 .address = (u64)(uintptr_t)at,
						 .size_bytes = lull_sim_memory_bytes(at) });
	return lull_sim_memory_free(at, kind) ? SIM_OK : SIM_E_VALUE;
}

int cuMemFree_v2(u64 at)
{
	struct sim_call call = SIM_ENTER(cuMemFree_v2);

	void *memory = (void *)(uintptr_t)at;

	return lull_sim_leave(&call, give_back(memory, lull_sim_memory_kind(memory) == SIM_MANAGED
							       ? SIM_MANAGED
							       : SIM_DEVICE));
}

int cuMemFreeHost(void *at)
{
	struct sim_call call = SIM_ENTER(cuMemFreeHost);

	return lull_sim_leave(&call, give_back(at, SIM_PINNED));
}

/* Not in calls.def: CUPTI's number of it does not matter here. */
SIM_EXPORT int cuPointerGetAttribute(void *value, int attribute, u64 at);
SIM_EXPORT int cuPointerGetAttribute(void *value, int attribute, u64 at)
{
	enum sim_memory kind = lull_sim_memory_kind((const void *)(uintptr_t)at);

	if (attribute != MEMORY_TYPE || kind == SIM_PAGEABLE)
		return SIM_E_VALUE;
	*(unsigned *)value = kind == SIM_PINNED ? TYPE_HOST : TYPE_DEVICE;
	return SIM_OK;
}
