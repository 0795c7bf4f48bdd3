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

enum lull_cuda_xla {
	LULL_CUDA_XLA_NONE,   /* its CUDA libraries are not loaded */
	LULL_CUDA_XLA_PLAIN,  /* it was told to leave out graphs */
	LULL_CUDA_XLA_GRAPHS, /* it may use them */
};

/* Which it is in this process. Any thread. */
enum lull_cuda_xla lull_cuda_xla(void);

#endif
