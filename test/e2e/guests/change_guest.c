/*
 * change_guest - a CUDA program that would notice if its calls were changed wrongly.
 *
 *	change_guest WAY STEPS	WAY: dlsym, address (cuGetProcAddress), old (its first version)
 *
 * Each step copies from memory that it overwrites at once, frees memory that a stream still reads,
 * and asks for more of the same size, for a stream that waits for nobody. Prints a sum of what came
 * back from the device, and fails if that is not what was sent.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lull.h"

#define BYTES	     (5u << 20) /* more than a piece of pinned memory */
#define N_MORE	     6		/* more copies than there are pieces for */
#define NON_BLOCKING 1u

#define CALLS(CALL)                                                                               \
	CALL(cuInit, "cuInit", (unsigned))                                                        \
	CALL(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))                \
	CALL(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                                        \
	CALL(cuCtxSynchronize, "cuCtxSynchronize", (void))                                        \
	CALL(cuMemAlloc_v2, "cuMemAlloc", (uint64_t *, size_t))                                   \
	CALL(cuMemFree_v2, "cuMemFree", (uint64_t))                                               \
	CALL(cuMemcpyHtoD_v2, "cuMemcpyHtoD", (uint64_t, const void *, size_t))                   \
	CALL(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", (uint64_t, const void *, size_t, void *)) \
	CALL(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", (uint64_t, uint64_t, size_t, void *))     \
	CALL(cuMemcpyDtoH_v2, "cuMemcpyDtoH", (void *, uint64_t, size_t))                         \
	CALL(cuMemsetD8Async, "cuMemsetD8Async", (uint64_t, unsigned char, size_t, void *))       \
	CALL(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                               \
	CALL(cuStreamSynchronize, "cuStreamSynchronize", (void *))                                \
	CALL(cuStreamDestroy_v2, "cuStreamDestroy", (void *))

static struct {
#define CALL(name, base, params) int(*name) params;
	CALLS(CALL)
#undef CALL
} cuda;

static void check(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "change_guest: %s: error %d\n", what, result);
	exit(1);
}

/* The version with which the CUDA runtime asks for a call: since then it is what it is. */
static int version_of(const char *base)
{
	if (strcmp(base, "cuDevicePrimaryCtxRetain") == 0)
		return 7000;
	if (strcmp(base, "cuCtxSetCurrent") == 0 || strcmp(base, "cuStreamDestroy") == 0)
		return 4000;
	return strncmp(base, "cuMem", 5) == 0 ? 3020 : 2000;
}

static void find(const char *way)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*address)(const char *, void **, int, uint64_t, int *);
	int (*old)(const char *, void **, int, uint64_t);

	check(!library, "no libcuda.so.1");
	*(void **)&address = dlsym(library, "cuGetProcAddress_v2");
	*(void **)&old = dlsym(library, "cuGetProcAddress");
#define CALL(name, base, params)                                                            \
	if (strcmp(way, "dlsym") == 0)                                                      \
		*(void **)&cuda.name = dlsym(library, #name);                               \
	else if (strcmp(way, "address") == 0)                                               \
		check(address(base, (void **)&cuda.name, version_of(base), 0, NULL), base); \
	else                                                                                \
		check(old(base, (void **)&cuda.name, version_of(base), 0), base);           \
	check(!cuda.name, #name);
	CALLS(CALL)
#undef CALL
}

/* One step; the sum of what came back. */
static unsigned long step(unsigned i, void *stream, void *other)
{
	static unsigned char sent[BYTES], received[BYTES];
	static uint64_t rest;
	uint64_t from, to, more;
	unsigned long sum = 0;

	check(cuda.cuMemAlloc_v2(&from, BYTES), "alloc");
	for (size_t k = 0; k < BYTES; k++)
		sent[k] = (unsigned char)(k * 31 + k / 4096 + i);
	if (i % 2)
		check(cuda.cuMemcpyHtoD_v2(from, sent, BYTES), "copy");
	else
		check(cuda.cuMemcpyHtoDAsync_v2(from, sent, BYTES, stream), "copy");
	memset(sent, 0xff, BYTES);
	check(cuda.cuMemAlloc_v2(&to, BYTES), "alloc");
	/* What was copied without a stream can be read by all of them. */
	check(cuda.cuMemcpyDtoDAsync_v2(to, from, BYTES, i % 4 == 1 ? other : stream), "copy");
	if (i % 4 == 1)
		check(cuda.cuStreamSynchronize(other), "wait");
	check(cuda.cuMemFree_v2(from), "free");
	check(cuda.cuMemAlloc_v2(&more, BYTES), "alloc");
	check(cuda.cuMemsetD8Async(more, 0xee, BYTES, other), "set");
	if (!rest)
		check(cuda.cuMemAlloc_v2(&rest, BYTES), "alloc");
	for (int k = 0; k < N_MORE; k++)
		check(cuda.cuMemcpyHtoDAsync_v2(rest, sent, BYTES, stream), "copy");
	check(cuda.cuStreamSynchronize(stream), "wait");
	check(cuda.cuMemcpyDtoH_v2(received, to, BYTES), "copy");
	for (size_t k = 0; k < BYTES; k++) {
		if (received[k] != (unsigned char)(k * 31 + k / 4096 + i)) {
			fprintf(stderr, "change_guest: step %u: wrong byte %zu\n", i, k);
			exit(1);
		}
		sum += received[k];
	}
	check(cuda.cuMemsetD8Async(more, 0xdd, BYTES, other), "set");
	check(cuda.cuMemFree_v2(more), "free");
	check(cuda.cuMemFree_v2(to), "free");
	return sum;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 10;
	void *context, *stream, *other;
	uint64_t empty;

	find(argc > 1 ? argv[1] : "dlsym");
	check(cuda.cuInit(0), "init");
	check(cuda.cuDevicePrimaryCtxRetain(&context, 0), "retain");
	check(cuda.cuCtxSetCurrent(context), "set");
	check(cuda.cuStreamCreate(&stream, 0), "stream");
	check(cuda.cuStreamCreate(&other, NON_BLOCKING), "stream");
	/* Errors stay those of the driver. */
	printf("errors %d %d\n", cuda.cuMemAlloc_v2(&empty, 0), cuda.cuMemFree_v2(12345));
	for (unsigned i = 0; i < n; i++) {
		lull_step(i);
		printf("step %u sum %lu\n", i, step(i, stream, other));
		fflush(stdout);
	}
	check(cuda.cuStreamDestroy_v2(other), "destroy");
	check(cuda.cuCtxSynchronize(), "wait");
	printf("%lu\n", step(n, stream, NULL));
	return 0;
}
