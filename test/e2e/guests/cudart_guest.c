/*
 * cudart_guest - a program of the CUDA runtime, as frameworks are; it also runs with NVIDIA's.
 *
 * 30 launches by cudaLaunchKernel, 20 by the name that CUDA 13 builds into programs, 10 with a
 * configuration, 5 at the driver, 7 by another thread, 1 that fails; grid, block and shared memory
 * tell which is which. Three copies to the device and one back, two sets, waits of each kind.
 * Before it all, and after it, a launch that is outside of cudaProfilerStart() and Stop().
 *
 *	cudart_guest N HOW	N launches and a long one instead; when all but that one are done
 *				it says so, and
 *	    through		waits for it
 *	    stop		calls cudaProfilerStop(), and waits for the end of its input
 *	    wait		waits for the end of its input
 *
 * Status 77: there is no driver.
 */
#include "sim/cudart.h"

#include <pthread.h>
#include <string.h>

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

#ifdef SHARED_ENTRY
/* Called through the entry that also tells its address, which x86_64 has for both anyway. */
int cudaLaunchKernel(const void *kernel, struct sim_dim3 grid, struct sim_dim3 block, void **args,
		     size_t shared_bytes, void *stream) __attribute__((noplt));
static __typeof__(cudaLaunchKernel) *volatile launch_address;

/* By itself: main() must not load it once for all calls, before the agent sees the program. */
static __attribute__((noinline)) void take_address(void)
{
	launch_address = cudaLaunchKernel;
}
#else
static void take_address(void)
{
}
#endif

#define CHECK(call) cuda_guest_check(call, #call)

#define N_BYTES 65536u

#ifdef LARGE_TLS
/* Room for it is on the stack of each thread, whoever makes it. */
_Thread_local char large[512 << 10];
#endif

/* Two kernels that do nothing; the simulated device is told how long each takes. */
static const char ptx[] = CUDA_GUEST_PTX ".visible .entry endless()\n"
					 "{\n"
					 "	ret;\n"
					 "}\n";

static const struct sim_dim3 one = { 1, 1, 1 }, grid = { 2, 3, 4 }, block = { 32, 2, 1 };

static void *launch_elsewhere(void *kernel)
{
	for (int i = 0; i < 7; i++)
		CHECK(cudaLaunchKernel(kernel, grid, block, NULL, 512, NULL));
	return NULL;
}

static void launch_all(void *kernel)
{
	const struct sim_launch config = { { 7, 1, 1 }, { 64, 1, 1 }, 0, NULL, NULL, 0 };
	const struct sim_dim3 none = { 0, 0, 0 };
	pthread_t thread;
	int first, second;

	for (int i = 0; i < 30; i++)
		CHECK(cudaLaunchKernel(kernel, grid, block, NULL, 128, NULL));
	for (int i = 0; i < 20; i++)
		CHECK(__cudaLaunchKernel(kernel, grid, block, NULL, 256, NULL));
	for (int i = 0; i < 10; i++)
		CHECK(cudaLaunchKernelExC(&config, kernel, NULL));
	for (int i = 0; i < 5; i++)
		DO(launch, kernel, 5, 1, 1, 16, 1, 1, 0, NULL, NULL, NULL);
	CHECK(pthread_create(&thread, NULL, launch_elsewhere, kernel));
	CHECK(pthread_join(thread, NULL));
	printf("failed: %d\n", cudaLaunchKernel(kernel, none, block, NULL, 0, NULL) != 0);
	/* One after the other: C leaves the order of arguments open. */
	first = cudaGetLastError();
	second = cudaGetLastError();
	printf("remembered: %d, then %d\n", first != 0, second);
}

static void move_memory(void)
{
	static char here[N_BYTES], back[N_BYTES];
	void *there, *stream, *event;
	int device = -1;

	CHECK(cudaGetDevice(&device));
	CHECK(cudaMalloc(&there, N_BYTES));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&event));
	for (size_t i = 0; i < N_BYTES; i++)
		here[i] = (char)i;
	for (int i = 0; i < 3; i++)
		CHECK(cudaMemcpyAsync(there, here, N_BYTES, SIM_COPY_TO_DEVICE, stream));
	CHECK(cudaMemsetAsync(there, 1, 16, stream));
	CHECK(cudaMemsetAsync(there, 2, 8, stream));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(back, there, N_BYTES, SIM_COPY_TO_HOST));
	printf("device %d: %d %d %d\n", device, back[7], back[15], back[99]);
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(there));
}

/* Beside work that is not done yet: somebody stops looking, or ends the program. */
static void queue_up(void *kernel, void *endless, int n, const char *how)
{
	void *event;

	CHECK(cudaEventCreate(&event));
	for (int i = 0; i < n; i++)
		CHECK(cudaLaunchKernel(kernel, one, one, NULL, 64, NULL));
	CHECK(cudaEventRecord(event, NULL));
	CHECK(cudaLaunchKernel(endless, one, one, NULL, 96, NULL));
	CHECK(cudaEventSynchronize(event));
	puts("done");
	fflush(stdout);
	if (strcmp(how, "stop") == 0)
		CHECK(cudaProfilerStop());
	if (strcmp(how, "through") == 0)
		CHECK(cudaDeviceSynchronize());
	else
		while (getchar() != EOF)
			;
}

int main(int argc, char **argv)
{
	void *library, *kernel, *endless;

	if (cuda_guest_find() != 0)
		return 77;
	take_address();
	CHECK(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cudaLibraryGetKernel(&kernel, library, "nothing"));
	CHECK(cudaLibraryGetKernel(&endless, library, "endless"));
	CHECK(cudaLaunchKernel(kernel, one, one, NULL, 0, NULL));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaProfilerStart());
	if (argc > 2) {
		queue_up(kernel, endless, atoi(argv[1]), argv[2]);
		return 0;
	}
	launch_all(kernel);
	move_memory();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaProfilerStop());
	CHECK(cudaLaunchKernel(kernel, one, one, NULL, 0, NULL));
	CHECK(cudaDeviceSynchronize());
	return 0;
}
