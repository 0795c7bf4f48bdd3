/*
 * cudart_guest - launches through libcudart, as frameworks do: 30 by cudaLaunchKernel, 20 by the
 * name that CUDA 13 builds into programs, 10 with a configuration (which nobody stands in for), 5
 * at the driver, 1 that fails. Grid, block and shared memory tell which is which. Status 77: there
 * is no driver.
 */
#include "cudart_stand_in.h"

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

int main(void)
{
	const struct dim3 grid = { 2, 3, 4 }, block = { 32, 2, 1 }, none = { 0, 0, 0 };
	const struct launch_config config = { { 7, 1, 1 }, { 64, 1, 1 }, 0, NULL };
	void *context, *module, *kernel;

	if (cuda_guest_find() != 0)
		return 77;
	DO(init, 0);
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(load, &module, CUDA_GUEST_PTX);
	DO(get_function, &kernel, module, "nothing");
	for (int i = 0; i < 30; i++)
		cuda_guest_check(cudaLaunchKernel(kernel, grid, block, NULL, 128, NULL), "launch");
	for (int i = 0; i < 20; i++)
		cuda_guest_check(__cudaLaunchKernel(kernel, grid, block, NULL, 256, NULL), "built");
	for (int i = 0; i < 10; i++)
		cuda_guest_check(cudaLaunchKernelExC(&config, kernel, NULL), "configured");
	for (int i = 0; i < 5; i++)
		DO(launch, kernel, 5, 1, 1, 16, 1, 1, 0, NULL, NULL, NULL);
	printf("failed: %d\n", cudaLaunchKernel(kernel, none, block, NULL, 0, NULL) != 0);
	DO(synchronize);
	return 0;
}
