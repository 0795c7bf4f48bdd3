// Acoustic wave field driven by a set of moving emitters.
#include <atomic>
#include <mutex>
#include <thread>
#include <unistd.h>
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

const int NX = 4096, NY = 4096;
const int EMITTERS = 64;

struct Emitters {
    float x[EMITTERS], y[EMITTERS], amp[EMITTERS];
};

__global__ void inject(float* u, Emitters e, float phase) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= NX || y >= NY) return;
    float s = 0;
    for (int k = 0; k < EMITTERS; ++k) {
        float dx = x - e.x[k], dy = y - e.y[k];
        s += e.amp[k] * __expf(-(dx * dx + dy * dy) * 0.01f) * __sinf(phase + k);
    }
    u[y * NX + x] += s;
}

__global__ void wave(const float* u, const float* prev, float* next) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= NX - 1 || y >= NY - 1) return;
    int i = y * NX + x;
    float lap = u[i - 1] + u[i + 1] + u[i - NX] + u[i + NX] - 4.f * u[i];
    next[i] = 0.999f * (2.f * u[i] - prev[i] + 0.2f * lap);
}

struct Tracker {
    std::mutex m;
    Emitters current;
    std::atomic<bool> stop{false};
    bool fixed;

    static void solve(Emitters* e, int tick) {
        for (int k = 0; k < EMITTERS; ++k) {
            double a = 0.01 * tick + k, x = 0, y = 0;
            for (int it = 0; it < 6000; ++it) {
                x += cos(a + it * 1e-3) * 0.16;
                y += sin(a * 1.3 + it * 1e-3) * 0.16;
            }
            e->x[k] = 2048.f + (float)x;
            e->y[k] = 2048.f + (float)y;
            e->amp[k] = 0.01f;
        }
    }

    void loop() {
        Emitters mine;
        for (int tick = 1; !stop; ++tick) {
            if (fixed) {
                solve(&mine, tick);
                std::lock_guard<std::mutex> g(m);
                current = mine;
            } else {
                std::lock_guard<std::mutex> g(m);
                solve(&current, tick);
            }
            usleep(100);
        }
    }
};

int main(int argc, char** argv) {
    int steps = 150;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    size_t bytes = (size_t)NX * NY * sizeof(float);
    float *a, *b, *c;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&c, bytes));
    CHECK(cudaMemset(a, 0, bytes));
    CHECK(cudaMemset(b, 0, bytes));
    CHECK(cudaMemset(c, 0, bytes));

    Tracker tracker;
    tracker.fixed = fixed;
    Tracker::solve(&tracker.current, 0);
    std::thread worker(&Tracker::loop, &tracker);

    dim3 block(32, 8), grid(NX / 32, NY / 8);
    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        Emitters e;
        {
            std::lock_guard<std::mutex> g(tracker.m);
            e = tracker.current;
        }
        inject<<<grid, block>>>(b, e, 0.1f * s);
        for (int k = 0; k < 20; ++k) {
            wave<<<grid, block>>>(b, a, c);
            float* t = a; a = b; b = c; c = t;
        }
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    tracker.stop = true;
    worker.join();
    float probe;
    CHECK(cudaMemcpy(&probe, b + 2048 * NX + 2048, 4, cudaMemcpyDeviceToHost));
    printf("probe %g\n", probe);
    printf("round_ms %.4f\n", ms);
    return 0;
}
