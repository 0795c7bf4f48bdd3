/*
 * unmarked_guest - a CUDA program that marks no steps, whose loop lull try has to find.
 *
 *	unmarked_guest WAY WHAT ROUNDS [RESULT]
 *
 * WAY is how it finds the calls: dlsym, address (cuGetProcAddress), thread (the same, for a default
 * stream of each thread). Each round of the loop launches
 * six kernels, waits for them, and does WHAT:
 *	alloc	allocates and frees memory of the device
 *	copy	copies from ordinary memory
 *	vary	as alloc, but no two rounds in a row make equally many calls of any kind
 *	idle	nothing at all, and no kernels: the driver is never asked
 * Three kernels come before the loop. At its end it prints RESULT (42), and a number that is
 * another one each time.
 */
#include <stdint.h>
#include <string.h>
#include <time.h>

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuStreamSynchronize, wait, (void *))                                           \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                    \
	CALL(cuMemFree_v2, free_memory, (uint64_t))                                         \
	CALL(cuMemcpyHtoD_v2, copy_in, (uint64_t, const void *, size_t))                    \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

#define N_BEFORE	  3
#define N_KERNELS	  6
#define N_BYTES		  (1u << 20)
#define VERSION		  12000
#define PER_THREAD_STREAM 2u

static void *kernel;
static uint64_t memory;
static char bytes[N_BYTES];

/* Ask the driver for them again, as the CUDA runtime does. */
static void find_addresses(uint64_t flags)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*address)(const char *, void **, int, uint64_t, int *);
	char base[64];

	*(void **)&address = dlsym(library, "cuGetProcAddress_v2");
#define CALL(symbol, name, params)                   \
	snprintf(base, sizeof(base), "%s", #symbol); \
	if (strstr(base, "_v2"))                     \
		*strstr(base, "_v2") = '\0';         \
	cuda_guest_check(address(base, (void **)&cuda.name, VERSION, flags, NULL), base);
	CUDA_CALLS(CALL)
#undef CALL
}

static void start(const char *way)
{
	void *context, *module;

	if (cuda_guest_find())
		exit(77);
	if (strcmp(way, "dlsym") != 0)
		find_addresses(strcmp(way, "thread") == 0 ? PER_THREAD_STREAM : 0);
	DO(init, 0);
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(load, &module, CUDA_GUEST_PTX);
	DO(get_function, &kernel, module, "nothing");
	DO(alloc, &memory, N_BYTES);
}

static void launch_kernels(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		DO(launch, kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static void allocate(void)
{
	uint64_t more;

	DO(alloc, &more, N_BYTES);
	DO(free_memory, more);
}

/* Numbers that do not repeat. */
static unsigned chance(unsigned n)
{
	static unsigned state = 1;

	state = state * 1103515245u + 12345u;
	return 1 + (state >> 16) % n;
}

static void vary(void)
{
	launch_kernels(chance(20));
	for (unsigned n = chance(5); n; n--)
		DO(copy_in, memory, bytes, 4096);
	for (unsigned n = chance(5); n; n--)
		DO(wait, NULL);
	allocate();
}

static void one_round(const char *what)
{
	if (strcmp(what, "vary") == 0) {
		vary();
		return;
	}
	if (strcmp(what, "copy") == 0)
		DO(copy_in, memory, bytes, N_BYTES);
	else
		allocate();
	launch_kernels(N_KERNELS);
	DO(synchronize);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "dlsym", *what = argc > 2 ? argv[2] : "alloc";
	int n = argc > 3 ? atoi(argv[3]) : 100;
	struct timespec now;

	if (strcmp(what, "idle") != 0) {
		start(way);
		launch_kernels(N_BEFORE);
		for (int i = 0; i < n; i++)
			one_round(what);
		DO(synchronize);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("result %s\ntime %ld\n", argc > 4 ? argv[4] : "42", now.tv_nsec);
	return 0;
}
