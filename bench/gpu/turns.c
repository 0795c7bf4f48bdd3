/*
 * turns - empty launches by the CUDA runtime (as frameworks do) or by the driver, in one process,
 * while somebody switches a recording on and off: what a launch costs in each state.
 *
 *	turns runtime|driver ROUNDS MODE...
 *
 * Modes: "off", "on", and for the floor (floor_agent.c) the words of its FLOOR_WITH. Who switches
 * is found out: lull (`lull profile -c lull --capture-range-end=repeat`), the floor, or nobody.
 * With lull, "floor" is the agent that FLOOR_AGENT names, while lull has left CUPTI: processes
 * differ by more than the two, so that one process has both.
 * Before the first switch comes "fresh". Each round goes through all modes, in blocks of launches,
 * each behind a fixed piece of work that tells whether the CPU is all ours just then: virtual CPUs
 * share cores, and are half as fast while a neighbour works. Prints MODE=NS a launch, a line each:
 * the median of the blocks at which it was, or (shared=1) of those at which it was not, whichever
 * were more; nothing if there are few of both. TURNS_CUDART names the runtime's library.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lull.h"

#define BLOCK	   100
#define N_BLOCKS   150 /* in a turn */
#define MIN_BLOCKS 20  /* to say anything about a mode */
#define MAX_ROUNDS 64
#define MAX_MODES  16

struct dim3 {
	unsigned x, y, z;
};

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuStreamCreate, new_stream, (void **, unsigned))                               \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

static struct {
	int (*load)(void **, const void *, void *, void **, unsigned, void *, void **, unsigned);
	int (*get_kernel)(void **, void *, const char *);
	int (*launch)(const void *, struct dim3, struct dim3, void **, size_t, void *);
} runtime;

static void *kernel, *stream;
static int (*floor_switch)(const char *words);

/* The floor in a process that lull records. */
static struct {
	int (*turn)(const char *words);
	int (*is_alone)(void);
} guest_floor;

static void give_up(const char *what)
{
	fprintf(stderr, "turns: %s\n", what);
	exit(77);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void use_driver(void)
{
	void *module;

	DO(load, &module, CUDA_GUEST_PTX);
	DO(get_function, &kernel, module, "nothing");
}

static void use_runtime(void)
{
	const char *path = getenv("TURNS_CUDART");
	void *library = dlopen(path ? path : "libcudart.so.13", RTLD_NOW | RTLD_GLOBAL), *module;

	if (!library)
		give_up("no libcudart.so.13; set TURNS_CUDART");
	*(void **)&runtime.load = dlsym(library, "cudaLibraryLoadData");
	*(void **)&runtime.get_kernel = dlsym(library, "cudaLibraryGetKernel");
	*(void **)&runtime.launch = dlsym(library, "cudaLaunchKernel");
	if (!runtime.load || !runtime.get_kernel || !runtime.launch ||
	    runtime.load(&module, CUDA_GUEST_PTX, NULL, NULL, 0, NULL, NULL, 0) != 0 ||
	    runtime.get_kernel(&kernel, module, "nothing") != 0)
		give_up("the runtime does not load kernels by itself; it is older than CUDA 12.8");
}

static void launch(void)
{
	static const struct dim3 one = { 1, 1, 1 };

	if (runtime.launch)
		runtime.launch(kernel, one, one, NULL, 0, stream);
	else
		DO(launch, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What a launch of a block took, and the fixed piece of work before it. */
struct block {
	double launch_ns, piece_ns;
};

/* Much code and many branches: a chain of multiplications would not notice a neighbour. */
static double piece(void)
{
	static char table[64][24];
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < 200; i++)
		snprintf(table[i % 64], sizeof(table[0]), "%d.%s", i, i % 3 ? "x" : "yz");
	return (double)(now_ns() - begin_ns);
}

static void turn(struct block *blocks)
{
	for (int i = 0; i < BLOCK * 5; i++)
		launch();
	for (int i = 0; i < N_BLOCKS; i++) {
		uint64_t begin_ns;

		DO(synchronize); /* a full queue would show the device's pace */
		blocks[i].piece_ns = piece();
		begin_ns = now_ns();
		for (int k = 0; k < BLOCK; k++)
			launch();
		blocks[i].launch_ns = (double)(now_ns() - begin_ns) / BLOCK;
	}
	DO(synchronize);
}

/* A driver has threads of its own, and the C library is slower where there are some. */
static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void find_switch(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;

	/* Of lull's agent, there is none. */
	if (library)
		*(void **)&floor_switch = dlsym(library, "floor_switch");
	if (floor_switch)
		return;
	path = getenv("FLOOR_AGENT");
	library = path ? dlopen(path, RTLD_NOW) : NULL;
	if (library) {
		*(void **)&guest_floor.turn = dlsym(library, "floor_switch");
		*(void **)&guest_floor.is_alone = dlsym(library, "floor_is_alone");
	}
}

/* lull's: reports are closed one after the other, so that a start may have to wait. */
static void switch_lull(int is_on)
{
	if (!is_on)
		lull_stop();
	for (int i = 0; is_on && i < 200; i++) {
		lull_start();
		if (lull_is_recording())
			break;
		usleep(10000);
	}
	if (lull_annotate() && lull_is_recording() != is_on)
		give_up("the recording does not begin or end");
}

static void switch_to_floor(void)
{
	switch_lull(0);
	for (int i = 0; i < 400 && !guest_floor.is_alone(); i++) {
		usleep(5000);
		lull_is_recording();
	}
	if (!guest_floor.is_alone())
		give_up("lull does not leave CUPTI");
	guest_floor.turn("");
}

static void switch_to(const char *mode)
{
	int is_on = strcmp(mode, "off") != 0;

	if (guest_floor.turn)
		guest_floor.turn("finalize");
	if (floor_switch)
		floor_switch(strcmp(mode, "on") == 0 ? "" : mode);
	else if (strcmp(mode, "floor") != 0)
		switch_lull(is_on);
	else if (guest_floor.turn)
		switch_to_floor();
	else
		give_up("the floor needs FLOOR_AGENT");
	/* A thread of the agent enables CUPTI; it is left where the program tells something. */
	for (int i = 0; i < (floor_switch ? 1 : 40); i++) {
		usleep(10000);
		lull_is_recording();
	}
}

/* All blocks of each mode; the first are "fresh". */
static struct block found[1 + MAX_MODES][MAX_ROUNDS * N_BLOCKS];

/* What the piece of work takes on a CPU of our own, or on one that is shared all the time. */
struct state {
	double min_ns, max_ns;
};

/* What it took at the fastest tenth of all blocks. */
static double quick_ns(int n_modes, int n_blocks)
{
	static double all[(1 + MAX_MODES) * MAX_ROUNDS * N_BLOCKS];
	size_t n = 0;

	for (int k = 0; k <= n_modes; k++)
		for (int i = 0; i < n_blocks; i++)
			all[n++] = found[k][i].piece_ns;
	qsort(all, n, sizeof(*all), by_value);
	return all[n / 10];
}

static int is_in(const struct block *b, struct state s)
{
	return b->piece_ns >= s.min_ns && b->piece_ns <= s.max_ns;
}

/* The launches of the blocks that began and ended in that state, sorted; how many. */
static size_t keep(const struct block *blocks, int n_blocks, struct state s, double *kept)
{
	size_t n = 0;

	for (int i = 0; i < n_blocks; i++)
		if (is_in(&blocks[i], s) && (i + 1 == n_blocks || is_in(&blocks[i + 1], s)))
			kept[n++] = blocks[i].launch_ns;
	qsort(kept, n, sizeof(*kept), by_value);
	return n;
}

/* The medians of all modes in one state; the number of blocks of the one that has fewest. */
static size_t medians_in(struct state s, int n_modes, int n_blocks, double *medians)
{
	static double kept[MAX_ROUNDS * N_BLOCKS];
	size_t fewest = SIZE_MAX;

	for (int k = 0; k <= n_modes; k++) {
		size_t n = keep(found[k], n_blocks, s, kept);

		medians[k] = n ? kept[n / 2] : 0;
		fewest = n < fewest ? n : fewest;
	}
	return fewest;
}

/* In the state that all modes have seen more of. */
static void print(char **names, int n_modes, int n_blocks)
{
	double quick = quick_ns(n_modes, n_blocks), own[1 + MAX_MODES], shared[1 + MAX_MODES];
	size_t n_own = medians_in((struct state){ 0, 1.25 * quick }, n_modes, n_blocks, own);
	size_t n_shared = medians_in((struct state){ 1.5 * quick, 1e9 }, n_modes, n_blocks, shared);
	const double *ns = n_own >= n_shared ? own : shared;

	if (n_own < MIN_BLOCKS && n_shared < MIN_BLOCKS)
		return;
	printf("shared=%d\n", ns == shared);
	for (int k = 0; k <= n_modes; k++)
		printf("%s=%.0f\n", k ? names[k - 1] : "fresh", ns[k]);
}

int main(int argc, char **argv)
{
	int n_modes = argc - 3, rounds = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t thread;
	void *context;

	if (n_modes < 1 || n_modes > MAX_MODES || rounds < 1 || rounds > MAX_ROUNDS) {
		fprintf(stderr, "turns: runtime|driver, 1 to 64 rounds, and 1 to 16 modes?\n");
		return 2;
	}
	if (cuda_guest_find() != 0 || cuda.init(0) != 0)
		return 77;
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(new_stream, &stream, 1);
	if (strcmp(argv[1], "runtime") == 0)
		use_runtime();
	else
		use_driver();
	find_switch();
	if (floor_switch)
		floor_switch("finalize");
	pthread_create(&thread, NULL, sleep_on, NULL);
	/* The first time is for warming up. */
	for (int i = -1; i < rounds; i++)
		turn(&found[0][(i < 0 ? 0 : i) * N_BLOCKS]);
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < n_modes; k++) {
			switch_to(argv[3 + k]);
			turn(&found[1 + k][i * N_BLOCKS]);
		}
	print(argv + 3, n_modes, rounds * N_BLOCKS);
	return 0;
}
