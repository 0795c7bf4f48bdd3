// Reaction network on many small compartments.
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

const int SPECIES = 48;
const int CELLS = 4096;
const int SUBSTEPS = 3;

__global__ void react(float* c, int a, int b, int out, float rate) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= CELLS) return;
    float f = rate * c[a * CELLS + i] * c[b * CELLS + i];
    c[a * CELLS + i] -= f;
    c[b * CELLS + i] -= f;
    c[out * CELLS + i] += f;
}

__global__ void seed(float* c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < SPECIES * CELLS) c[i] = 1.f + 0.5f * __sinf(0.37f * i);
}

struct Reaction { int a, b, out; float rate; };

static void advance(float* c, const std::vector<Reaction>& net, cudaStream_t st) {
    for (const Reaction& r : net) {
        int min_grid = 0, threads = 0;
        CHECK(cudaOccupancyMaxPotentialBlockSize(&min_grid, &threads, react, 0, CELLS));
        int blocks = (CELLS + threads - 1) / threads;
        react<<<blocks, threads, 0, st>>>(c, r.a, r.b, r.out, r.rate);
        CHECK(cudaGetLastError());
    }
}

int main(int argc, char** argv) {
    int steps = 100;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    srand(11);
    std::vector<Reaction> net;
    for (int k = 0; k < SPECIES; ++k) {
        Reaction r;
        r.a = k;
        r.b = (k + 1 + rand() % (SPECIES - 1)) % SPECIES;
        r.out = rand() % SPECIES;
        r.rate = 1e-3f * (rand() / (float)RAND_MAX);
        net.push_back(r);
    }
    float* c;
    CHECK(cudaMalloc(&c, SPECIES * CELLS * sizeof(float)));
    seed<<<SPECIES * CELLS / 256, 256>>>(c);
    cudaStream_t st;
    CHECK(cudaStreamCreate(&st));
    CHECK(cudaDeviceSynchronize());

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    if (fixed) {
        CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeThreadLocal));
        for (int k = 0; k < SUBSTEPS; ++k) advance(c, net, st);
        CHECK(cudaStreamEndCapture(st, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
    }
    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        if (fixed) {
            CHECK(cudaGraphLaunch(exec, st));
        } else {
            for (int k = 0; k < SUBSTEPS; ++k) advance(c, net, st);
        }
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    float v;
    CHECK(cudaMemcpy(&v, c, 4, cudaMemcpyDeviceToHost));
    printf("c0 %f\n", v);
    printf("round_ms %.4f\n", ms);
    return 0;
}
