/*
 * turns_table - the call that frameworks make: cudaLaunchKernel() through a library's offset table.
 * A file of its own for turns.c, which looks everything up and has no such table.
 */
#include <stddef.h>

struct dim3 {
	unsigned x, y, z;
};

int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared_bytes, void *stream);
int turns_launch(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		 size_t shared_bytes, void *stream);

int turns_launch(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		 size_t shared_bytes, void *stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}
