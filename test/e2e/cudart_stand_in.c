#include "cudart_stand_in.h"

#include <dlfcn.h>

int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared_bytes, void *stream)
{
	static int (*launch)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned,
			     unsigned, unsigned, void *, void **, void **);

	if (!launch)
		*(void **)&launch = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
	return launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		      (unsigned)shared_bytes, stream, args, NULL);
}

/* As in the real one, not through the table. */
static int launch(const void *, struct dim3, struct dim3, void **, size_t, void *)
	__attribute__((alias("cudaLaunchKernel")));

int __cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		       size_t shared_bytes, void *stream)
{
	return launch(kernel, grid, block, args, shared_bytes, stream);
}

int cudaLaunchKernelExC(const struct launch_config *config, const void *kernel, void **args)
{
	return launch(kernel, config->grid, config->block, args, config->shared_bytes,
		      config->stream);
}
