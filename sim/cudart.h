/*
 * cudart - what a program sees of libcudart: the calls of runtime.def. The same program runs with
 * NVIDIA's libcudart.so.13, too.
 */
#ifndef LULL_SIM_CUDART_H
#define LULL_SIM_CUDART_H

#include <stddef.h>

struct sim_dim3 {
	unsigned x, y, z;
};

struct sim_launch {
	struct sim_dim3 grid, block;
	size_t shared_bytes;
	void *stream;
	void *attributes;
	unsigned n_attributes;
};

/* Kinds of copies. */
enum { SIM_COPY_TO_DEVICE = 1, SIM_COPY_TO_HOST = 2 };

#define CALL(cbid, version, name, params) __attribute__((visibility("default"))) int name params;
#include "runtime.def"
#undef CALL

#endif
