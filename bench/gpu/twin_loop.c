/*
 * twin_loop - a loop of small launches that runs when it is told to, for twins.py, also on the
 * simulated device.
 *
 *	twin_loop [nosteps]
 *
 * Says "ready PID". Answers each line "WARM N SLOW_US" of the standard input with the nanoseconds
 * of N steps, after WARM that do not count. A step is 50 empty kernels and a wait for them; it
 * sleeps for SLOW_US, as one whose data come late. Steps are marked (lull.h), unless it is told
 * not to.
 */
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lull.h"

#define LAUNCHES 50

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuStreamCreate, new_stream, (void **, unsigned))                               \
	CALL(cuStreamSynchronize, synchronize, (void *))                                    \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

static void *kernel, *stream;
static unsigned long long number;
static int is_marked;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Where the other one runs, too. */
static void settle(void)
{
	const char *cpu = getenv("TWIN_CPU");
	cpu_set_t one;

	if (!cpu)
		return;
	CPU_ZERO(&one);
	CPU_SET(strtoul(cpu, NULL, 10), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void step(unsigned slow_us)
{
	if (is_marked)
		lull_step(number++);
	if (slow_us)
		usleep(slow_us);
	for (int i = 0; i < LAUNCHES; i++)
		DO(launch, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	DO(synchronize, stream);
}

int main(int argc, char **argv)
{
	unsigned warm, n, slow_us;
	void *context, *module;

	is_marked = argc < 2 || strcmp(argv[1], "nosteps") != 0;
	if (cuda_guest_find() != 0 || cuda.init(0) != 0)
		return 77;
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(new_stream, &stream, 1);
	DO(load, &module, CUDA_GUEST_PTX);
	DO(get_function, &kernel, module, "nothing");
	step(0);
	settle();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (scanf("%u %u %u", &warm, &n, &slow_us) == 3) {
		uint64_t begin_ns;

		for (unsigned i = 0; i < warm; i++)
			step(slow_us);
		begin_ns = now_ns();
		for (unsigned i = 0; i < n; i++)
			step(slow_us);
		begin_ns = now_ns() - begin_ns;
		if (is_marked)
			lull_step_end(); /* the wait for the next turn is no step */
		printf("%llu\n", (unsigned long long)begin_ns);
		fflush(stdout);
	}
	return 0;
}
