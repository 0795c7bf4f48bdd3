// Motion energy over batches of 4K camera frames.
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

const int W = 3840, H = 2160, FRAMES = 8;
const size_t PIXELS = (size_t)W * H * FRAMES;
const size_t BYTES = PIXELS * sizeof(uchar4);
const int RING = 3;

__global__ void luma(const uchar4* in, float* out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= PIXELS) return;
    uchar4 p = in[i];
    out[i] = 0.299f * p.x + 0.587f * p.y + 0.114f * p.z;
}

__global__ void motion(const float* y, float* energy) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (x >= W) return;
    float total = 0;
    for (int f = 1; f < FRAMES; ++f) {
        const float* cur = y + (size_t)f * W * H;
        const float* old = cur - (size_t)W * H;
        float c = cur[(size_t)r * W + x], best = 1e30f;
        for (int dy = -3; dy <= 3; ++dy)
            for (int dx = -3; dx <= 3; ++dx) {
                int xx = min(max(x + dx, 0), W - 1), yy = min(max(r + dy, 0), H - 1);
                float d = c - old[(size_t)yy * W + xx];
                best = fminf(best, d * d);
            }
        total += best;
    }
    energy[(size_t)r * W + x] += total;
}

int main(int argc, char** argv) {
    int steps = 70;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    uchar4* frames[RING];
    for (int k = 0; k < RING; ++k) {
        if (fixed) CHECK(cudaMallocHost(&frames[k], BYTES));
        else frames[k] = (uchar4*)malloc(BYTES);
        uint32_t* w = (uint32_t*)frames[k];
        for (size_t i = 0; i < PIXELS; ++i) w[i] = (uint32_t)((i + k * 7919) * 2654435761u);
    }
    uchar4* in;
    float *y, *energy;
    CHECK(cudaMalloc(&in, BYTES));
    CHECK(cudaMalloc(&y, PIXELS * sizeof(float)));
    CHECK(cudaMalloc(&energy, (size_t)W * H * sizeof(float)));
    CHECK(cudaMemset(energy, 0, (size_t)W * H * sizeof(float)));
    dim3 grid((W + 127) / 128, H);

    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        if (fixed) CHECK(cudaMemcpyAsync(in, frames[s % RING], BYTES, cudaMemcpyHostToDevice));
        else CHECK(cudaMemcpy(in, frames[s % RING], BYTES, cudaMemcpyHostToDevice));
        luma<<<(unsigned)((PIXELS + 255) / 256), 256>>>(in, y);
        motion<<<grid, 128>>>(y, energy);
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    float e;
    CHECK(cudaMemcpy(&e, energy + 12345, 4, cudaMemcpyDeviceToHost));
    printf("energy %f\n", e);
    printf("round_ms %.4f\n", ms);
    return 0;
}
