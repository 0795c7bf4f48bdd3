// Programs for test/gpu/kernel.py that know the truth about their own kernels.
//
//   kernel_probe sums            changes memory in many launches, prints its checksum
//   kernel_probe live [GIB]      the same with so much live memory (default 40)
//   kernel_probe product         bf16 matrix product of 8192 x 8192 x 8192 by tensor cores, no padding
//   kernel_probe shapes N SEED   N random launch shapes with what CUDA says of their occupancy
//   kernel_probe handshake       a kernel that waits for the host: run again by itself, it never ends
//   kernel_probe meet [VARIES]   three ranges with two kernels that wait for each other, and a known sum of operations;
//                                VARIES adds a launch in every second run of the program (by a file of that name)
//   kernel_probe nccl            a kernel whose name says that it may wait for another device
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <mma.h>

#define CHECK(call)                                                                     \
	do {                                                                            \
		cudaError_t e_ = (call);                                                \
		if (e_ != cudaSuccess) {                                                \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_));     \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

__global__ void mix(unsigned *data, size_t n, unsigned salt)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		data[i] = data[i] * 1664525u + salt + (unsigned)i;
}

__global__ void add_up(const unsigned *data, size_t n, unsigned long long *sum)
{
	unsigned long long s = 0;
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		s += data[i];
	atomicAdd(sum, s);
}

__global__ void count_up(unsigned *counter)
{
	atomicAdd(counter, 1);
}

static int run_sums(size_t bytes, int rounds)
{
	size_t n = bytes / 4;
	unsigned *data, *counter, counted;
	unsigned long long *sum, said;
	CHECK(cudaMalloc(&data, bytes));
	CHECK(cudaMalloc(&counter, 4));
	CHECK(cudaMalloc(&sum, 8));
	CHECK(cudaMemset(data, 7, bytes));
	CHECK(cudaMemset(counter, 0, 4));
	CHECK(cudaMemset(sum, 0, 8));
	for (int i = 0; i < rounds; i++) {
		mix<<<132 * 8, 256>>>(data, n, i);
		count_up<<<64, 64>>>(counter);
	}
	add_up<<<132 * 8, 256>>>(data, n, sum);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&said, sum, 8, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&counted, counter, 4, cudaMemcpyDeviceToHost));
	printf("RESULT checksum=%llu counted=%u\n", said, counted);
	return counted == 64u * 64u * rounds ? 0 : 1;
}

// Each warp computes one tile of 16 x 16; no tile is padded.
__global__ void product(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n)
{
	using namespace nvcuda::wmma;
	int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16, col = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
	fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> fa;
	fragment<matrix_b, 16, 16, 16, __nv_bfloat16, row_major> fb;
	fragment<accumulator, 16, 16, 16, float> fc;
	fill_fragment(fc, 0.0f);
	for (int k = 0; k < n; k += 16) {
		load_matrix_sync(fa, a + (size_t)row * n + k, n);
		load_matrix_sync(fb, b + (size_t)k * n + col, n);
		mma_sync(fc, fa, fb, fc);
	}
	store_matrix_sync(c + (size_t)row * n + col, fc, n, mem_row_major);
}

static int run_product(void)
{
	const int n = 8192;
	__nv_bfloat16 *a, *b;
	float *c;
	CHECK(cudaMalloc(&a, (size_t)n * n * 2));
	CHECK(cudaMalloc(&b, (size_t)n * n * 2));
	CHECK(cudaMalloc(&c, (size_t)n * n * 4));
	CHECK(cudaMemset(a, 0, (size_t)n * n * 2));
	CHECK(cudaMemset(b, 0, (size_t)n * n * 2));
	for (int i = 0; i < 2; i++)
		product<<<dim3(n / 64, n / 64), dim3(128, 4)>>>(a, b, c, n);
	CHECK(cudaDeviceSynchronize());
	printf("RESULT operations=%.0f\n", 2.0 * n * n * n);
	return 0;
}

// Kernels with different needs for registers and shared memory.
template <int N, int SHARED> __global__ void needy(float *out, int rounds)
{
	__shared__ float room[SHARED];
	float v[N];
	for (int i = 0; i < N; i++)
		v[i] = threadIdx.x + i;
	room[threadIdx.x % SHARED] = v[0];
	__syncthreads();
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < N; i++)
			v[i] = fmaf(v[i], v[(i + 1) % N], room[(r + i) % SHARED]);
	float s = 0;
	for (int i = 0; i < N; i++)
		s += v[i];
	out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

static int run_shapes(int n, unsigned seed)
{
	void (*kernels[])(float *, int) = { needy<2, 1>,   needy<8, 64>,   needy<20, 300>, needy<40, 1>,
					    needy<64, 2000>, needy<90, 1>, needy<120, 777>, needy<180, 1> };
	srand(seed);
	for (int i = 0; i < n; i++) {
		void (*k)(float *, int) = kernels[rand() % 8];
		cudaFuncAttributes at;
		CHECK(cudaFuncGetAttributes(&at, k));
		int threads = 1 + rand() % at.maxThreadsPerBlock, dynamic = rand() % 3 ? rand() % 200000 : 0, blocks = 0;
		int most = 227 * 1024 - (int)at.sharedSizeBytes;
		if (dynamic > most)
			dynamic = most;
		CHECK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic));
		CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, threads, dynamic));
		printf("SHAPE threads=%d registers=%d shared=%d blocks=%d\n", threads, at.numRegs,
		       (int)at.sharedSizeBytes + dynamic, blocks);
	}
	return 0;
}

__global__ void handshake(volatile unsigned *from_host, volatile unsigned *to_host)
{
	while (!*from_host)
		continue;
	*to_host = 1;
}

static int run_handshake(void)
{
	unsigned *flags;
	CHECK(cudaHostAlloc(&flags, 8, cudaHostAllocMapped));
	flags[0] = flags[1] = 0;
	handshake<<<1, 1>>>(flags, flags + 1);
	((volatile unsigned *)flags)[0] = 1;
	CHECK(cudaDeviceSynchronize());
	printf("RESULT shaken=%u\n", flags[1]);
	return 0;
}

// Each raises its own flag and waits for the other's: both have to be there at once.
__global__ void meet(volatile unsigned *flags, int mine, unsigned *met)
{
	long long since = clock64();
	flags[mine] = 1;
	__threadfence();
	while (!flags[1 - mine])
		if (clock64() - since > 3000000000ll)
			return;
	atomicAdd(met, 1);
}

__global__ void known_work(float *out, int rounds)
{
	float s = threadIdx.x;
	for (int r = 0; r < rounds; r++)
		s = fmaf(s, 1.0001f, 0.5f);
	out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

static int run_meet(const char *varies)
{
	const int blocks = 132 * 8, threads = 256, rounds = 2000;
	unsigned *flags, *met, n_met;
	float *out;
	cudaStream_t a, b;
	bool is_odd = false;
	if (varies) {
		is_odd = remove(varies) != 0;
		FILE *f = is_odd ? fopen(varies, "w") : NULL;
		if (f)
			fclose(f);
	}
	CHECK(cudaStreamCreate(&a));
	CHECK(cudaStreamCreate(&b));
	CHECK(cudaMalloc(&flags, 8));
	CHECK(cudaMalloc(&met, 4));
	CHECK(cudaMalloc(&out, (size_t)blocks * threads * 4));
	CHECK(cudaMemset(met, 0, 4));
	for (int i = 0; i < 4; i++) {
		CHECK(cudaMemset(flags, 0, 8));
		CHECK(cudaDeviceSynchronize());
		if (i)
			CHECK(cudaProfilerStart());
		meet<<<1, 1, 0, a>>>(flags, 0, met);
		meet<<<1, 1, 0, b>>>(flags, 1, met);
		for (int k = 0; k < 3 + is_odd; k++)
			known_work<<<blocks, threads, 0, k % 2 ? a : b>>>(out, rounds);
		if (i)
			CHECK(cudaProfilerStop());
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&n_met, met, 4, cudaMemcpyDeviceToHost));
	printf("RESULT met=%u flops=%.0f launches=5\n", n_met, 3.0 * blocks * threads * rounds * 2);
	return 0;
}

__global__ void ncclDevKernel_Probe(unsigned *counter)
{
	atomicAdd(counter, 1);
}

static int run_nccl(void)
{
	unsigned *counter, counted;
	CHECK(cudaMalloc(&counter, 4));
	CHECK(cudaMemset(counter, 0, 4));
	ncclDevKernel_Probe<<<1, 32>>>(counter);
	count_up<<<1, 32>>>(counter);
	CHECK(cudaMemcpy(&counted, counter, 4, cudaMemcpyDeviceToHost));
	printf("RESULT counted=%u\n", counted);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "sums"))
		return run_sums((size_t)64 << 20, 10);
	if (!strcmp(what, "live"))
		return run_sums((size_t)(argc > 2 ? atoi(argv[2]) : 40) << 30, 2);
	if (!strcmp(what, "product"))
		return run_product();
	if (!strcmp(what, "shapes"))
		return run_shapes(argc > 2 ? atoi(argv[2]) : 500, argc > 3 ? atoi(argv[3]) : 1);
	if (!strcmp(what, "handshake"))
		return run_handshake();
	if (!strcmp(what, "meet"))
		return run_meet(argc > 2 ? argv[2] : NULL);
	if (!strcmp(what, "nccl"))
		return run_nccl();
	fprintf(stderr, "kernel_probe: sums, live, product, shapes, handshake, meet or nccl\n");
	return 2;
}
