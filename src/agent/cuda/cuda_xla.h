/*
 * cuda_xla - whether XLA (JAX) replays CUDA graphs in this process, which CUPTI must not watch.
 *
 * XLA changes the nodes of its graphs ("command buffers") between launches. While CUPTI records,
 * such a graph may write to memory that is not its own: seen on an H200 with CUDA 13.0 and
 * JAX 0.11, three of four runs ended with CUDA_ERROR_LAUNCH_FAILED. XLA's own profiler runs without
 * graphs for this reason. python/lull/_xla.py asks XLA to do so before it starts.
 */
#ifndef LULL_AGENT_CUDA_CUDA_XLA_H
#define LULL_AGENT_CUDA_CUDA_XLA_H

#include <stdbool.h>

/* True if XLA's CUDA plugin is loaded and was not told to leave out graphs. Any thread. */
bool lull_cuda_xla_has_graphs(void);

#endif
