// Direct-sum gravitational n-body integration of a star cluster.
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

const int N = 131072;
const int TILE = 256;

__global__ void accelerate(const float4* p, float4* v, float dt) {
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float4 a = p[i];
    float fx = 0, fy = 0, fz = 0;
    for (int base = 0; base < N; base += TILE) {
        tile[threadIdx.x] = p[base + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < TILE; ++k) {
            float4 b = tile[k];
            float dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
            float r2 = dx * dx + dy * dy + dz * dz + 1e-3f;
            float inv = rsqrtf(r2);
            float w = b.w * inv * inv * inv;
            fx += w * dx; fy += w * dy; fz += w * dz;
        }
        __syncthreads();
    }
    float4 u = v[i];
    u.x += fx * dt; u.y += fy * dt; u.z += fz * dt;
    v[i] = u;
}

__global__ void drift(float4* p, const float4* v, float dt) {
    int i = blockIdx.x * TILE + threadIdx.x;
    float4 a = p[i], u = v[i];
    a.x += u.x * dt; a.y += u.y * dt; a.z += u.z * dt;
    p[i] = a;
}

int main(int argc, char** argv) {
    int steps = 200;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    srand(3);
    std::vector<float4> h(N);
    for (auto& q : h)
        q = make_float4(rand() / (float)RAND_MAX - .5f, rand() / (float)RAND_MAX - .5f,
                        rand() / (float)RAND_MAX - .5f, 1.f / N);
    float4 *p, *v;
    CHECK(cudaMalloc(&p, N * sizeof(float4)));
    CHECK(cudaMalloc(&v, N * sizeof(float4)));
    CHECK(cudaMemcpy(p, h.data(), N * sizeof(float4), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(v, 0, N * sizeof(float4)));

    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        accelerate<<<N / TILE, TILE>>>(p, v, 1e-3f);
        drift<<<N / TILE, TILE>>>(p, v, 1e-3f);
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    CHECK(cudaMemcpy(h.data(), p, N * sizeof(float4), cudaMemcpyDeviceToHost));
    printf("x0 %f\n", h[0].x);
    printf("round_ms %.4f\n", ms);
    return 0;
}
