// Smoothed occupancy field from a sparse map of scattered hits.
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

const size_t TABLE = (size_t)48 << 20;   // cells, 8 bytes each
const int HITS = 40000;

struct Cell { uint32_t count; float weight; };

__global__ void smooth(const float2* hit, float* field, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    float p = (float)i / m, s = 0;
    for (int k = 0; k < n; ++k) {
        float2 h = hit[k];
        float d = (p - h.x) * 100.f;
        s += h.y * __expf(-d * d);
    }
    field[i] = 0.9f * field[i] + 0.1f * s;
}

int main(int argc, char** argv) {
    int steps = 50;
    bool fixed = false;
    parse_args(argc, argv, &steps, &fixed);

    const int M = 132 * 2048;
    float2 *hit[2], *dhit;
    float* field;
    cudaEvent_t sent[2];
    for (int k = 0; k < 2; ++k) {
        CHECK(cudaMallocHost(&hit[k], HITS * sizeof(float2)));
        CHECK(cudaEventCreateWithFlags(&sent[k], cudaEventDisableTiming));
    }
    CHECK(cudaMalloc(&dhit, HITS * sizeof(float2)));
    CHECK(cudaMalloc(&field, M * sizeof(float)));
    CHECK(cudaMemset(field, 0, M * sizeof(float)));

    std::vector<size_t> touched;
    touched.reserve(HITS);
    Cell* table = nullptr;
    if (fixed) {
        table = (Cell*)malloc(TABLE * sizeof(Cell));
        memset(table, 0, TABLE * sizeof(Cell));
    }
    uint64_t rng = 88172645463325252ull;
    double t0 = 0;
    int first = steps / 4;
    for (int s = 0; s < steps; ++s) {
        if (s == first) {
            CHECK(cudaDeviceSynchronize());
            t0 = now_ms();
        }
        if (!fixed) table = (Cell*)calloc(TABLE, sizeof(Cell));
        touched.clear();
        for (int i = 0; i < HITS; ++i) {
            rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
            size_t c = rng % TABLE;
            if (table[c].count++ == 0) touched.push_back(c);
            table[c].weight += 1e-3f;
        }
        int b = s & 1, n = (int)touched.size();
        CHECK(cudaEventSynchronize(sent[b]));
        for (int i = 0; i < n; ++i)
            hit[b][i] = make_float2((float)((double)touched[i] / TABLE), table[touched[i]].weight);
        if (fixed) {
            for (size_t c : touched) table[c] = Cell{0, 0.f};
        } else {
            free(table);
        }
        CHECK(cudaMemcpyAsync(dhit, hit[b], n * sizeof(float2), cudaMemcpyHostToDevice));
        CHECK(cudaEventRecord(sent[b]));
        smooth<<<(M + 255) / 256, 256>>>(dhit, field, n, M);
    }
    CHECK(cudaDeviceSynchronize());
    double ms = (now_ms() - t0) / (steps - first);
    float v;
    CHECK(cudaMemcpy(&v, field + M / 2, 4, cudaMemcpyDeviceToHost));
    printf("field %f\n", v);
    printf("round_ms %.4f\n", ms);
    return 0;
}
