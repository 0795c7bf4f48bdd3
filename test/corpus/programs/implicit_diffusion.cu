// Implicit diffusion steps on a 2D grid, each solved with conjugate gradients.
#include <cuda_runtime.h>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(x)                                                              \
    do {                                                                      \
        cudaError_t e_ = (x);                                                 \
        if (e_ != cudaSuccess) {                                              \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,                 \
                    cudaGetErrorString(e_));                                  \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static double now_ms() {
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

static void parse_args(int argc, char** argv, int* steps, bool* fixed) {
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--fixed")) *fixed = true;
        else if (!strcmp(argv[i], "--steps") && i + 1 < argc) *steps = atoi(argv[++i]);
    }
    if (*steps < 4) *steps = 4;
}

const int NX = 512, NY = 512, N = NX * NY;
const int INNER = 30;
const int BLOCKS = 132;

// scal: 0 = r.r, 1 = p.Ap, 2 = new r.r
__device__ float block_sum(float s) {
    __shared__ float part[32];
    for (int k = 16; k > 0; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
    __syncthreads();
    s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.f;
    if (threadIdx.x < 32)
        for (int k = 16; k > 0; k >>= 1) s += __shfl_down_sync(~0u, s, k);
    return s;
}

__global__ void start(const float* b, float* x, float* r, float* p, float* scal) {
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
        x[i] = 0;
        r[i] = p[i] = b[i];
        s += b[i] * b[i];
    }
    s = block_sum(s);
    if (threadIdx.x == 0) atomicAdd(&scal[0], s);
}

__global__ void apply(const float* p, float* ap, float* scal) {
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
        int x = i % NX, y = i / NX;
        float v = 5.f * p[i];
        if (x > 0) v -= p[i - 1];
        if (x < NX - 1) v -= p[i + 1];
        if (y > 0) v -= p[i - NX];
        if (y < NY - 1) v -= p[i + NX];
        ap[i] = v;
        s += v * p[i];
    }
    s = block_sum(s);
    if (threadIdx.x == 0) atomicAdd(&scal[1], s);
}

__global__ void update(float* x, float* r, const float* p, const float* ap, float* scal,
                       float alpha, bool on_device) {
    if (on_device) alpha = scal[0] / (scal[1] + 1e-30f);
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
        x[i] += alpha * p[i];
        float q = r[i] - alpha * ap[i];
        r[i] = q;
        s += q * q;
    }
    s = block_sum(s);
    if (threadIdx.x == 0) atomicAdd(&scal[2], s);
}

__global__ void direction(float* p, const float* r, const float* scal, float beta, bool on_device) {
    if (on_device) beta = scal[2] / (scal[0] + 1e-30f);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        p[i] = r[i] + beta * p[i];
}

__global__ void shift(float* scal) {
    scal[0] = scal[2];
    scal[1] = scal[2] = 0;
}

__global__ void init(float* b) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        b[i] = 1.f + __sinf(i * 0.01f);
}

int main(int argc, char** argv) {
    int steps = 120;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));

    float *b, *x, *r, *p, *ap, *scal;
    for (float** q : {&b, &x, &r, &p, &ap}) CHECK(cudaMalloc(q, N * sizeof(float)));
    CHECK(cudaMalloc(&scal, 4 * sizeof(float)));
    init<<<BLOCKS, 512>>>(b);

    double t0 = 0;
    float residual = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        CHECK(cudaMemsetAsync(scal, 0, 4 * sizeof(float)));
        start<<<BLOCKS, 512>>>(b, x, r, p, scal);
        float rr = 0;
        if (!fixed) CHECK(cudaMemcpy(&rr, scal, 4, cudaMemcpyDeviceToHost));
        for (int k = 0; k < INNER; ++k) {
            float pap = 0, rr_new = 0;
            apply<<<BLOCKS, 512>>>(p, ap, scal);
            if (!fixed) CHECK(cudaMemcpy(&pap, scal + 1, 4, cudaMemcpyDeviceToHost));
            update<<<BLOCKS, 512>>>(x, r, p, ap, scal, rr / (pap + 1e-30f), fixed);
            if (!fixed) {
                CHECK(cudaMemcpy(&rr_new, scal + 2, 4, cudaMemcpyDeviceToHost));
                if (sqrtf(rr_new) < 1e-12f) break;
            }
            direction<<<BLOCKS, 512>>>(p, r, scal, rr_new / (rr + 1e-30f), fixed);
            shift<<<1, 1>>>(scal);
            rr = rr_new;
        }
        if (fixed && s % 20 == 19) CHECK(cudaMemcpy(&rr, scal, 4, cudaMemcpyDeviceToHost));
        residual = sqrtf(rr);
        float* t = b; b = x; x = t;
        if (s % 20 == 19) init<<<BLOCKS, 512>>>(b);
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    printf("residual %g\n", residual);
    printf("round_ms %.4f\n", ms);
    return 0;
}
