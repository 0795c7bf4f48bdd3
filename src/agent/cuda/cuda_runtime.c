/*
 * cuda_runtime - launches through libcudart, timed by wrappers in the callers' offset tables.
 *
 * A launch of a framework goes through the runtime into the driver, and CUPTI calls back four times
 * for it. That is the larger part of the cost of a recording beyond CUPTI's own records (H200, CUDA
 * 13.0: 240 ns for the runtime's two, 110 ns for the driver's two). So where a file calls the
 * runtime through its offset table (slots.h), the table gets the address of a wrapper that times
 * the call. The driver's callback inside it gives the correlation id, and the runtime's callbacks
 * stay disabled.
 *
 * Only cudaLaunchKernel() is worth it. Programs do not compare its address, so every table entry
 * with it is replaced. Launches made in another way (a runtime that is linked statically, an
 * address that was looked up) are recorded as the driver call they make. A process in which no
 * table has cudaLaunchKernel() keeps the runtime's callbacks, and so does a recording with call
 * stacks, which are taken there.
 */
#include <errno.h>
#include <string.h>

#include "agent/cuda/cuda.h"
#include "agent/core/loaded.h"
#include "agent/calls/slots.h"

struct dim3 {
	u32 x, y, z;
};

typedef int launch_fn(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		      size_t shared_bytes, void *stream);

/* A process may have two: its framework's, and that of an extension built for another version. */
#define N_RUNTIMES 2u

/*
 * What a runtime exports. Programs built with CUDA 13 launch through the second, which is the first
 * under another name.
 */
enum { LAUNCH, LAUNCH_BUILT, N_CALLS };
static const char *const names[N_CALLS] = { "cudaLaunchKernel", "__cudaLaunchKernel" };

static struct {
	u64 real[N_RUNTIMES][N_CALLS]; /* 0 where there is none; under the loader's lock */
	bool is_only[N_CALLS];	       /* the first is the only file that exports it; likewise */
	u64 n_adds;		       /* files that had been loaded at the last look; likewise */
	struct lull_text text;	       /* how the calls are called in reports */
	_Atomic u32 is_on;	       /* callbacks are on */
	_Atomic u32 n_places;	       /* entries that are ours */
	struct lull_slots_known known; /* under the loader's lock */
} runtime;

static inline __attribute__((always_inline)) int launch(u64 at, const void *kernel,
							struct dim3 grid, struct dim3 block,
							void **args, size_t shared_bytes,
							void *stream)
{
	launch_fn *real = (launch_fn *)at;
	struct lull_thread *t;
	int result;

	if (!atomic_load_explicit(&runtime.is_on, memory_order_relaxed))
		return real(kernel, grid, block, args, shared_bytes, stream);
	/* Where lull attach came from, there may be no better place: no call has begun. */
	if (__builtin_expect(lull_agent.is_late, 0))
		lull_cuda_detach_here();
	t = lull_cuda_launch_begins();
	result = real(kernel, grid, block, args, shared_bytes, stream);
	lull_cuda_launch_ends(t, &runtime.text, result);
	return result;
}

/* One for each of them; the names are seen in stacks. */
#define WRAPPER(name, ix, call)                                                                \
	static int name(const void *kernel, struct dim3 grid, struct dim3 block, void **args,  \
			size_t shared_bytes, void *stream)                                     \
	{                                                                                      \
		return launch(runtime.real[ix][call], kernel, grid, block, args, shared_bytes, \
			      stream);                                                         \
	}
WRAPPER(lull_cudaLaunchKernel, 0, LAUNCH)
WRAPPER(lull___cudaLaunchKernel, 0, LAUNCH_BUILT)
WRAPPER(lull_cudaLaunchKernel_of_second, 1, LAUNCH)
WRAPPER(lull___cudaLaunchKernel_of_second, 1, LAUNCH_BUILT)

/*
 * What is there, or what the loader will put there at the first call (lazy binding), if there is
 * only one such function; if not, that is known later. Left to the loader, these calls would go by
 * without us.
 */
static u64 target_of(const struct dl_phdr_info *file, const char *name, u64 present)
{
	for (u32 call = 0; call < N_CALLS; call++)
		if (strcmp(name, names[call]) == 0 && lull_loaded_contains(file, present))
			return runtime.is_only[call] ? runtime.real[0][call] : LULL_SLOT_LATER;
	return present;
}

static const struct {
	launch_fn *calls[N_CALLS];
} wrappers[N_RUNTIMES] = {
	{ { lull_cudaLaunchKernel, lull___cudaLaunchKernel } },
	{ { lull_cudaLaunchKernel_of_second, lull___cudaLaunchKernel_of_second } },
};

/* The wrapper of what is there; 0 if it is not a call of ours. */
static u64 wrapper_of(const struct dl_phdr_info *file, const char *name, u64 present)
{
	present = target_of(file, name, present);
	for (u32 i = 0; i < N_RUNTIMES; i++)
		for (u32 call = 0; call < N_CALLS; call++) {
			u64 wrapper = (u64)wrappers[i].calls[call];

			if (present && (present == runtime.real[i][call] || present == wrapper))
				return wrapper;
		}
	return present == LULL_SLOT_LATER ? LULL_SLOT_LATER : 0;
}

static bool is_cudart(const char *path)
{
	return strncmp(lull_loaded_file_name(path), "libcudart.so", 12) == 0;
}

/* What runtimes export that are loaded now; more than we stand in for. */
struct exports {
	u64 calls[8][N_CALLS];
	u32 n;
	u32 n_files[N_CALLS]; /* runtimes or not */
};

static void add_runtime(struct exports *e, const struct dl_phdr_info *file)
{
	if (e->n == LULL_COUNT_OF(e->calls) || !lull_loaded_symbol(file, names[LAUNCH]))
		return;
	for (u32 i = 0; i < N_CALLS; i++) {
		const ElfW(Sym) *symbol = lull_loaded_symbol(file, names[i]);

		e->calls[e->n][i] = symbol ? file->dlpi_addr + symbol->st_value : 0;
	}
	e->n++;
}

static bool has_runtime(u64 calls[][N_CALLS], u32 n, u64 launch)
{
	for (u32 i = 0; i < n; i++)
		if (calls[i][LAUNCH] == launch)
			return true;
	return false;
}

/*
 * Those that are gone make room: something else may be at their address. Those that stay keep their
 * place, since tables hold its wrappers. True if anything changed.
 */
static bool keep_runtimes(struct exports *e)
{
	u64 real[N_RUNTIMES][N_CALLS];
	bool is_only[N_CALLS];

	memcpy(real, runtime.real, sizeof(real));
	memcpy(is_only, runtime.is_only, sizeof(is_only));
	for (u32 i = 0; i < N_RUNTIMES; i++)
		if (e->n < LULL_COUNT_OF(e->calls) &&
		    !has_runtime(e->calls, e->n, runtime.real[i][LAUNCH]))
			memset(runtime.real[i], 0, sizeof(runtime.real[i]));
	for (u32 i = 0; i < e->n; i++)
		for (u32 k = 0;
		     k < N_RUNTIMES && !has_runtime(runtime.real, N_RUNTIMES, e->calls[i][LAUNCH]);
		     k++)
			if (!runtime.real[k][LAUNCH])
				memcpy(runtime.real[k], e->calls[i], sizeof(e->calls[i]));
	for (u32 i = 0; i < N_CALLS; i++)
		runtime.is_only[i] = e->n_files[i] == 1 && runtime.real[0][i];
	return memcmp(real, runtime.real, sizeof(real)) != 0 ||
	       memcmp(is_only, runtime.is_only, sizeof(is_only)) != 0;
}

static bool needs_cudart(const struct dl_phdr_info *file)
{
	const char *strings = lull_loaded_pointer(file, DT_STRTAB);
	const ElfW(Dyn) *d = lull_loaded_dynamic(file, DT_NEEDED);

	for (; strings && d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && is_cudart(strings + d->d_un.d_val))
			return true;
	return false;
}

static int find_runtimes(struct dl_phdr_info *file, size_t size, void *arg)
{
	struct exports *e = arg;

	(void)size;
	for (u32 i = 0; i < N_CALLS; i++)
		e->n_files[i] += lull_loaded_symbol(file, names[i]) != NULL;
	if (is_cudart(file->dlpi_name))
		add_runtime(e, file);
	return 0;
}

static int wrap_callers(struct dl_phdr_info *file, size_t size, void *arg)
{
	u32 *n_places = arg;

	(void)size;
	if (needs_cudart(file) &&
	    lull_slots_replace_all(file, wrapper_of, &runtime.known, n_places) == LULL_SLOTS_EARLY)
		runtime.n_adds = 0; /* look again */
	return 0;
}

/* First file of the walk: the loader's lock is held until we return. */
static int look(struct dl_phdr_info *first, size_t size, void *arg)
{
	const bool *is_again = arg;
	struct exports exports = { 0 };
	u32 n_places = 0;

	if (size < sizeof(*first) || (first->dlpi_adds == runtime.n_adds && !*is_again))
		return 1;
	runtime.n_adds = first->dlpi_adds;
	dl_iterate_phdr(find_runtimes, &exports);
	if (keep_runtimes(&exports) || *is_again)
		lull_slots_forget(&runtime.known);
	runtime.text = lull_text(names[LAUNCH], strlen(names[LAUNCH]));
	if (exports.n)
		dl_iterate_phdr(wrap_callers, &n_places);
	atomic_store(&runtime.n_places, n_places);
	return 1;
}

void lull_cuda_wrap(bool is_again)
{
	int saved = errno;

	if (lull_agent.has_session && lull_cuda_is_mine() && lull_cuda_is_plain() &&
	    !lull_cuda_is_detached())
		lull_loaded_walk(look, &is_again);
	errno = saved;
}

static u64 real_of(const struct dl_phdr_info *file, const char *name, u64 present)
{
	u64 wrapper = wrapper_of(file, name, present);

	if (!wrapper || present != wrapper)
		return 0;
	for (u32 call = 0; call < N_CALLS; call++)
		for (u32 i = 0; i < N_RUNTIMES; i++)
			if (strcmp(name, names[call]) == 0 &&
			    wrapper == (u64)wrappers[i].calls[call])
				return runtime.real[i][call];
	return 0;
}

static int unwrap_callers(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (needs_cudart(file))
		lull_slots_replace_all(file, real_of, NULL, NULL);
	return 0;
}

void lull_cuda_unwrap(void)
{
	lull_loaded_walk(unwrap_callers, NULL);
	atomic_store(&runtime.n_places, 0);
	runtime.n_adds = 0;
	lull_slots_forget(&runtime.known);
}

/* cudaLaunchKernel_v7000; not that for the thread's own stream, cudaLaunchKernel_ptsz_v7000. */
bool lull_cuda_is_wrapped_call(const char *name)
{
	return atomic_load(&runtime.n_places) && strncmp(name, "cudaLaunchKernel_v", 18) == 0;
}

void lull_cuda_wrap_on(bool is_on)
{
	atomic_store(&runtime.is_on, is_on);
}
