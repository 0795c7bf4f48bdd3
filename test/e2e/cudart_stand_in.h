/*
 * cudart_stand_in - what a program sees of libcudart: launches, in the ways in which it has them.
 * Kernels are the driver's functions.
 */
#ifndef LULL_TEST_CUDART_STAND_IN_H
#define LULL_TEST_CUDART_STAND_IN_H

#include <stddef.h>

struct dim3 {
	unsigned x, y, z;
};

struct launch_config {
	struct dim3 grid, block;
	size_t shared_bytes;
	void *stream;
};

int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared_bytes, void *stream);
int __cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		       size_t shared_bytes, void *stream);
int cudaLaunchKernelExC(const struct launch_config *config, const void *kernel, void **args);

#endif
