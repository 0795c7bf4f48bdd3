// Heat conduction in a plate whose edges follow a time-dependent temperature.
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

const int NX = 1024, NY = 2048;
const int SWEEPS = 40;

__global__ void sweep(const float* u, float* v) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= NX || y >= NY) return;
    int i = y * NX + x;
    if (x == 0 || y == 0 || x == NX - 1 || y == NY - 1) {
        v[i] = u[i];
        return;
    }
    float k = 0.2f + 0.02f * __sinf(x * 0.01f) * __cosf(y * 0.01f);
    v[i] = u[i] + k * (u[i - 1] + u[i + 1] + u[i - NX] + u[i + NX] - 4.f * u[i]);
}

__host__ __device__ inline float edge(int y, int step, int side) {
    return 50.f + 40.f * sinf(0.05f * step + 0.003f * y + side);
}

__global__ void edges(float* u, int step) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= NY) return;
    u[y * NX] = edge(y, step, 0);
    u[y * NX + NX - 1] = edge(y, step, 1);
}

int main(int argc, char** argv) {
    int steps = 300;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    size_t bytes = (size_t)NX * NY * sizeof(float);
    float *u, *v;
    if (fixed) {
        CHECK(cudaMalloc(&u, bytes));
        CHECK(cudaMalloc(&v, bytes));
    } else {
        CHECK(cudaMallocManaged(&u, bytes));
        CHECK(cudaMallocManaged(&v, bytes));
    }
    CHECK(cudaMemset(u, 0, bytes));
    CHECK(cudaMemset(v, 0, bytes));

    dim3 block(32, 8), grid(NX / 32, NY / 8);
    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        if (fixed) {
            edges<<<(NY + 255) / 256, 256>>>(u, s);
        } else {
            CHECK(cudaDeviceSynchronize());
            for (int y = 0; y < NY; ++y) {
                u[y * NX] = edge(y, s, 0);
                u[y * NX + NX - 1] = edge(y, s, 1);
            }
        }
        for (int k = 0; k < SWEEPS; ++k) {
            sweep<<<grid, block>>>(u, v);
            float* t = u; u = v; v = t;
        }
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    float mid;
    CHECK(cudaMemcpy(&mid, u + (NY / 2) * NX + 8, 4, cudaMemcpyDeviceToHost));
    printf("mid %f\n", mid);
    printf("round_ms %.4f\n", ms);
    return 0;
}
