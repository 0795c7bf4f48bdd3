// Heat flow in a layered slab with a moving source; explicit steps, three kernels each.
#include <cuda_runtime.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static bool g_check_each = true;  // look for faults right after each kernel

#define CU(x)                                                                              \
    do {                                                                                   \
        cudaError_t e = (x);                                                               \
        if (e != cudaSuccess) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));     \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

#define AFTER_KERNEL()                                     \
    do {                                                   \
        CU(cudaGetLastError());                            \
        if (g_check_each) CU(cudaDeviceSynchronize());     \
    } while (0)

struct SlabConfig {
    int nx = 1024, ny = 768;
    float dt = 0.2f;
    int steps_per_frame = 200;
    double seconds = 2.2;
};

__global__ void flux_kernel(const float* t, const float* k, float* fx, float* fy, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int i = y * nx + x;
    fx[i] = x + 1 < nx ? 0.5f * (k[i] + k[i + 1]) * (t[i + 1] - t[i]) : 0.f;
    fy[i] = y + 1 < ny ? 0.5f * (k[i] + k[i + nx]) * (t[i + nx] - t[i]) : 0.f;
}

__global__ void update_kernel(float* t, const float* fx, const float* fy, int nx, int ny, float dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int i = y * nx + x;
    float in = (x ? fx[i - 1] : 0.f) + (y ? fy[i - nx] : 0.f);
    t[i] += dt * (fx[i] + fy[i] - in);
}

__global__ void source_kernel(float* t, int nx, int ny, float cx, float cy, float heat) {
    int x = (int)cx - 16 + threadIdx.x, y = (int)cy - 16 + threadIdx.y;
    if (x < 0 || y < 0 || x >= nx || y >= ny) return;
    float dx = x - cx, dy = y - cy;
    t[y * nx + x] += heat * expf(-(dx * dx + dy * dy) / 40.f);
}

class Slab {
public:
    explicit Slab(const SlabConfig& c) : c_(c), cells_(c.nx * c.ny) {
        for (float** p : {&t_, &k_, &fx_, &fy_}) CU(cudaMalloc(p, cells_ * sizeof(float)));
        std::vector<float> k(cells_);
        for (int y = 0; y < c.ny; ++y)
            for (int x = 0; x < c.nx; ++x) k[y * c.nx + x] = (y / 96) % 2 ? 1.f : 0.35f;
        CU(cudaMemcpy(k_, k.data(), cells_ * sizeof(float), cudaMemcpyHostToDevice));
        CU(cudaMemset(t_, 0, cells_ * sizeof(float)));
    }
    ~Slab() {
        for (float* p : {t_, k_, fx_, fy_}) cudaFree(p);
    }
    void frame() {
        dim3 block(64, 4), grid((c_.nx + 63) / 64, (c_.ny + 3) / 4);
        for (int s = 0; s < c_.steps_per_frame; ++s, ++step_) {
            float a = step_ * 1e-3f;
            flux_kernel<<<grid, block>>>(t_, k_, fx_, fy_, c_.nx, c_.ny);
            AFTER_KERNEL();
            update_kernel<<<grid, block>>>(t_, fx_, fy_, c_.nx, c_.ny, c_.dt);
            AFTER_KERNEL();
            source_kernel<<<1, dim3(32, 32)>>>(t_, c_.nx, c_.ny, c_.nx * (0.5f + 0.4f * cosf(a)),
                                               c_.ny * (0.5f + 0.4f * sinf(a)), 0.02f);
            AFTER_KERNEL();
        }
    }
    float centre() const {
        float v;
        CU(cudaMemcpy(&v, t_ + cells_ / 2 + c_.nx / 2, sizeof v, cudaMemcpyDeviceToHost));
        return v;
    }

private:
    SlabConfig c_;
    int cells_, step_ = 0;
    float *t_ = nullptr, *k_ = nullptr, *fx_ = nullptr, *fy_ = nullptr;
};

static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (!strcmp(argv[i], "--fixed")) g_check_each = false;
    SlabConfig config;
    Slab slab(config);
    for (int i = 0; i < 20; ++i) slab.frame();
    CU(cudaDeviceSynchronize());
    double begin = seconds();
    int frames = 0;
    while (seconds() - begin < config.seconds) {
        slab.frame();
        if (++frames % 50 == 0) printf("frame %d centre %.5f\n", frames, slab.centre());
    }
    CU(cudaDeviceSynchronize());
    printf("round_ms %.4f\n", (seconds() - begin) * 1e3 / frames);
    return 0;
}
