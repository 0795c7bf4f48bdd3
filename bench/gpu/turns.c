/*
 * turns - empty launches, for somebody who asks what one takes just now, in one mode after another
 * (launches.py).
 *
 *	turns table|runtime|driver BLOCKS
 *
 * By the CUDA runtime through an offset table, as frameworks do (TURNS_TABLE names turns_table.c),
 * by the runtime at an address that was looked up, or by the driver.
 * Says "ready", and answers each line "MODE CPU" of the standard input with one line: NS/PIECE for
 * each block of launches, and the CPU at the end. Modes: "stay" changes nothing; "off", "on", and
 * "floor", which is the agent that FLOOR_AGENT names (floor_agent.c) while lull has left CUPTI:
 * processes differ by more than the two, so that one process has both. They need a recording that
 * the program may switch (`lull profile -c lull --capture-range-end=repeat`).
 * Virtual CPUs share cores, and are half as fast while a neighbour works: PIECE is what a fixed
 * piece of work took, before the block or after it, whichever took longer, and where it tells of a
 * neighbour before a block, the thread goes on to the next of the CPUs that it may use. It begins
 * on the one that it is given. TURNS_CUDART names the runtime's library.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lull.h"

#define BLOCK 100  /* launches */
#define OWN   1.25 /* times the quickest takes a piece of work on a CPU of one's own at most */

#define MAX_BLOCKS 1000

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

/* The floor's agent, while lull is away. */
static struct {
	int (*turn)(const char *words);
	int (*is_alone)(void);
} bare;

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

static void use_table(void)
{
	const char *path = getenv("TURNS_TABLE");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;

	*(void **)&runtime.launch = library ? dlsym(library, "turns_launch") : NULL;
	if (!runtime.launch)
		give_up("no turns_table.c; set TURNS_TABLE");
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

/* Much code and many branches: a chain of multiplications would not notice a neighbour. */
static double piece(void)
{
	static char table[64][24];
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < 200; i++)
		snprintf(table[i % 64], sizeof(table[0]), "%d.%s", i, i % 3 ? "x" : "yz");
	return (double)(now_ns() - begin_ns);
}

/* The CPUs that the process may use, the one it is on, and what a piece takes on a quiet one. */
static struct {
	cpu_set_t all;
	int cpus[CPU_SETSIZE], n, at;
	double quick_ns;
} place;

/* A piece on that CPU, with its caches as they are between blocks. */
static double go_to(int at)
{
	cpu_set_t one;

	place.at = at % place.n;
	CPU_ZERO(&one);
	CPU_SET(place.cpus[place.at], &one);
	sched_setaffinity(0, sizeof(one), &one);
	piece();
	for (int i = 0; i < BLOCK / 4; i++)
		launch();
	DO(synchronize);
	return piece();
}

/* Threads that come up while a mode is switched on are not to share our CPU. */
static void go_anywhere(void)
{
	sched_setaffinity(0, sizeof(place.all), &place.all);
}

static void find_place(void)
{
	static double found[CPU_SETSIZE * 8];
	size_t n = 0;

	sched_getaffinity(0, sizeof(place.all), &place.all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &place.all))
			place.cpus[place.n++] = i;
	for (int i = 0; i < place.n * 8; i++)
		found[n++] = go_to(i);
	qsort(found, n, sizeof(*found), by_value);
	place.quick_ns = found[n / 10];
	go_anywhere();
}

/* On a CPU of our own if there is one. Returns what the piece of work took there. */
static double settle(void)
{
	double ns = piece();

	for (int i = 0; i < place.n && ns > OWN * place.quick_ns; i++)
		ns = go_to(place.at + 1);
	return ns;
}

/* What a launch of a block took, and the piece of work before it or after. */
static struct {
	double launch_ns, piece_ns;
} blocks[MAX_BLOCKS];

static void say(int n_blocks)
{
	for (int i = 0; i < n_blocks; i++)
		printf("%.0f/%.0f ", blocks[i].launch_ns, blocks[i].piece_ns);
	printf("%d\n", place.cpus[place.at]);
	fflush(stdout);
}

static void turn(int n_blocks, int cpu)
{
	for (int i = 0; i < BLOCK * 5; i++)
		launch();
	DO(synchronize);
	for (int i = 0; i < place.n; i++)
		if (place.cpus[i] == cpu)
			place.at = i;
	go_to(place.at);
	for (int i = 0; i < n_blocks; i++) {
		double before_ns = settle(), after_ns;
		uint64_t begin_ns = now_ns();

		for (int k = 0; k < BLOCK; k++)
			launch();
		blocks[i].launch_ns = (double)(now_ns() - begin_ns) / BLOCK;
		DO(synchronize); /* a full queue would show the device's pace */
		after_ns = piece();
		blocks[i].piece_ns = after_ns > before_ns ? after_ns : before_ns;
	}
	go_anywhere();
}

/* A driver has threads of its own, and the C library is slower where there are some. */
static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void find_floor(void)
{
	const char *path = getenv("FLOOR_AGENT");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;

	if (library) {
		*(void **)&bare.turn = dlsym(library, "floor_switch");
		*(void **)&bare.is_alone = dlsym(library, "floor_is_alone");
	}
}

/* lull's: reports are closed one after the other, so that a start may have to wait. */
static void switch_lull(int is_on)
{
	if (!is_on)
		lull_stop();
	for (int i = 0; is_on && i < 3000; i++) {
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
	for (int i = 0; i < 6000 && !bare.is_alone(); i++) {
		usleep(5000);
		lull_is_recording();
	}
	if (!bare.is_alone())
		give_up("lull does not leave CUPTI");
	bare.turn("");
}

static void switch_to(const char *mode)
{
	if (strcmp(mode, "stay") == 0)
		return;
	if (bare.turn)
		bare.turn("finalize");
	if (strcmp(mode, "floor") != 0)
		switch_lull(strcmp(mode, "on") == 0);
	else if (bare.turn)
		switch_to_floor();
	else
		give_up("the floor needs FLOOR_AGENT");
	/* A thread of the agent enables CUPTI; it is left where the program tells something. */
	for (int i = 0; i < 40; i++) {
		usleep(10000);
		lull_is_recording();
	}
}

int main(int argc, char **argv)
{
	int n_blocks = argc > 2 ? atoi(argv[2]) : 0, cpu;
	pthread_t thread;
	void *context;
	char mode[16];

	if (n_blocks < 1 || n_blocks > MAX_BLOCKS) {
		fprintf(stderr, "turns: table|runtime|driver, and how many blocks (1 to 1000)?\n");
		return 2;
	}
	if (cuda_guest_find() != 0 || cuda.init(0) != 0)
		return 77;
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(new_stream, &stream, 1);
	if (strcmp(argv[1], "driver") == 0)
		use_driver();
	else
		use_runtime();
	if (strcmp(argv[1], "table") == 0)
		use_table();
	find_floor();
	pthread_create(&thread, NULL, sleep_on, NULL);
	find_place();
	puts("ready");
	fflush(stdout);
	while (scanf("%15s %d", mode, &cpu) == 2) {
		switch_to(mode);
		turn(n_blocks, cpu);
		say(n_blocks);
	}
	return 0;
}
