/*
 * gen_host - a made-up report of all that is not kernels and ranges, for benchmarks that read one.
 *
 * One process with eight threads, one stream. n rows of each: calls of the C library, of a watched
 * library and of MPI, waits for Python's lock, samples of the CPU and of Python, stays on a CPU,
 * operators with a launch and a kernel each, allocations of the framework and of the device, moves
 * and faults of unified memory, memsets, readings of counters.
 */
#ifndef LULL_BENCH_GEN_HOST_H
#define LULL_BENCH_GEN_HOST_H

#include "base/err.h"
#include "base/types.h"

/* Write the report to `path`. The same n gives the same rows. */
int gen_host(const char *path, u64 n, struct lull_err *err);

#endif
