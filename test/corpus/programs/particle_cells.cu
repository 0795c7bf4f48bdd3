// Particle simulation with cell ordering before the short-range force pass.
#include <algorithm>
#include <cub/cub.cuh>
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

const int N = 400000;
const int GRID = 128;

__global__ void move(float4* p, float4* v, uint32_t* key, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 a = p[i], b = v[i];
    a.x += b.x * dt; a.y += b.y * dt; a.z += b.z * dt;
    a.x -= floorf(a.x); a.y -= floorf(a.y); a.z -= floorf(a.z);
    p[i] = a;
    int cx = min((int)(a.x * GRID), GRID - 1);
    int cy = min((int)(a.y * GRID), GRID - 1);
    int cz = min((int)(a.z * GRID), GRID - 1);
    key[i] = (cz * GRID + cy) * GRID + cx;
}

__global__ void iota(uint32_t* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = i;
}

__global__ void force(const float4* p, float4* v, const uint32_t* order, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t me = order[i];
    float4 a = p[me];
    float fx = 0, fy = 0, fz = 0;
    for (int d = -384; d <= 384; ++d) {
        int j = i + d;
        if (j < 0 || j >= n || d == 0) continue;
        float4 b = p[order[j]];
        float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
        float r2 = dx * dx + dy * dy + dz * dz + 1e-4f;
        float w = r2 < 0.01f ? 1e-5f * rsqrtf(r2) : 0.f;
        fx += w * dx; fy += w * dy; fz += w * dz;
    }
    float4 b = v[me];
    b.x += fx * dt; b.y += fy * dt; b.z += fz * dt;
    v[me] = b;
}

int main(int argc, char** argv) {
    int steps = 60;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    srand(7);
    std::vector<float4> hp(N), hv(N);
    for (int i = 0; i < N; ++i) {
        hp[i] = make_float4(rand() / (float)RAND_MAX, rand() / (float)RAND_MAX,
                            rand() / (float)RAND_MAX, 1.f);
        hv[i] = make_float4(rand() / (float)RAND_MAX - .5f, rand() / (float)RAND_MAX - .5f,
                            rand() / (float)RAND_MAX - .5f, 0.f);
    }
    float4 *p, *v;
    uint32_t *key, *key2, *index, *order, *hkey, *horder;
    CHECK(cudaMalloc(&p, N * sizeof(float4)));
    CHECK(cudaMalloc(&v, N * sizeof(float4)));
    CHECK(cudaMalloc(&key, N * 4));
    CHECK(cudaMalloc(&key2, N * 4));
    CHECK(cudaMalloc(&index, N * 4));
    CHECK(cudaMalloc(&order, N * 4));
    CHECK(cudaMallocHost(&hkey, N * 4));
    CHECK(cudaMallocHost(&horder, N * 4));
    CHECK(cudaMemcpy(p, hp.data(), N * sizeof(float4), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(v, hv.data(), N * sizeof(float4), cudaMemcpyHostToDevice));
    int blocks = (N + 255) / 256;
    iota<<<blocks, 256>>>(index, N);
    size_t temp_bytes = 0;
    cub::DeviceRadixSort::SortPairs(nullptr, temp_bytes, key, key2, index, order, N, 0, 21);
    void* temp;
    CHECK(cudaMalloc(&temp, temp_bytes));
    std::vector<std::pair<uint32_t, uint32_t>> cells(N);

    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        move<<<blocks, 256>>>(p, v, key, N, 1e-3f);
        if (fixed) {
            cub::DeviceRadixSort::SortPairs(temp, temp_bytes, key, key2, index, order, N, 0, 21);
        } else {
            CHECK(cudaMemcpy(hkey, key, N * 4, cudaMemcpyDeviceToHost));
            for (int i = 0; i < N; ++i) cells[i] = {hkey[i], (uint32_t)i};
            std::sort(cells.begin(), cells.end());
            for (int i = 0; i < N; ++i) horder[i] = cells[i].second;
            CHECK(cudaMemcpy(order, horder, N * 4, cudaMemcpyHostToDevice));
        }
        force<<<blocks, 256>>>(p, v, order, N, 1e-3f);
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    CHECK(cudaMemcpy(hp.data(), p, N * sizeof(float4), cudaMemcpyDeviceToHost));
    printf("x0 %f\n", hp[0].x);
    printf("round_ms %.4f\n", ms);
    return 0;
}
