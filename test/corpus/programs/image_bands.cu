// Multi-band image filter pipeline over a stream of large pictures.
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

const int W = 8192, H = 4096;
const size_t PIXELS = (size_t)W * H;
const int BANDS = 8;

__global__ void blur_row(const float* in, float* out, int radius) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float s = 0;
    for (int d = -radius; d <= radius; ++d) s += in[(size_t)y * W + min(max(x + d, 0), W - 1)];
    out[(size_t)y * W + x] = s / (2 * radius + 1);
}

__global__ void blur_col(const float* in, float* out, int radius) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float s = 0;
    for (int d = -radius; d <= radius; ++d) s += in[(size_t)min(max(y + d, 0), H - 1) * W + x];
    out[(size_t)y * W + x] = s / (2 * radius + 1);
}

__global__ void accumulate(const float* img, const float* low, float* out, float gain) {
    size_t i = (size_t)blockIdx.y * W + blockIdx.x * blockDim.x + threadIdx.x;
    out[i] += gain * (img[i] - low[i]);
}

__global__ void picture(float* img, int k) {
    size_t i = (size_t)blockIdx.y * W + blockIdx.x * blockDim.x + threadIdx.x;
    img[i] = __sinf((i % 977) * 0.02f * (k + 1)) + 0.1f * ((i * 2654435761u) >> 24 & 255) / 255.f;
}

int main(int argc, char** argv) {
    int steps = 100;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    const size_t work_bytes = 4 * PIXELS * sizeof(float);
    float *img[3], *out;
    for (auto& p : img) CHECK(cudaMalloc(&p, PIXELS * sizeof(float)));
    CHECK(cudaMalloc(&out, PIXELS * sizeof(float)));
    dim3 block(256), grid(W / 256, H);
    for (int k = 0; k < 3; ++k) picture<<<grid, block>>>(img[k], k);

    float *row = nullptr, *low = nullptr;
    if (fixed) {
        CHECK(cudaMalloc(&row, work_bytes));
        CHECK(cudaMalloc(&low, work_bytes));
    }
    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        const float* cur = img[s % 3];
        CHECK(cudaMemsetAsync(out, 0, PIXELS * sizeof(float)));
        for (int b = 0; b < BANDS; ++b) {
            if (!fixed) {
                CHECK(cudaMalloc(&row, work_bytes));
                CHECK(cudaMalloc(&low, work_bytes));
            }
            blur_row<<<grid, block>>>(cur, row, 1 + b);
            blur_col<<<grid, block>>>(row, low, 1 + b);
            accumulate<<<grid, block>>>(cur, low, out, 1.f / (1 + b));
            if (!fixed) {
                CHECK(cudaFree(row));
                CHECK(cudaFree(low));
            }
        }
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    float v;
    CHECK(cudaMemcpy(&v, out + PIXELS / 2, 4, cudaMemcpyDeviceToHost));
    printf("value %f\n", v);
    printf("round_ms %.4f\n", ms);
    return 0;
}
