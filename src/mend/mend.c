/*
 * How calls get here: the dynamic loader takes our functions for those of the driver where the
 * program is linked to it. Other programs ask dlsym(), which is ours too, and the runtime asks
 * cuGetProcAddress(), which it has from dlsym().
 *
 * dlsym(RTLD_NEXT) depends on who calls, which the loader takes from the return address. So ours
 * ends in a jump to the loader's, never in a call (a test has a library that would notice).
 */
#include "mend/mend.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEND_EXPORT __attribute__((visibility("default")))

/* cuGetProcAddress(): calls of the default stream mean the one of the thread. */
#define PER_THREAD_STREAM 2u

#define NON_BLOCKING 1u

/* What a call of calls.def means by the default stream. */
enum stream { LEGACY, PER_THREAD, ANY };

static const char *const names[] = {
	[LULL_MEND_POOL] = "alloc-pool", [LULL_MEND_STAGED] = "staged-copies",
	[LULL_MEND_SPIN] = "spin-waits", [LULL_MEND_BLOCKING] = "blocking-waits",
	[LULL_MEND_NEAR] = "near-cpus",
};

typedef void *dlsym_fn(void *, const char *);

static struct {
	_Atomic(dlsym_fn *) dlsym;
	pthread_once_t once, read_once;
	unsigned wanted; /* a bit for each change */
	struct lull_driver driver;
	bool has_driver;
	int (*get_address)(const char *, void **, int, u64, int *);
	int (*get_address_old)(const char *, void **, int, u64);
	atomic_uint said; /* the same */
	pthread_mutex_t lock;
	void *streams[LULL_MEND_STREAMS];
	size_t n_streams;
	bool has_too_many;
} state = { .once = PTHREAD_ONCE_INIT,
	    .read_once = PTHREAD_ONCE_INIT,
	    .lock = PTHREAD_MUTEX_INITIALIZER };

static dlsym_fn *real_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	dlsym_fn *found = atomic_load_explicit(&state.dlsym, memory_order_relaxed);

	for (size_t i = 0; !found && i < LULL_COUNT_OF(versions); i++)
		*(void **)&found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	atomic_store_explicit(&state.dlsym, found, memory_order_relaxed);
	return found;
}

/* ---- the driver ---- */

static void find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	dlsym_fn *find = real_dlsym();

	if (!library || !find)
		return;
	state.has_driver = true;
#define CALL(name, base, since, params, args) USED(name, params)
#define USED(name, params)                                   \
	*(void **)&state.driver.name = find(library, #name); \
	state.has_driver = state.has_driver && state.driver.name;
#define COUNTED(what, name, base, since, stream, params, args) \
	*(void **)&state.driver.name = find(library, #name);
#include "mend/calls.def"
#undef CALL
#undef USED
#undef COUNTED
	state.has_driver = state.has_driver && state.driver.cuEventSynchronize &&
			   state.driver.cuStreamSynchronize;
	*(void **)&state.get_address = find(library, "cuGetProcAddress_v2");
	*(void **)&state.get_address_old = find(library, "cuGetProcAddress");
}

const struct lull_driver *lull_mend_driver(void)
{
	pthread_once(&state.once, find_driver);
	return state.has_driver ? &state.driver : NULL;
}

const struct lull_driver *lull_mend_calls(void)
{
	pthread_once(&state.once, find_driver);
	return &state.driver;
}

/* ---- what is wanted, and what was done ---- */

static void read_wanted(void)
{
	const char *all = getenv("LULL_MEND");

	while (all && *all) {
		size_t len = strcspn(all, ",");

		for (unsigned i = 0; i < LULL_MEND_COUNT; i++)
			if (strlen(names[i]) == len && strncmp(all, names[i], len) == 0)
				state.wanted |= 1u << i;
		all += len + (all[len] == ',');
	}
}

bool lull_mend_wants(enum lull_mend mend)
{
	pthread_once(&state.read_once, read_wanted);
	return state.wanted & 1u << mend;
}

void lull_mend_did(enum lull_mend mend)
{
	const char *folder = getenv("LULL_TRY");
	char path[512], line[64];
	int saved = errno, fd, n;

	if (!folder || atomic_fetch_or(&state.said, 1u << mend) & 1u << mend)
		return;
	snprintf(path, sizeof(path), "%s/%d.log", folder, (int)getpid());
	n = snprintf(line, sizeof(line), "d %s\n", names[mend]);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0) {
		if (write(fd, line, (size_t)n) != n)
			atomic_fetch_and(&state.said, ~(1u << mend));
		close(fd);
	}
	errno = saved;
}

/* ---- streams ---- */

static void note_stream(const struct lull_driver *d, void *stream)
{
	bool is_full;

	pthread_mutex_lock(&state.lock);
	is_full = state.n_streams == LULL_MEND_STREAMS;
	if (!is_full)
		state.streams[state.n_streams++] = stream;
	state.has_too_many |= is_full;
	pthread_mutex_unlock(&state.lock);
	if (is_full)
		lull_pool_clear(d);
}

static void forget_stream(void *stream)
{
	pthread_mutex_lock(&state.lock);
	for (size_t i = 0; i < state.n_streams; i++)
		if (state.streams[i] == stream)
			state.streams[i] = state.streams[--state.n_streams];
	pthread_mutex_unlock(&state.lock);
}

void *const *lull_mend_streams(size_t *n)
{
	*n = state.n_streams;
	return state.has_too_many ? NULL : state.streams;
}

/* ---- calls of the program ---- */

#define CALL(name, base, since, params, args)		       MEND_EXPORT int name params;
#define COUNTED(what, name, base, since, stream, params, args) MEND_EXPORT int name params;
#define USED(name, params)
#include "mend/calls.def"
#undef CALL
#undef COUNTED
#undef USED

#define DRIVER_OR_FAIL                                    \
	const struct lull_driver *d = lull_mend_driver(); \
	if (!d)                                           \
	return LULL_CUDA_NO_DRIVER

MEND_EXPORT int cuInit(unsigned flags)
{
	DRIVER_OR_FAIL;
	int result = d->cuInit(flags);

	if (!result)
		lull_place(d);
	return result;
}

MEND_EXPORT int cuMemAlloc_v2(u64 *at, size_t bytes)
{
	DRIVER_OR_FAIL;
	return lull_mend_wants(LULL_MEND_POOL) ? lull_pool_alloc(d, at, bytes)
					       : d->cuMemAlloc_v2(at, bytes);
}

MEND_EXPORT int cuMemFree_v2(u64 at)
{
	DRIVER_OR_FAIL;
	return lull_mend_wants(LULL_MEND_POOL) ? lull_pool_free(d, at) : d->cuMemFree_v2(at);
}

MEND_EXPORT int cuMemcpyHtoD_v2(u64 to, const void *from, size_t bytes)
{
	DRIVER_OR_FAIL;
	lull_count(LULL_COUNTED_COPY);
	return lull_mend_wants(LULL_MEND_STAGED) ? lull_staged_copy(d, to, from, bytes, NULL, false)
						 : d->cuMemcpyHtoD_v2(to, from, bytes);
}

MEND_EXPORT int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, void *stream)
{
	DRIVER_OR_FAIL;
	lull_count(LULL_COUNTED_COPY);
	return lull_mend_wants(LULL_MEND_STAGED)
		       ? lull_staged_copy(d, to, from, bytes, stream, true)
		       : d->cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
}

MEND_EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
	DRIVER_OR_FAIL;
	int result = d->cuStreamCreate(stream, flags);

	if (!result && flags & NON_BLOCKING)
		note_stream(d, *stream);
	return result;
}

MEND_EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	DRIVER_OR_FAIL;
	int result = d->cuStreamCreateWithPriority(stream, flags, priority);

	if (!result && flags & NON_BLOCKING)
		note_stream(d, *stream);
	return result;
}

/* What runs in the stream may still use what is kept, and there is no more asking it. */
MEND_EXPORT int cuStreamDestroy_v2(void *stream)
{
	DRIVER_OR_FAIL;
	lull_pool_clear(d);
	forget_stream(stream);
	return d->cuStreamDestroy_v2(stream);
}

MEND_EXPORT int cuCtxDestroy_v2(void *context)
{
	DRIVER_OR_FAIL;
	lull_pool_clear(d);
	lull_staged_clear();
	return d->cuCtxDestroy_v2(context);
}

MEND_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	DRIVER_OR_FAIL;
	lull_pool_clear(d);
	lull_staged_clear();
	return d->cuDevicePrimaryCtxRelease_v2(device);
}

/* Those that are counted. */
#define COUNTED(what, name, base, since, stream, params, args)   \
	MEND_EXPORT int name params                              \
	{                                                        \
		const struct lull_driver *d = lull_mend_calls(); \
                                                                 \
		if (!d->name)                                    \
			return LULL_CUDA_NO_DRIVER;              \
		lull_count(LULL_COUNTED_##what);                 \
		return d->name args;                             \
	}
#define CALL(name, base, since, params, args)
#define USED(name, params)
#include "mend/calls.def"
#undef CALL
#undef COUNTED
#undef USED

/* ---- ways to find them ---- */

/* Our function in place of the driver's of this name; NULL if we have none. */
static void *by_symbol(const char *name)
{
#define CALL(symbol, base, since, params, args) \
	if (strcmp(name, #symbol) == 0)         \
		return (void *)symbol;
#define COUNTED(what, symbol, base, since, stream, params, args) \
	if (lull_count_is_on() && strcmp(name, #symbol) == 0)    \
		return (void *)symbol;
#define USED(symbol, params)
#include "mend/calls.def"
#undef CALL
#undef COUNTED
#undef USED
	return NULL;
}

/* Whether cuGetProcAddress() with these flags means a call whose default stream is this. */
static bool fits(enum stream stream, u64 flags)
{
	return stream == ANY || (stream == PER_THREAD) == !!(flags & PER_THREAD_STREAM);
}

/* The same for names without a version, of calls that are counted. */
static void *by_base_counted(const char *name, int version, u64 flags)
{
#define COUNTED(what, symbol, base, since, stream, params, args)                    \
	if (strcmp(name, base) == 0 && version >= (since) && fits(stream, flags) && \
	    state.driver.symbol)                                                    \
		return (void *)symbol;
#define CALL(symbol, base, since, params, args)
#define USED(symbol, params)
#include "mend/calls.def"
#undef CALL
#undef COUNTED
#undef USED
	return NULL;
}

/* The same for calls that may be changed. */
static void *by_base(const char *name, int version, u64 flags)
{
	bool is_copy = strncmp(name, "cuMemcpy", 8) == 0;

	if (!state.has_driver || (is_copy && flags & PER_THREAD_STREAM))
		return NULL;
#define CALL(symbol, base, since, params, args)            \
	if (strcmp(name, base) == 0 && version >= (since)) \
		return (void *)symbol;
#define COUNTED(what, symbol, base, since, stream, params, args)
#define USED(symbol, params)
#include "mend/calls.def"
#undef CALL
#undef COUNTED
#undef USED
	return NULL;
}

/* Our function in place of what cuGetProcAddress() gives; NULL if we have none. */
static void *by_address(const char *name, int version, u64 flags)
{
	void *ours = by_base(name, version, flags);

	return ours || !lull_count_is_on() ? ours : by_base_counted(name, version, flags);
}

static int get_address(const char *name, void **found, int version, u64 flags, int *status)
{
	int result;
	void *ours;

	lull_mend_driver();
	if (!state.get_address)
		return LULL_CUDA_NO_DRIVER;
	result = state.get_address(name, found, version, flags, status);
	ours = !result && *found ? by_address(name, version, flags) : NULL;
	if (!result && *found && strcmp(name, "cuGetProcAddress") == 0 && version >= 12000)
		ours = (void *)get_address;
	if (ours)
		*found = ours;
	return result;
}

static int get_address_old(const char *name, void **found, int version, u64 flags)
{
	int result;
	void *ours;

	lull_mend_driver();
	if (!state.get_address_old)
		return LULL_CUDA_NO_DRIVER;
	result = state.get_address_old(name, found, version, flags);
	ours = !result && *found ? by_address(name, version, flags) : NULL;
	if (ours)
		*found = ours;
	return result;
}

/* What dlsym() gives instead of what it would find; NULL: that. */
__attribute__((noinline)) static void *replace(void *handle, const char *name)
{
	void *ours;

	if (handle == RTLD_NEXT || !name || strncmp(name, "cu", 2) != 0)
		return NULL;
	ours = strcmp(name, "cuGetProcAddress_v2") == 0 ? (void *)get_address
	       : strcmp(name, "cuGetProcAddress") == 0	? (void *)get_address_old
							: by_symbol(name);
	if (!ours || !real_dlsym()(handle, name))
		return NULL;
	return lull_mend_driver() || lull_count_is_on() ? ours : NULL;
}

MEND_EXPORT void *dlsym(void *handle, const char *name)
{
	void *ours = replace(handle, name);
	dlsym_fn *real;

	if (ours)
		return ours;
	real = real_dlsym();
	return real(handle, name);
}
