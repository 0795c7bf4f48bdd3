// Kernels with a known limiter, to try the verdicts on kernels that they were not written for.
//
//   unseen_kernels --list
//   unseen_kernels NAME|all [rounds]     each round launches every chosen kernel once
//
// The label was written down before anything was measured; where two names are defensible, both stand there. A detail
// after a colon (level, pipe, resource, wait) has to be named, too. Three kernels turned out to do something else than
// their author thought, and say so.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                     \
	do {                                                                            \
		cudaError_t e_ = (call);                                                \
		if (e_ != cudaSuccess) {                                                \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_));     \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

#define TID   (blockIdx.x * blockDim.x + threadIdx.x)
#define STEP  (gridDim.x * blockDim.x)
#define N     (1u << 26) // floats: 256 MiB, five times the L2 cache
#define SMS   132

/* ---- pipes ---- */

// bf16 products on the tensor cores, operands in registers
__global__ void mma_bf16(float *out, int rounds)
{
	unsigned a[4], b[2];
	float c[8][4] = {};
	for (int i = 0; i < 4; i++)
		a[i] = 0x3f803f80u + threadIdx.x;
	b[0] = b[1] = 0x3f803f80u;
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
				     "{%8,%9}, {%0,%1,%2,%3};"
				     : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
				     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	float s = 0;
	for (int i = 0; i < 8; i++)
		s += c[i][0] + c[i][1] + c[i][2] + c[i][3];
	out[TID] = s;
}

__global__ void mma_tf32(float *out, int rounds)
{
	unsigned a[4], b[2];
	float c[8][4] = {};
	for (int i = 0; i < 4; i++)
		a[i] = 0x3f800000u;
	b[0] = b[1] = 0x3f800000u;
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
				     "{%8,%9}, {%0,%1,%2,%3};"
				     : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
				     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	float s = 0;
	for (int i = 0; i < 8; i++)
		s += c[i][0] + c[i][1] + c[i][2] + c[i][3];
	out[TID] = s;
}

// forces between bodies: 13 operations and one reciprocal root for each pair
__global__ void bodies(const float4 *in, float4 *out, unsigned n)
{
	__shared__ float4 tile[256];
	float4 me = in[TID];
	float x = 0, y = 0, z = 0;
	for (unsigned k = 0; k < n; k += 256) {
		tile[threadIdx.x] = in[k + threadIdx.x];
		__syncthreads();
#pragma unroll 16
		for (int j = 0; j < 256; j++) {
			float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
			float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), f = tile[j].w * r * r * r;
			x += dx * f, y += dy * f, z += dz * f;
		}
		__syncthreads();
	}
	out[TID] = make_float4(x, y, z, 0);
}

__global__ void fma_fp64(double *out, int rounds)
{
	double a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
	for (int r = 0; r < rounds; r++) {
		a = fma(a, 1.0001, .5), b = fma(b, 1.0001, .5);
		c = fma(c, 1.0001, .5), d = fma(d, 1.0001, .5);
	}
	out[TID] = a + b + c + d;
}

__global__ void fma_half2(unsigned *out, int rounds)
{
	unsigned v[8], m = 0x3c013c01u, k = 0x38003800u;
	for (int i = 0; i < 8; i++)
		v[i] = threadIdx.x + i;
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int i = 0; i < 8; i++)
			asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(v[i]) : "r"(m), "r"(k));
	unsigned s = 0;
	for (int i = 0; i < 8; i++)
		s ^= v[i];
	out[TID] = s;
}

// sine, exponential, logarithm: the special-function unit
__global__ void waves_sfu(float *out, int rounds)
{
	float a = threadIdx.x * .001f, b = a + .1f, c = a + .2f, d = a + .3f;
	for (int r = 0; r < rounds; r++) {
		asm volatile("sin.approx.f32 %0, %0;" : "+f"(a));
		asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(b));
		asm volatile("cos.approx.f32 %0, %0;" : "+f"(c));
		asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(d));
	}
	out[TID] = a + b + c + d;
}

// xorshift: shifts and logic of integers
__global__ void xorshift(unsigned *out, int rounds)
{
	unsigned a = TID + 1, b = a * 3, c = a * 5, d = a * 7;
	for (int r = 0; r < rounds; r++) {
		a ^= a << 13, b ^= b << 13, c ^= c << 13, d ^= d << 13;
		a ^= a >> 17, b ^= b >> 17, c ^= c >> 17, d ^= d >> 17;
		a ^= a << 5, b ^= b << 5, c ^= c << 5, d ^= d << 5;
	}
	out[TID] = a ^ b ^ c ^ d;
}

// linear congruences: integer multiply-adds
__global__ void congruence(unsigned *out, int rounds)
{
	unsigned a = TID + 1, b = a * 3, c = a * 5, d = a * 7, m = 1664525u + (rounds < 0), k = 1013904223u;
	for (int r = 0; r < rounds; r++)
		a = a * m + k, b = b * m + a, c = c * m + b, d = d * m + k;
	out[TID] = a ^ b ^ c ^ d;
}

// division of 64-bit integers: long sequences of integer instructions
__global__ void divide_64(unsigned long long *out, unsigned long long by, int rounds)
{
	unsigned long long a = TID + 1000000007ull, s = 0;
	for (int r = 0; r < rounds; r++)
		s += a / (by + r), a += s | 1;
	out[TID] = s;
}

/* ---- memory, each level ---- */

__global__ void fill(float4 *out, unsigned n)
{
	for (unsigned i = TID; i < n; i += STEP)
		out[i] = make_float4(1, 2, 3, 4);
}

__global__ void sum_all(const float4 *in, float *out, unsigned n)
{
	float s = 0;
	for (unsigned i = TID; i < n; i += STEP) {
		float4 v = in[i];
		s += v.x + v.y + v.z + v.w;
	}
	for (int k = 16; k; k /= 2)
		s += __shfl_down_sync(~0u, s, k);
	if (threadIdx.x % 32 == 0)
		atomicAdd(out, s);
}

__global__ void saxpy(const float *x, float *y, float a, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		y[i] += a * x[i];
}

// 8 MiB read again and again past the L1 cache
__global__ void read_l2(const float4 *in, float *out, unsigned n, int rounds)
{
	float s = 0;
	for (int r = 0; r < rounds; r++)
#pragma unroll 8
		for (unsigned i = (TID + r * 4096u) & (n - 1), k = 0; k < 16; k++, i = (i + STEP) & (n - 1)) {
			float4 v = __ldcg(in + i);
			s += v.x + v.y + v.z + v.w;
		}
	out[TID] = s;
}

// 32 KiB of each block read again and again: the L1 cache holds them
__global__ void read_l1(const float4 *in, float *out, int rounds)
{
	const float4 *mine = in + blockIdx.x % SMS * 2048;
	float s = 0;
	for (int r = 0; r < rounds; r++)
#pragma unroll 8
		for (int k = 0; k < 8; k++) {
			float4 v = __ldca(mine + ((threadIdx.x + k * 256 + r) & 2047));
			s += v.x + v.y + v.z + v.w;
		}
	out[TID] = s;
}

// shared memory without conflicts
__global__ void read_shared(float *out, int rounds)
{
	__shared__ float tile[4096];
	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		tile[i] = i;
	__syncthreads();
	volatile float *p = tile + threadIdx.x % 256;
	float s = 0, t = 0;
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int k = 0; k < 14; k += 2)
			s += p[k * 256], t += p[k * 256 + 256];
	out[TID] = s + t;
}

// pages of the host, over the bus
__global__ void read_host(const float4 *in, float *out, unsigned n)
{
	float s = 0;
	for (unsigned i = TID; i < n; i += STEP) {
		float4 v = in[i];
		s += v.x + v.y + v.z + v.w;
	}
	out[TID] = s;
}

/* ---- access patterns ---- */

__global__ void transpose_naive(const float *in, float *out, unsigned n)
{
	unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		out[x * n + y + k] = in[(y + k) * n + x];
}

// by a tile whose columns lie in one bank
__global__ void transpose_tile(const float *in, float *out, unsigned n)
{
	__shared__ float tile[32][32];
	unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
	__syncthreads();
	x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void transpose_padded(const float *in, float *out, unsigned n)
{
	__shared__ float tile[32][33];
	unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
	__syncthreads();
	x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		out[(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

// a word from anywhere
__global__ void gather(const unsigned *at, const float *in, float *out, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		out[i] = in[at[i]];
}

__global__ void scatter(const unsigned *at, const float *in, float *out, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		out[at[i]] = in[i];
}

struct particle {
	float x, y, z, vx, vy, vz, mass, charge, pad[4];
};

// one field of structures of 48 bytes
__global__ void one_field(const struct particle *in, float *out, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		out[i] = in[i].mass;
}

// every second word
__global__ void every_second(const float *in, float *out, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		out[2 * i] = in[2 * i] * 2;
}

// sparse matrix by rows, a thread for each: neighbours read far apart
__global__ void csr_rows(const unsigned *columns, const float *values, const float *x, float *y, unsigned rows, unsigned len)
{
	unsigned row = TID;
	float s = 0;
	if (row >= rows)
		return;
	for (unsigned k = 0; k < len; k++)
		s += values[row * len + k] * x[columns[row * len + k] & 65535];
	y[row] = s;
}

// sums of columns, a thread for each
__global__ void sum_columns(const float *in, float *out, unsigned rows, unsigned cols)
{
	unsigned c = TID;
	float s = 0;
	for (unsigned r = 0; r < rows; r++)
		s += in[r * cols + c];
	out[c] = s;
}

// four lanes of a warp in each bank
__global__ void four_ways(float *out, int rounds)
{
	__shared__ float tile[4096];
	for (int i = threadIdx.x; i < 4096; i += blockDim.x)
		tile[i] = i;
	__syncthreads();
	volatile float *p = tile + threadIdx.x % 32 * 4;
	float s = 0;
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int k = 0; k < 16; k++)
			s += p[k * 128];
	out[TID] = s;
}

/* ---- atomics ---- */

__global__ void few_bins(const unsigned *in, unsigned *bins, unsigned n)
{
	for (unsigned i = TID; i < n; i += STEP)
		atomicAdd(bins + (in[i] & 7), 1u);
}

// The author wanted contended atomics; the compiler has an instruction that counts a whole warp at once, and what is left
// is limited by the number of instructions.
__global__ void shared_bins(const unsigned *in, unsigned *bins, unsigned n, int rounds)
{
	__shared__ unsigned mine[8];
	if (threadIdx.x < 8)
		mine[threadIdx.x] = 0;
	__syncthreads();
	for (unsigned i = TID; i < n; i += STEP) {
		unsigned v = in[i];
		for (int r = 0; r < rounds; r++)
			atomicAdd(mine + ((v >> r) & 7), 1u);
	}
	__syncthreads();
	if (threadIdx.x < 8)
		atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}

// the same with numbers that differ: no instruction adds these at once
__global__ void shared_adds(const unsigned *in, unsigned *bins, unsigned n, int rounds)
{
	__shared__ unsigned mine[8];
	if (threadIdx.x < 8)
		mine[threadIdx.x] = 0;
	__syncthreads();
	for (unsigned i = TID; i < n; i += STEP) {
		unsigned v = in[i];
		for (int r = 0; r < rounds; r++)
			atomicAdd(mine + ((v >> r) & 3), v >> r);
	}
	__syncthreads();
	if (threadIdx.x < 8)
		atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}

// one addition to a word from anywhere
__global__ void wide_adds(const unsigned *at, unsigned *to, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		atomicAdd(to + at[i], i);
}

/* ---- registers ---- */

// an array of each thread, indexed by what is known at run time only
__global__ void own_array(const float *in, float *out, int rounds)
{
	float v[128];
	for (int i = 0; i < 128; i++)
		v[i] = in[(threadIdx.x + i) & 1023];
	for (int r = 0; r < rounds; r++) {
		int j = (r * 37 + threadIdx.x) & 127;
		v[j] = v[(j + 101) & 127] * 1.01f + v[(j + 7) & 127];
	}
	float s = 0;
	for (int i = 0; i < 128; i++)
		s += v[i];
	out[TID] = s;
}

// more live values than 32 registers hold
__global__ void __launch_bounds__(1024, 2) spilled(const float *in, float *out, int rounds)
{
	float v[64];
#pragma unroll
	for (int i = 0; i < 64; i++)
		v[i] = in[(TID + i * 7) & 4095];
	for (int r = 0; r < rounds; r++) {
#pragma unroll
		for (int i = 0; i < 64; i++)
			v[i] = fmaf(v[i], 1.0001f, v[(i * 29 + 13) & 63]);
	}
	float s = 0;
#pragma unroll
	for (int i = 0; i < 64; i++)
		s += v[i];
	out[TID] = s;
}

/* ---- occupancy ---- */

// 160 values of each thread stay in registers while it waits for memory
__global__ void __launch_bounds__(128, 1) many_registers(const float *in, float *out, unsigned n)
{
	float v[160];
#pragma unroll
	for (int i = 0; i < 160; i++)
		v[i] = i * threadIdx.x;
	for (unsigned i = TID; i < n; i += STEP) {
		float x = in[i];
#pragma unroll
		for (int k = 0; k < 160; k += 16)
			v[k] = fmaf(v[k], x, v[k + 1]);
		/* The rest is turned, so that it has to stay. */
		if (x == 12345.f) {
#pragma unroll
			for (int k = 0; k < 160; k++)
				v[k] = v[(k + 1) % 160] * x;
		}
	}
	float s = 0;
#pragma unroll
	for (int i = 0; i < 160; i++)
		s += v[i];
	out[TID] = s;
}

// blocks of one warp: 32 of them fit, half of the warps of a multiprocessor; the shared memory leaves room for 8
__global__ void few_warps(const float *in, float *out, unsigned n)
{
	extern __shared__ float room[];
	for (unsigned i = TID; i < n; i += STEP) {
		room[threadIdx.x] = in[i];
		__syncwarp();
		out[i] = room[31 - threadIdx.x % 32];
		__syncwarp();
	}
}

// blocks of a warp that live for one store: starting them takes longer
__global__ void tiny_blocks(float *out)
{
	out[TID] = blockIdx.x;
}

// dependent loads from anywhere, as many at a time as fit
__global__ void chase_many(const unsigned *next, unsigned *out, int hops)
{
	unsigned p = TID;
	for (int h = 0; h < hops; h++)
		p = next[p & (N / 4 - 1)];
	out[TID] = p;
}

// four warps a multiprocessor, each instruction needs the one before
__global__ void chain_fma(float *out, int rounds)
{
	float a = threadIdx.x;
	for (int r = 0; r < rounds; r++)
		a = fmaf(a, 1.0001f, .5f);
	out[TID] = a;
}

// dependent loads from shared memory
__global__ void chase_shared(unsigned *out, int hops)
{
	__shared__ unsigned next[1024];
	for (int i = threadIdx.x; i < 1024; i += blockDim.x)
		next[i] = (i + 33) & 1023;
	__syncthreads();
	unsigned p = threadIdx.x;
	for (int h = 0; h < hops; h++)
		p = next[p];
	out[TID] = p;
}

/* ---- shape ---- */

// two blocks fit: four of them are left for a second wave
__global__ void __launch_bounds__(1024, 2) second_wave(float *out, int rounds)
{
	float a = threadIdx.x, b = a + 1;
	for (int r = 0; r < rounds; r++)
		a = fmaf(a, 1.0001f, .5f), b = fmaf(b, 1.0001f, .5f);
	out[TID] = a + b;
}

// some blocks have ten times the work
__global__ void uneven_blocks(float *out, int rounds)
{
	float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
	if (blockIdx.x % 64 == 0)
		rounds *= 10;
	for (int r = 0; r < rounds; r++) {
		a = fmaf(a, 1.0001f, .5f), b = fmaf(b, 1.0001f, .5f);
		c = fmaf(c, 1.0001f, .5f), d = fmaf(d, 1.0001f, .5f);
	}
	out[TID] = a + b + c + d;
}

__global__ void short_one(float *out)
{
	out[TID] = threadIdx.x;
}

// saxpy by 20 blocks
__global__ void few_blocks(const float *x, float *y, float a, unsigned n)
{
	for (unsigned i = TID; i < n; i += STEP)
		y[i] += a * x[i];
}

/* ---- waiting for each other ---- */

// a sum over the block at each step, as first shown in lectures. The author thought of barriers; but the accesses of warps
// that have nothing left to add take their turns as well, and shared memory is full of them.
__global__ void __launch_bounds__(1024, 2) block_sums(float *out, int rounds)
{
	__shared__ float part[1024];
	float s = threadIdx.x;
	for (int r = 0; r < rounds; r++) {
		part[threadIdx.x] = s;
		__syncthreads();
		for (int k = 512; k; k /= 2) {
			if (threadIdx.x < k)
				part[threadIdx.x] += part[threadIdx.x + k];
			__syncthreads();
		}
		s += part[0];
		__syncthreads();
	}
	out[TID] = s;
}

// one warp of the block works, another one each time
__global__ void take_turns(float *out, int rounds)
{
	float s = threadIdx.x;
	for (int r = 0; r < rounds; r++) {
		if (threadIdx.x / 32 == r % (blockDim.x / 32))
			for (int k = 0; k < 100; k++)
				s = fmaf(s, 1.0001f, .5f);
		__syncthreads();
	}
	out[TID] = s;
}

// each store is fenced
__global__ void fences(volatile float *out, int rounds)
{
	for (int r = 0; r < rounds; r++) {
		out[TID] = r;
		__threadfence_system();
	}
}

/* ---- lanes ---- */

// every thread has its own number of steps, as with rows of a sparse matrix
__global__ void own_steps(float *out, int rounds)
{
	unsigned h = TID * 2654435761u >> 20;
	int mine = (h & 31) == 0 ? rounds : rounds / 16 + (h & 63);
	float a = threadIdx.x, b = a;
	for (int r = 0; r < mine; r++)
		a = fmaf(a, 1.0001f, .5f), b = fmaf(b, .9999f, a);
	out[TID] = a + b;
}

// even and odd lanes take different ways
__global__ void even_odd(float *out, int rounds)
{
	float s = threadIdx.x, t = 1;
	if (threadIdx.x & 1)
		for (int r = 0; r < rounds; r++)
			s = fmaf(s, 1.0001f, .5f), t = fmaf(t, s, 1.f);
	else
		for (int r = 0; r < rounds; r++)
			s = s * .9999f + t, t = t * .5f - s;
	out[TID] = s + t;
}

// blocks of half a warp: fma_fp32 once more, and a copy
__global__ void half_warps(float *out, int rounds)
{
	float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
	for (int r = 0; r < rounds; r++) {
		a = fmaf(a, 1.0001f, .5f), b = fmaf(b, 1.0001f, .5f);
		c = fmaf(c, 1.0001f, .5f), d = fmaf(d, 1.0001f, .5f);
	}
	out[TID] = a + b + c + d;
}

__global__ void small_copy(const float *in, float *out, unsigned n)
{
	for (unsigned i = TID; i < n; i += STEP)
		out[i] = in[i];
}

/* ---- whole algorithms ---- */

// softmax of rows, kept in registers
__global__ void __launch_bounds__(256) softmax_rows(const float4 *in, float4 *out, unsigned cols)
{
	__shared__ float part[8];
	const float4 *row = in + (size_t)blockIdx.x * cols / 4;
	float4 v[4], *to = out + (size_t)blockIdx.x * cols / 4;
	float m = -1e30f, s = 0;
#pragma unroll
	for (int k = 0; k < 4; k++) {
		v[k] = row[threadIdx.x + 256 * k];
		m = fmaxf(m, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
	}
	for (int k = 16; k; k /= 2)
		m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = m;
	__syncthreads();
	for (int k = 0; k < 8; k++)
		m = fmaxf(m, part[k]);
	__syncthreads();
#pragma unroll
	for (int k = 0; k < 4; k++) {
		v[k].x = __expf(v[k].x - m), v[k].y = __expf(v[k].y - m);
		v[k].z = __expf(v[k].z - m), v[k].w = __expf(v[k].w - m);
		s += v[k].x + v[k].y + v[k].z + v[k].w;
	}
	for (int k = 16; k; k /= 2)
		s += __shfl_xor_sync(~0u, s, k);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = s;
	__syncthreads();
	s = 0;
	for (int k = 0; k < 8; k++)
		s += part[k];
#pragma unroll
	for (int k = 0; k < 4; k++)
		to[threadIdx.x + 256 * k] = make_float4(v[k].x / s, v[k].y / s, v[k].z / s, v[k].w / s);
}

// layer norm of rows by one thread each: neighbours are a row apart
__global__ void norm_by_thread(const float *in, float *out, unsigned rows, unsigned cols)
{
	unsigned r = TID;
	if (r >= rows)
		return;
	float s = 0, q = 0;
	for (unsigned c = 0; c < cols; c++) {
		float v = in[r * cols + c];
		s += v, q += v * v;
	}
	float mean = s / cols, scale = rsqrtf(q / cols - mean * mean + 1e-5f);
	for (unsigned c = 0; c < cols; c++)
		out[r * cols + c] = (in[r * cols + c] - mean) * scale;
}

__global__ void product_naive(const float *a, const float *b, float *c, unsigned n)
{
	unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	float s = 0;
	for (unsigned k = 0; k < n; k++)
		s += a[y * n + k] * b[k * n + x];
	c[y * n + x] = s;
}

// tiles in shared memory, one result a thread: two loads for each multiply-add
__global__ void product_tile(const float *a, const float *b, float *c, unsigned n)
{
	__shared__ float at[32][32], bt[32][32];
	unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	float s = 0;
	for (unsigned k = 0; k < n; k += 32) {
		at[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
		bt[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
		__syncthreads();
#pragma unroll
		for (int j = 0; j < 32; j++)
			s += at[threadIdx.y][j] * bt[j][threadIdx.x];
		__syncthreads();
	}
	c[y * n + x] = s;
}

// tiles of 128 x 128, 8 x 8 results a thread
__global__ void __launch_bounds__(256, 2) product_good(const float *a, const float *b, float *c, unsigned n)
{
	__shared__ float at[2][8][132], bt[2][8][128];
	unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16, x0 = blockIdx.x * 128, y0 = blockIdx.y * 128;
	unsigned ar = threadIdx.x / 2, ac = threadIdx.x % 2 * 4, br = threadIdx.x / 32, bc = threadIdx.x % 32 * 4;
	float s[8][8] = {};
	float4 va = *(const float4 *)&a[(y0 + ar) * n + ac], vb = *(const float4 *)&b[br * n + x0 + bc];
	int p = 0;
	for (unsigned k = 0; k < n; k += 8, p ^= 1) {
		at[p][ac][ar] = va.x, at[p][ac + 1][ar] = va.y, at[p][ac + 2][ar] = va.z, at[p][ac + 3][ar] = va.w;
		*(float4 *)&bt[p][br][bc] = vb;
		__syncthreads();
		if (k + 8 < n) {
			va = *(const float4 *)&a[(y0 + ar) * n + k + 8 + ac];
			vb = *(const float4 *)&b[(k + 8 + br) * n + x0 + bc];
		}
#pragma unroll
		for (int j = 0; j < 8; j++) {
			float u[8], w[8];
			*(float4 *)u = *(float4 *)&at[p][j][ty * 4], *(float4 *)(u + 4) = *(float4 *)&at[p][j][64 + ty * 4];
			*(float4 *)w = *(float4 *)&bt[p][j][tx * 4], *(float4 *)(w + 4) = *(float4 *)&bt[p][j][64 + tx * 4];
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int l = 0; l < 8; l++)
					s[i][l] = fmaf(u[i], w[l], s[i][l]);
		}
	}
	for (int i = 0; i < 8; i++)
		for (int l = 0; l < 8; l++)
			c[(y0 + (i / 4) * 64 + ty * 4 + i % 4) * n + x0 + (l / 4) * 64 + tx * 4 + l % 4] = s[i][l];
}

// so much straight code that it does not fit into the instruction cache
#define TWO(x)	 x x
#define TEN(x)	 TWO(x) TWO(x) TWO(x) TWO(x) TWO(x)
#define MANY(x)	 TEN(TEN(TEN(x)))
#define FMA(x)	 asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(e), "f"(f));
#define ONE_EACH FMA(a) FMA(b) FMA(c) FMA(d)
__global__ void long_code(float *out, int rounds)
{
	float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;
	for (int r = 0; r < rounds; r++) {
		MANY(ONE_EACH ONE_EACH ONE_EACH)
	}
	out[TID] = a + b + c + d;
}

__constant__ float table[4096];

// each lane its own constant
__global__ void own_constant(float *out, int rounds)
{
	float s = 0;
	for (int r = 0; r < rounds; r++)
		s += table[(threadIdx.x * 33 + r) & 4095];
	out[TID] = s;
}

// stencil of 27 points, the caches make good what is read again
__global__ void stencil(const float *in, float *out, unsigned n)
{
	unsigned x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1, z = blockIdx.z + 1;
	float s = 0;
	if (x >= n - 1 || y >= n - 1)
		return;
	for (int k = -1; k <= 1; k++)
		for (int j = -1; j <= 1; j++)
			for (int i = -1; i <= 1; i++)
				s += in[((z + k) * n + y + j) * n + x + i];
	out[(z * n + y) * n + x] = s;
}

/* ---- a second list, written when the rules for the first were done; not measured yet ---- */

// how long a point takes to leave, for points in no order
__global__ void mandelbrot(unsigned *out, int most)
{
	unsigned h = TID * 2654435761u;
	float cx = (h >> 16) / 32768.f - 1.5f, cy = (h & 65535) / 32768.f - 1.f, x = 0, y = 0;
	int n = 0;
	for (; n < most && x * x + y * y < 4; n++) {
		float t = x * x - y * y + cx;
		y = 2 * x * y + cy, x = t;
	}
	out[TID] = n;
}

// prices of options: twenty bytes and a hundred instructions each
__global__ void options(const float *price, const float *strike, const float *years, float *call, float *put, unsigned n)
{
	unsigned i = TID;
	if (i >= n)
		return;
	float s = price[i] + 1, k = strike[i] + 1, t = years[i] + 1, v = .3f * sqrtf(t);
	float d1 = (__logf(s / k) + (.02f + .045f) * t) / v, d2 = d1 - v;
	float n1 = .5f * erfcf(-d1 * .70710678f), n2 = .5f * erfcf(-d2 * .70710678f), e = __expf(-.02f * t);
	call[i] = s * n1 - k * e * n2;
	put[i] = k * e * (1 - n2) - s * (1 - n1);
}

// running sums of a block, ten barriers each
__global__ void __launch_bounds__(1024, 2) running_sums(const float *in, float *out, int rounds)
{
	__shared__ float a[2][1024];
	float v = in[TID];
	for (int r = 0; r < rounds; r++) {
		int p = 0;
		a[0][threadIdx.x] = v;
		__syncthreads();
		for (int k = 1; k < 1024; k *= 2, p ^= 1) {
			a[1 - p][threadIdx.x] = a[p][threadIdx.x] + (threadIdx.x >= k ? a[p][threadIdx.x - k] : 0);
			__syncthreads();
		}
		v = a[p][threadIdx.x] * 1e-3f;
		__syncthreads();
	}
	out[TID] = v;
}

// doubles written down the columns of a matrix
__global__ void column_writes(double *out, unsigned rows, unsigned cols)
{
	unsigned row = TID % rows, c = TID / rows;
	out[row * cols + c] = row;
}

// 16 bytes from anywhere
__global__ void gather_wide(const unsigned *at, const float4 *in, float4 *out, unsigned n)
{
	unsigned i = TID;
	if (i < n)
		out[i] = in[at[i] % (N / 4)];
}

// the largest of all: one atomic for each block
__global__ void largest(const float4 *in, int *out, unsigned n)
{
	__shared__ float part[32];
	float m = -1e30f;
	for (unsigned i = TID; i < n; i += STEP) {
		float4 v = in[i];
		m = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
	}
	for (int k = 16; k; k /= 2)
		m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = m;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (unsigned k = 1; k < blockDim.x / 32; k++)
			m = fmaxf(m, part[k]);
		atomicMax(out, __float_as_int(m));
	}
}

// one lock for all blocks
__global__ void one_lock(unsigned *lock, unsigned *value, int rounds)
{
	if (threadIdx.x)
		return;
	for (int r = 0; r < rounds; r++) {
		while (atomicCAS(lock, 0u, 1u))
			continue;
		__threadfence();
		*(volatile unsigned *)value += 1;
		__threadfence();
		atomicExch(lock, 0u);
	}
}

// a block more than fits, and each fills a multiprocessor
__global__ void one_too_many(float *out, int rounds)
{
	extern __shared__ float room[];
	float a = threadIdx.x, b = a + 1;
	room[threadIdx.x] = a;
	for (int r = 0; r < rounds; r++)
		a = fmaf(a, 1.0001f, .5f), b = fmaf(b, 1.0001f, .5f);
	out[TID] = a + b + room[threadIdx.x];
}

// stencil of seven points
__global__ void seven_points(const float *in, float *out, unsigned n)
{
	unsigned x = blockIdx.x * 64 + threadIdx.x + 1, y = blockIdx.y * 4 + threadIdx.y + 1, z = blockIdx.z + 1;
	if (x >= n - 1 || y >= n - 1)
		return;
	const float *p = in + (z * n + y) * n + x;
	out[(z * n + y) * n + x] = p[0] * .4f + (p[1] + p[-1] + p[n] + p[-(int)n] + p[n * n] + p[-(int)(n * n)]) * .1f;
}

// layer norm of rows by a block each
__global__ void __launch_bounds__(256) norm_rows(const float4 *in, float4 *out, unsigned cols)
{
	__shared__ float2 part[8];
	const float4 *row = in + (size_t)blockIdx.x * cols / 4;
	float4 v = row[threadIdx.x];
	float s = v.x + v.y + v.z + v.w, q = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
	for (int k = 16; k; k /= 2)
		s += __shfl_xor_sync(~0u, s, k), q += __shfl_xor_sync(~0u, q, k);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = make_float2(s, q);
	__syncthreads();
	s = q = 0;
	for (int k = 0; k < 8; k++)
		s += part[k].x, q += part[k].y;
	float mean = s / cols, scale = rsqrtf(q / cols - mean * mean + 1e-5f);
	out[(size_t)blockIdx.x * cols / 4 + threadIdx.x] =
		make_float4((v.x - mean) * scale, (v.y - mean) * scale, (v.z - mean) * scale, (v.w - mean) * scale);
}

// rows of 512 bytes from anywhere, a warp each
__global__ void rows_of_table(const unsigned *at, const float4 *in, float4 *out, unsigned n)
{
	unsigned row = TID / 32, lane = threadIdx.x % 32;
	if (row < n)
		out[row * 32 + lane] = in[at[row] % (N / 128) * 32 + lane];
}

// additions of doubles by compare and swap, on few addresses
__global__ void cas_adds(unsigned long long *to, int rounds)
{
	for (int r = 0; r < rounds; r++) {
		unsigned long long *p = to + (threadIdx.x + r) % 64, old = *p, seen;
		do {
			seen = old;
			old = atomicCAS(p, seen, __double_as_longlong(__longlong_as_double(seen) + 1));
		} while (old != seen);
	}
}

// floats added to 4096 places
__global__ void many_adds(const unsigned *at, float *to, unsigned n)
{
	for (unsigned i = TID; i < n; i += STEP)
		atomicAdd(to + (at[i] & 4095), 1.5f);
}

/* ---- launching ---- */

static float *in, *out, *host;
static unsigned *at, *words;

static void run_mma(void) { mma_bf16<<<SMS * 2, 512>>>(out, 4000); }
static void run_tf32(void) { mma_tf32<<<SMS * 2, 512>>>(out, 4000); }
static void run_bodies(void) { bodies<<<SMS * 4, 256>>>((float4 *)in, (float4 *)out, SMS * 4 * 256); }
static void run_fp64(void) { fma_fp64<<<SMS * 16, 256>>>((double *)out, 1000); }
static void run_half(void) { fma_half2<<<SMS * 8, 512>>>((unsigned *)out, 4000); }
static void run_sfu(void) { waves_sfu<<<SMS * 8, 256>>>(out, 2000); }
static void run_xor(void) { xorshift<<<SMS * 8, 512>>>((unsigned *)out, 2000); }
static void run_congruence(void) { congruence<<<SMS * 8, 512>>>((unsigned *)out, 4000); }
static void run_divide(void) { divide_64<<<SMS * 8, 512>>>((unsigned long long *)out, 1000003, 200); }
static void run_fill(void) { fill<<<SMS * 16, 256>>>((float4 *)out, N / 4); }
static void run_sum(void) { sum_all<<<SMS * 8, 256>>>((float4 *)in, out, N / 4); }
static void run_saxpy(void) { saxpy<<<N / 256, 256>>>(in, out, 2, N); }
static void run_l2(void) { read_l2<<<SMS * 8, 256>>>((float4 *)in, out, 1u << 19, 20); }
static void run_l1(void) { read_l1<<<SMS * 4, 256>>>((float4 *)in, out, 500); }
static void run_shared(void) { read_shared<<<SMS * 8, 256>>>(out, 1000); }
static void run_host(void) { read_host<<<SMS * 8, 256>>>((float4 *)host, out, 1u << 21); }
static void run_naive_t(void) { transpose_naive<<<dim3(256, 256), dim3(32, 8)>>>(in, out, 8192); }
static void run_tile_t(void) { transpose_tile<<<dim3(256, 256), dim3(32, 8)>>>(in, out, 8192); }
static void run_padded_t(void) { transpose_padded<<<dim3(256, 256), dim3(32, 8)>>>(in, out, 8192); }
static void run_gather(void) { gather<<<N / 4 / 256, 256>>>(at, in, out, N / 4); }
static void run_scatter(void) { scatter<<<N / 4 / 256, 256>>>(at, in, out, N / 4); }
static void run_field(void) { one_field<<<N / 12 / 256, 256>>>((struct particle *)in, out, N / 12); }
static void run_second(void) { every_second<<<N / 2 / 256, 256>>>(in, out, N / 2); }
static void run_bins(void) { few_bins<<<SMS * 4, 256>>>(at, words, N / 16); }
static void run_shared_bins(void) { shared_bins<<<SMS * 4, 256>>>(at, words, N / 16, 8); }
static void run_adds(void) { shared_adds<<<SMS * 4, 256>>>(at, words, N / 16, 8); }
static void run_wide_adds(void) { wide_adds<<<N / 16 / 256, 256>>>(at, (unsigned *)out, N / 16); }
static void run_csr(void) { csr_rows<<<2048, 256>>>(at, in, in, out, 1u << 19, 32); }
static void run_columns(void) { sum_columns<<<32, 256>>>(in, out, 2048, 8192); }
static void run_four(void) { four_ways<<<SMS * 8, 256>>>(out, 500); }
static void run_turns(void) { take_turns<<<SMS * 4, 512>>>(out, 500); }
static void run_tiny(void) { tiny_blocks<<<N / 64, 32>>>(out); }
static void run_chase_many(void) { chase_many<<<SMS * 8, 256>>>(at, (unsigned *)out, 100); }
static void run_array(void) { own_array<<<SMS * 8, 256>>>(in, out, 1000); }
static void run_spilled(void) { spilled<<<SMS * 2, 1024>>>(in, out, 200); }
static void run_registers(void) { many_registers<<<SMS * 2, 128>>>(in, out, N / 4); }
static void run_few_warps(void) { few_warps<<<SMS * 8, 32, 27 * 1024>>>(in, out, N / 16); }
static void run_chain(void) { chain_fma<<<SMS, 128>>>(out, 20000); }
static void run_chase(void) { chase_shared<<<SMS, 256>>>((unsigned *)out, 10000); }
static void run_wave(void) { second_wave<<<SMS * 2 + 4, 1024>>>(out, 20000); }
static void run_uneven(void) { uneven_blocks<<<SMS * 4, 256>>>(out, 4000); }
static void run_short(void) { short_one<<<16, 128>>>(out); }
static void run_few_blocks(void) { few_blocks<<<20, 512>>>(in, out, 2, N / 16); }
static void run_sums(void) { block_sums<<<SMS * 2, 1024>>>(out, 500); }
static void run_fences(void) { fences<<<SMS * 2, 256>>>(out, 100); }
static void run_steps(void) { own_steps<<<SMS * 16, 256>>>(out, 4000); }
static void run_even(void) { even_odd<<<SMS * 16, 256>>>(out, 4000); }
static void run_half_warps(void) { half_warps<<<SMS * 128, 16>>>(out, 4000); }
static void run_small_copy(void) { small_copy<<<SMS * 32, 8>>>(in, out, N / 16); }
static void run_softmax(void) { softmax_rows<<<N / 4096, 256>>>((float4 *)in, (float4 *)out, 4096); }
static void run_norm(void) { norm_by_thread<<<256, 256>>>(in, out, 65536, 1024); }
static void run_naive_p(void) { product_naive<<<dim3(64, 64), dim3(32, 32)>>>(in, in + (1u << 22), out, 2048); }
static void run_tile_p(void) { product_tile<<<dim3(64, 64), dim3(32, 32)>>>(in, in + (1u << 22), out, 2048); }
static void run_good_p(void) { product_good<<<dim3(32, 32), 256>>>(in, in + (1u << 24), out, 4096); }
static void run_code(void) { long_code<<<SMS * 2, 128>>>(out, 10); }
static void run_constant(void) { own_constant<<<SMS * 4, 256>>>(out, 500); }
static void run_stencil(void) { stencil<<<dim3(13, 50, 398), dim3(32, 8)>>>(in, out, 400); }

static void run_mandelbrot(void) { mandelbrot<<<SMS * 64, 256>>>((unsigned *)out, 2000); }
static void run_options(void) { options<<<N / 4 / 256, 256>>>(in, in + N / 4, in + N / 2, out, out + N / 4, N / 4); }
static void run_running(void) { running_sums<<<SMS * 2, 1024>>>(in, out, 200); }
static void run_column_writes(void) { column_writes<<<N / 2 / 256, 256>>>((double *)out, 4096, N / 2 / 4096); }
static void run_gather_wide(void) { gather_wide<<<N / 16 / 256, 256>>>(at, (float4 *)in, (float4 *)out, N / 16); }
static void run_largest(void) { largest<<<SMS * 8, 256>>>((float4 *)in, (int *)words, N / 4); }
static void run_lock(void) { one_lock<<<SMS, 32>>>(words + 512, words + 513, 20); }
static void run_too_many(void) { one_too_many<<<SMS + 1, 512, 150 * 1024>>>(out, 20000); }
static void run_seven(void) { seven_points<<<dim3(7, 100, 398), dim3(64, 4)>>>(in, out, 400); }
static void run_norm_rows(void) { norm_rows<<<N / 1024, 256>>>((float4 *)in, (float4 *)out, 1024); }
static void run_table(void) { rows_of_table<<<N / 256 / 8, 256>>>(at, (float4 *)in, (float4 *)out, N / 256); }
static void run_cas(void) { cas_adds<<<SMS, 64>>>((unsigned long long *)words, 20); }
static void run_many_adds(void) { many_adds<<<SMS * 8, 256>>>(at, out, N / 8); }

static const struct workload {
	const char *name, *label;
	void (*launch)(void);
} workloads[] = {
	{ "mma_bf16", "tensor-bound", run_mma },
	{ "mma_tf32", "tensor-bound", run_tf32 },
	{ "bodies", "fp32-bound|issue-bound", run_bodies },
	{ "fma_fp64", "fp64-bound", run_fp64 },
	{ "fma_half2", "fp16-bound", run_half },
	{ "waves_sfu", "sfu-bound", run_sfu },
	{ "xorshift", "alu-bound|issue-bound", run_xor },
	{ "congruence", "integer-bound", run_congruence },
	{ "divide_64", "integer-bound|alu-bound|issue-bound", run_divide },
	{ "fill", "memory-bound:DRAM", run_fill },
	{ "sum_all", "memory-bound:DRAM", run_sum },
	{ "saxpy", "memory-bound:DRAM", run_saxpy },
	{ "read_l2", "memory-bound:L2 cache", run_l2 },
	{ "read_l1", "memory-bound:L1 cache and shared memory", run_l1 },
	{ "read_shared", "memory-bound:shared memory|memory-bound:L1 cache and shared memory", run_shared },
	{ "read_host", "memory-bound:the host's memory", run_host },
	{ "transpose_naive", "uncoalesced", run_naive_t },
	{ "transpose_tile", "bank-conflict", run_tile_t },
	{ "transpose_padded", "memory-bound:DRAM", run_padded_t },
	{ "gather", "uncoalesced", run_gather },
	{ "scatter", "uncoalesced", run_scatter },
	{ "one_field", "uncoalesced", run_field },
	{ "every_second", "uncoalesced", run_second },
	{ "few_bins", "atomics", run_bins },
	{ "csr_rows", "uncoalesced", run_csr },
	{ "sum_columns", "small-grid", run_columns },
	{ "four_ways", "bank-conflict", run_four },
	{ "shared_bins", "issue-bound", run_shared_bins },
	{ "shared_adds", "atomics", run_adds },
	{ "wide_adds", "atomics|uncoalesced", run_wide_adds },
	{ "own_array", "spill", run_array },
	{ "spilled", "spill", run_spilled },
	{ "many_registers", "low-occupancy:registers", run_registers },
	{ "few_warps", "low-occupancy:shared memory", run_few_warps },
	{ "chain_fma", "latency-bound:Wait", run_chain },
	{ "chase_shared", "latency-bound:Short scoreboard", run_chase },
	{ "second_wave", "tail", run_wave },
	{ "uneven_blocks", "tail", run_uneven },
	{ "short_one", "launch-overhead", run_short },
	{ "few_blocks", "small-grid", run_few_blocks },
	{ "block_sums", "memory-bound:L1 cache and shared memory|barrier", run_sums },
	{ "take_turns", "barrier", run_turns },
	{ "tiny_blocks", "low-occupancy:blocks|latency-bound|launch-overhead", run_tiny },
	{ "chase_many", "uncoalesced|memory-bound:DRAM", run_chase_many },
	{ "fences", "latency-bound:Memory barrier", run_fences },
	{ "own_steps", "divergence", run_steps },
	{ "even_odd", "divergence", run_even },
	{ "half_warps", "divergence", run_half_warps },
	{ "small_copy", "low-occupancy:blocks|divergence", run_small_copy },
	{ "softmax_rows", "memory-bound:DRAM", run_softmax },
	{ "norm_by_thread", "uncoalesced", run_norm },
	{ "product_naive", "memory-bound:L1 cache and shared memory|lsu-bound", run_naive_p },
	{ "product_tile", "memory-bound:shared memory|memory-bound:L1 cache and shared memory|lsu-bound", run_tile_p },
	{ "product_good", "fp32-bound", run_good_p },
	{ "long_code", "latency-bound:No instruction", run_code },
	{ "own_constant", "latency-bound|adu-bound|lsu-bound", run_constant },
	{ "stencil", "memory-bound:L1 cache and shared memory|lsu-bound", run_stencil },
	{ "mandelbrot", "divergence", run_mandelbrot },
	{ "options", "memory-bound:DRAM|issue-bound", run_options },
	{ "running_sums", "barrier|memory-bound:L1 cache and shared memory", run_running },
	{ "column_writes", "uncoalesced", run_column_writes },
	{ "gather_wide", "uncoalesced|memory-bound:DRAM", run_gather_wide },
	{ "largest", "memory-bound:DRAM", run_largest },
	{ "one_lock", "atomics|latency-bound", run_lock },
	{ "one_too_many", "tail", run_too_many },
	{ "seven_points", "memory-bound:DRAM|memory-bound:L2 cache", run_seven },
	{ "norm_rows", "memory-bound:DRAM", run_norm_rows },
	{ "rows_of_table", "memory-bound:DRAM|memory-bound:L2 cache", run_table },
	{ "cas_adds", "atomics", run_cas },
	{ "many_adds", "atomics", run_many_adds },
};

int main(int argc, char **argv)
{
	size_t count = sizeof workloads / sizeof *workloads, n_found = 0;
	if (argc < 2 || !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < count; i++)
			printf("%-18s %s\n", workloads[i].name, workloads[i].label);
		return 0;
	}
	CHECK(cudaMalloc(&in, N * 4ul));
	CHECK(cudaMalloc(&out, N * 4ul));
	CHECK(cudaMalloc(&at, N / 4 * 4ul));
	CHECK(cudaMalloc(&words, 4096));
	CHECK(cudaMemset(in, 0, N * 4ul));
	CHECK(cudaMemset(out, 0, N * 4ul));
	CHECK(cudaMemset(words, 0, 4096));
	CHECK(cudaMallocHost(&host, 1u << 25));
	unsigned *numbers = (unsigned *)malloc(N / 4 * 4ul), x = 1;
	for (unsigned k = 0; k < N / 4; k++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		numbers[k] = x % N;
	}
	CHECK(cudaMemcpy(at, numbers, N / 4 * 4ul, cudaMemcpyHostToDevice));
	free(numbers);
	CHECK(cudaFuncSetAttribute(one_too_many, cudaFuncAttributeMaxDynamicSharedMemorySize, 150 * 1024));
	int rounds = argc > 2 ? atoi(argv[2]) : 2;
	for (int r = 0; r < rounds; r++)
		for (size_t i = 0; i < count; i++) {
			if (strcmp(argv[1], "all") && strcmp(argv[1], workloads[i].name))
				continue;
			workloads[i].launch();
			CHECK(cudaGetLastError());
			CHECK(cudaDeviceSynchronize());
			n_found++;
		}
	if (!n_found) {
		fprintf(stderr, "no kernel named %s; see --list\n", argv[1]);
		return 2;
	}
	printf("RESULT launches=%zu\n", n_found);
	return 0;
}
