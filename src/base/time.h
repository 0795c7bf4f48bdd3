/*
 * time - the CPU counter and the clocks, inline for the agent.
 *
 * The counter is read raw; the recorder turns it into CLOCK_MONOTONIC nanoseconds with
 * pairs of (counter, clock) taken at the same moment.
 */
#ifndef LULL_BASE_TIME_H
#define LULL_BASE_TIME_H

#include <time.h>

#include "base/types.h"

#define LULL_NS_PER_S 1000000000ULL

/* Nanoseconds of the given clock. */
static inline u64 lull_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * LULL_NS_PER_S + (u64)ts.tv_nsec;
}

/* CLOCK_MONOTONIC nanoseconds: the clock of every report. */
static inline u64 lull_now_ns(void)
{
	return lull_clock_ns(CLOCK_MONOTONIC);
}

/*
 * The CPU's time counter: TSC on x86_64, the virtual counter on aarch64, else CLOCK_MONOTONIC
 * itself.
 */
static inline u64 lull_counter(void)
{
#if defined(__x86_64__)
	u32 lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (u64)hi << 32 | lo;
#elif defined(__aarch64__)
	u64 v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return lull_now_ns();
#endif
}

#endif
