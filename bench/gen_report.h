/*
 * gen_report - a made-up report of a training run, for benchmarks that read one.
 *
 * Two processes with a device each. A step is a fixed program of 1,100 launches in layers that
 * repeat each other: the forward half on the main thread, which the CPU bounds, the backward half
 * on a second one, which the device bounds (the launch queue holds 8 ms). Names follow Zipf's law
 * over 220 kernels, 190 ranges and 40 calls; durations are log-normal around a mean for each
 * operator; times of the device are ticks of 32 ns.
 *
 * The same options give the same rows on every machine (the C library's exp() permitting).
 */
#ifndef LULL_BENCH_GEN_REPORT_H
#define LULL_BENCH_GEN_REPORT_H

#include "base/err.h"
#include "base/types.h"

struct gen_report_options {
	u64 n_kernels;	  /* as many calls, a copy for every 30th, a synchronisation a step */
	bool has_ranges;  /* also ranges, three deep: a third as many as kernels; and steps */
	bool has_oscalls; /* also calls into the C library by worker threads: a quarter as many */
};

/* Write the report to `path`. */
int gen_report(const char *path, const struct gen_report_options *options, struct lull_err *err);

#endif
