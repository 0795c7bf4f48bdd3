// Renders a cloud of coloured splats from an orbiting camera: project, order by tile and depth, blend.
#include <cub/cub.cuh>
#include <cuda_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#define GPU(x)                                                                     \
    do {                                                                           \
        cudaError_t r_ = (x);                                                      \
        if (r_ != cudaSuccess) {                                                   \
            fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(r_));         \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

constexpr int N = 400000, TX = 64, TY = 40, TILE = 16, W = TX * TILE, H = TY * TILE;
typedef unsigned long long Key;

struct Splat { float x, y, z, radius, r, g, b, alpha; };
struct Screen { float x, y, inv, alpha; };

__global__ void project(const Splat* s, Screen* scr, Key* keys, uint32_t* ids, float c, float sn) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    float x = c * s[i].x - sn * s[i].z, z = sn * s[i].x + c * s[i].z + 4.f, y = s[i].y;
    float px = W / 2 + x / z * W * 0.8f, py = H / 2 + y / z * W * 0.8f;
    int tx = (int)floorf(px / TILE), ty = (int)floorf(py / TILE);
    bool seen = z > 0.1f && tx >= 0 && ty >= 0 && tx < TX && ty < TY;
    uint32_t tile = seen ? ty * TX + tx : TX * TY;
    keys[i] = (Key)tile << 32 | __float_as_uint(fmaxf(z, 0.f));
    ids[i] = i;
    float rad = s[i].radius / z * W;
    scr[i] = {px, py, 1.f / (2.f * rad * rad + 0.3f), s[i].alpha};
}

__global__ void find_ranges(const Key* keys, int2* range) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    int tile = keys[i] >> 32;
    if (i == 0 || (int)(keys[i - 1] >> 32) != tile) range[tile].x = i;
    if (i == N - 1 || (int)(keys[i + 1] >> 32) != tile) range[tile].y = i + 1;
}

__global__ void blend(const Splat* s, const Screen* scr, const uint32_t* ids, const int2* range, float4* image) {
    int2 span = range[blockIdx.y * TX + blockIdx.x];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    float left = 1.f, r = 0, g = 0, b = 0;
    for (int k = span.x; k < span.y && left > 0.002f; ++k) {
        uint32_t id = ids[k];
        Screen p = scr[id];
        float dx = x - p.x, dy = y - p.y;
        float a = p.alpha * __expf(-(dx * dx + dy * dy) * p.inv);
        r += left * a * s[id].r; g += left * a * s[id].g; b += left * a * s[id].b;
        left *= 1.f - a;
    }
    image[y * W + x] = make_float4(r, g, b, 1.f - left);
}

class Viewer {
public:
    explicit Viewer(bool device_order) : device_order_(device_order), pairs_(N) {
        std::mt19937 rng(11);
        std::normal_distribution<float> n(0.f, 0.5f);
        std::uniform_real_distribution<float> u(0.f, 1.f);
        std::vector<Splat> cloud(N);
        for (auto& s : cloud) s = {n(rng), 0.6f * n(rng), n(rng), 0.004f + 0.01f * u(rng), u(rng), u(rng), u(rng), 0.05f + 0.3f * u(rng)};
        GPU(cudaMalloc(&splats_, N * sizeof(Splat)));
        GPU(cudaMemcpy(splats_, cloud.data(), N * sizeof(Splat), cudaMemcpyHostToDevice));
        GPU(cudaMalloc(&screen_, N * sizeof(Screen)));
        for (auto& k : keys_) GPU(cudaMalloc(&k, N * sizeof(Key)));
        for (auto& i : ids_) GPU(cudaMalloc(&i, N * sizeof(uint32_t)));
        GPU(cudaMalloc(&range_, (TX * TY + 1) * sizeof(int2)));
        GPU(cudaMalloc(&image_, W * H * sizeof(float4)));
        GPU(cudaMallocHost(&host_keys_, N * sizeof(Key)));
        GPU(cudaMallocHost(&host_ids_, N * sizeof(uint32_t)));
        GPU(cub::DeviceRadixSort::SortPairs(nullptr, temp_bytes_, keys_[0], keys_[1], ids_[0], ids_[1], N));
        GPU(cudaMalloc(&temp_, temp_bytes_));
    }
    void order() {
        if (device_order_) {
            GPU(cub::DeviceRadixSort::SortPairs(temp_, temp_bytes_, keys_[0], keys_[1], ids_[0], ids_[1], N));
            return;
        }
        GPU(cudaMemcpy(host_keys_, keys_[0], N * sizeof(Key), cudaMemcpyDeviceToHost));
        for (int i = 0; i < N; ++i) pairs_[i] = {host_keys_[i], (uint32_t)i};
        std::sort(pairs_.begin(), pairs_.end());
        for (int i = 0; i < N; ++i) {
            host_keys_[i] = pairs_[i].first;
            host_ids_[i] = pairs_[i].second;
        }
        GPU(cudaMemcpy(keys_[1], host_keys_, N * sizeof(Key), cudaMemcpyHostToDevice));
        GPU(cudaMemcpy(ids_[1], host_ids_, N * sizeof(uint32_t), cudaMemcpyHostToDevice));
    }
    void draw(float angle) {
        int blocks = (N + 255) / 256;
        project<<<blocks, 256>>>(splats_, screen_, keys_[0], ids_[0], cosf(angle), sinf(angle));
        order();
        GPU(cudaMemsetAsync(range_, 0, (TX * TY + 1) * sizeof(int2)));
        find_ranges<<<blocks, 256>>>(keys_[1], range_);
        blend<<<dim3(TX, TY), dim3(TILE, TILE)>>>(splats_, screen_, ids_[1], range_, image_);
        GPU(cudaDeviceSynchronize());  // the frame is shown here
    }

private:
    bool device_order_;
    std::vector<std::pair<Key, uint32_t>> pairs_;
    Splat* splats_; Screen* screen_; int2* range_; float4* image_;
    Key *keys_[2], *host_keys_;
    uint32_t *ids_[2], *host_ids_;
    void* temp_ = nullptr;
    size_t temp_bytes_ = 0;
};

int main(int argc, char** argv) {
    Viewer viewer(argc > 1 && !strcmp(argv[1], "--fixed"));
    auto now = [] { return std::chrono::steady_clock::now(); };
    auto since = [&](auto t) { return std::chrono::duration<double, std::milli>(now() - t).count(); };
    int frame = 0;
    for (; frame < 8; ++frame) viewer.draw(frame * 0.01f);
    auto start = now();
    while (since(start) < 2200) viewer.draw(frame++ * 0.01f);
    printf("frames %d\nround_ms %.4f\n", frame - 8, since(start) / (frame - 8));
    return 0;
}
