// attach_loop - a CUDA C++ program that knows nothing of lull, for attach.py: two threads, a stream each.
//
//	attach_loop LOG STOP [THREADS]
//
// Each round of a thread copies its numbers to the device, launches 20 kernels and copies the result back; the grid of a
// kernel says its number (1 + number % 1000), so that a missing one is seen. The result of a round has to be that of the
// first. It allocates and frees, too, so that a damaged heap is noticed. LOG gets the end and the length of each round of
// the first thread, as doubles in seconds (CLOCK_MONOTONIC). When the file STOP exists, it prints the number of rounds and
// of wrong results, and ends with status 3.
//
// With "-" for LOG it makes rounds when it is told to (twins.py): it says "ready PID", and answers each line "WARM N 0" of the
// standard input with the nanoseconds of N rounds, after WARM that do not count. TWIN_CPU is where it runs.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>

static const int N = 1 << 18, KERNELS = 20;
static std::atomic<bool> is_over;
static std::atomic<long> n_rounds, n_wrong;

static void check(cudaError_t e)
{
	if (e != cudaSuccess) {
		fprintf(stderr, "attach_loop: %s\n", cudaGetErrorString(e));
		exit(1);
	}
}

static double now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

__global__ void relax_even(float *a, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		a[i] = a[i] * 0.5f + 0.25f;
}

__global__ void relax_odd(float *a, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		a[i] = a[i] * 0.75f - 0.125f;
}

static double round_of(cudaStream_t s, float *host, float *dev, long *number)
{
	for (int i = 0; i < N; i++)
		host[i] = i * 1e-3f;
	check(cudaMemcpyAsync(dev, host, N * sizeof *host, cudaMemcpyHostToDevice, s));
	for (int k = 0; k < KERNELS; k++, (*number)++) {
		if (k % 2)
			relax_odd<<<1 + *number % 1000, 128, 0, s>>>(dev, N);
		else
			relax_even<<<1 + *number % 1000, 128, 0, s>>>(dev, N);
	}
	check(cudaMemcpyAsync(host, dev, N * sizeof *host, cudaMemcpyDeviceToHost, s));
	check(cudaStreamSynchronize(s));
	std::vector<double> sums(1 + *number % 5000);
	double &sum = sums[0];
	for (int i = 0; i < N; i++)
		sum += host[i];
	return sum;
}

static void work(FILE *log)
{
	cudaStream_t s;
	float *host, *dev;
	long number = 0;
	check(cudaStreamCreate(&s));
	check(cudaMallocHost(&host, N * sizeof *host));
	check(cudaMalloc(&dev, N * sizeof *dev));
	double first = round_of(s, host, dev, &number);
	while (!is_over) {
		double begin = now();
		n_wrong += round_of(s, host, dev, &number) != first;
		n_rounds++;
		double row[2] = {now(), 0};
		row[1] = row[0] - begin;
		if (log)
			fwrite(row, sizeof row, 1, log);
	}
}

static int take_turns()
{
	cudaStream_t s;
	float *host, *dev;
	long number = 0;
	unsigned warm, n, unused;
	check(cudaStreamCreate(&s));
	check(cudaMallocHost(&host, N * sizeof *host));
	check(cudaMalloc(&dev, N * sizeof *dev));
	double first = round_of(s, host, dev, &number);
	if (const char *cpu = getenv("TWIN_CPU")) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(atoi(cpu), &one);
		sched_setaffinity(0, sizeof one, &one);
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (scanf("%u %u %u", &warm, &n, &unused) == 3) {
		double begin = now();
		for (unsigned i = 0; i < warm + n; i++) {
			if (i == warm)
				begin = now();
			n_wrong += round_of(s, host, dev, &number) != first;
		}
		printf("%.0f\n", (now() - begin) * 1e9);
		fflush(stdout);
	}
	return n_wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "-"))
		return take_turns();
	FILE *log = fopen(argv[1], "wb");
	std::vector<std::thread> threads;
	for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 2); i++)
		threads.emplace_back(work, i ? nullptr : log);
	while (access(argv[2], F_OK))
		usleep(100000);
	is_over = true;
	for (std::thread &t : threads)
		t.join();
	fclose(log);
	printf("%ld rounds, %ld wrong\n", n_rounds.load(), n_wrong.load());
	return 3;
}
