// proofsheet: turns 4K camera frames into denoised, tone-mapped 360p proofs.
// GPU: bilateral denoise -> filmic curve -> area downscale.  CPU pool: lossless
// Rice-coded ".prf" images that go to the archive of the job.
//
//   nvcc -O2 -lineinfo -arch=sm_90 -o proofsheet proofsheet.cu -lpthread
//   ./proofsheet [--steps N] [--workers N] [--fixed]
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(call)                                                              \
  do {                                                                             \
    cudaError_t e_ = (call);                                                       \
    if (e_ != cudaSuccess) {                                                       \
      fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, #call,                 \
              cudaGetErrorString(e_));                                             \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

constexpr int kW = 3840, kH = 2160, kScale = 6;
constexpr int kPW = kW / kScale, kPH = kH / kScale;
constexpr int kRadius = 6;
constexpr int kSlots = 14, kSources = 4;

__global__ void bilateral(const uchar4* __restrict__ src, uchar4* __restrict__ dst,
                          float inv_s2, float inv_r2) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= kW || y >= kH) return;
  uchar4 c = src[y * kW + x];
  float sr = 0, sg = 0, sb = 0, sw = 0;
  for (int dy = -kRadius; dy <= kRadius; ++dy) {
    int yy = min(max(y + dy, 0), kH - 1);
    for (int dx = -kRadius; dx <= kRadius; ++dx) {
      int xx = min(max(x + dx, 0), kW - 1);
      uchar4 p = __ldg(&src[yy * kW + xx]);
      float r = float(p.x) - c.x, g = float(p.y) - c.y, b = float(p.z) - c.z;
      float w = __expf(-(dx * dx + dy * dy) * inv_s2 - (r * r + g * g + b * b) * inv_r2);
      sr += w * p.x; sg += w * p.y; sb += w * p.z; sw += w;
    }
  }
  float n = 1.f / sw;
  dst[y * kW + x] = make_uchar4(sr * n, sg * n, sb * n, 255);
}

__device__ float filmic(float v, float exposure) {
  v *= exposure / 255.f;
  return fminf(255.f, 255.f * (v * (2.51f * v + 0.03f)) / (v * (2.43f * v + 0.59f) + 0.14f));
}

__global__ void tone_downscale(const uchar4* __restrict__ src, uint8_t* __restrict__ dst,
                               float exposure) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= kPW || y >= kPH) return;
  float r = 0, g = 0, b = 0;
  for (int j = 0; j < kScale; ++j)
    for (int i = 0; i < kScale; ++i) {
      uchar4 p = src[(y * kScale + j) * kW + x * kScale + i];
      r += filmic(p.x, exposure); g += filmic(p.y, exposure); b += filmic(p.z, exposure);
    }
  const float k = 1.f / (kScale * kScale);
  uint8_t* o = dst + 3 * (y * kPW + x);
  o[0] = uint8_t(r * k); o[1] = uint8_t(g * k); o[2] = uint8_t(b * k);
}

// Paeth prediction and adaptive Rice codes, one context per channel.
static std::vector<uint8_t> encode_proof(const uint8_t* img) {
  std::vector<uint8_t> out;
  out.reserve(size_t(kPW) * kPH * 3);
  uint64_t acc = 0; int nbits = 0;
  auto put = [&](uint32_t v, int n) {
    acc = (acc << n) | v; nbits += n;
    while (nbits >= 8) { nbits -= 8; out.push_back(uint8_t(acc >> nbits)); }
  };
  int mean[3] = {64, 64, 64};
  for (int y = 0; y < kPH; ++y)
    for (int x = 0; x < kPW; ++x)
      for (int c = 0; c < 3; ++c) {
        const uint8_t* p = img + 3 * (y * kPW + x) + c;
        int a = x ? p[-3] : 0, b = y ? p[-3 * kPW] : 0, d = x && y ? p[-3 * kPW - 3] : 0;
        int e = a + b - d, pa = abs(e - a), pb = abs(e - b), pd = abs(e - d);
        int pred = pa <= pb && pa <= pd ? a : (pb <= pd ? b : d);
        int res = int8_t(*p - pred);
        uint32_t u = res < 0 ? uint32_t(-2 * res - 1) : uint32_t(2 * res);
        int k = 0;
        while (k < 7 && (16 << k) < mean[c]) ++k;
        uint32_t q = u >> k;
        if (q < 20) { put((1u << (q + 1)) - 2, q + 1); put(u & ((1u << k) - 1), k); }
        else { put((1u << 21) - 1, 21); put(u, 8); }
        mean[c] += int(u) - (mean[c] >> 4);
      }
  put(0, 7);
  return out;
}

class ProofPool {
 public:
  ProofPool(int workers, uint8_t* const* slots, bool fixed) : slots_(slots), fixed_(fixed) {
    for (int i = 0; i < kSlots; ++i) free_.push_back(i);
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  int acquire() {
    std::unique_lock<std::mutex> lk(mu_);
    slot_cv_.wait(lk, [this] { return !free_.empty(); });
    int s = free_.front(); free_.pop_front();
    return s;
  }
  void submit(int slot) {
    std::lock_guard<std::mutex> lk(mu_);
    todo_.push_back(slot);
    todo_cv_.notify_one();
  }
  void drain() {
    std::unique_lock<std::mutex> lk(mu_);
    slot_cv_.wait(lk, [this] { return int(free_.size()) == kSlots; });
  }
  void stop() {
    { std::lock_guard<std::mutex> lk(mu_); quit_ = true; }
    todo_cv_.notify_all();
    for (auto& t : threads_) t.join();
  }
  size_t bytes() { std::lock_guard<std::mutex> lk(mu_); return bytes_; }

 private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lk(mu_);
      todo_cv_.wait(lk, [this] { return quit_ || !todo_.empty(); });
      if (todo_.empty()) return;
      int slot = todo_.front(); todo_.pop_front();
      if (fixed_) lk.unlock();
      std::vector<uint8_t> img = encode_proof(slots_[slot]);
      if (fixed_) lk.lock();
      bytes_ += img.size();
      archive_.push_back(std::move(img));
      if (archive_.size() > 64) archive_.pop_front();
      free_.push_back(slot);
      slot_cv_.notify_all();
    }
  }
  uint8_t* const* slots_;
  bool fixed_, quit_ = false;
  std::mutex mu_;
  std::condition_variable slot_cv_, todo_cv_;
  std::deque<int> free_, todo_;
  std::deque<std::vector<uint8_t>> archive_;
  size_t bytes_ = 0;
  std::vector<std::thread> threads_;
};

int main(int argc, char** argv) {
  int steps = 540, workers = 10; bool fixed = false;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--fixed") fixed = true;
    else if (a == "--steps" && i + 1 < argc) steps = atoi(argv[++i]);
    else if (a == "--workers" && i + 1 < argc) workers = atoi(argv[++i]);
    else { fprintf(stderr, "usage: %s [--steps N] [--workers N] [--fixed]\n", argv[0]); return 2; }
  }
  const size_t src_bytes = size_t(kW) * kH * 4, out_bytes = size_t(kPW) * kPH * 3;
  uchar4* source[kSources];
  uint32_t rng = 12345;
  for (int s = 0; s < kSources; ++s) {
    CUDA_OK(cudaMallocHost((void**)&source[s], src_bytes));
    for (int y = 0; y < kH; ++y)
      for (int x = 0; x < kW; ++x) {
        rng = rng * 1664525u + 1013904223u;
        int n = int(rng >> 27) - 16, edge = ((x >> 7) ^ (y >> 6) ^ s) & 1 ? 60 : 0;
        source[s][y * kW + x] = make_uchar4(40 + x / 32 + n / 2 + edge / 2, 30 + y / 20 + n / 2 + edge,
                                            60 + ((x + y) >> 6) + n / 2, 255);
      }
  }
  uchar4 *d_src, *d_den; uint8_t* d_out; uint8_t* slot[kSlots]; cudaEvent_t done[kSlots]; cudaStream_t st;
  CUDA_OK(cudaMalloc(&d_src, src_bytes)); CUDA_OK(cudaMalloc(&d_den, src_bytes)); CUDA_OK(cudaMalloc(&d_out, out_bytes));
  CUDA_OK(cudaStreamCreateWithFlags(&st, cudaStreamNonBlocking));
  for (int i = 0; i < kSlots; ++i) {
    CUDA_OK(cudaMallocHost((void**)&slot[i], out_bytes));
    CUDA_OK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
  }
  ProofPool pool(workers, slot, fixed);
  dim3 b(32, 8), g1((kW + 31) / 32, (kH + 7) / 8), g2((kPW + 31) / 32, (kPH + 7) / 8);
  auto now = [] { return std::chrono::steady_clock::now(); };
  auto t0 = now();
  int prev = -1, warm = steps / 4;
  for (int f = 0; f < steps; ++f) {
    if (f == warm) { CUDA_OK(cudaStreamSynchronize(st)); t0 = now(); }
    int s = pool.acquire();
    CUDA_OK(cudaMemcpyAsync(d_src, source[f % kSources], src_bytes, cudaMemcpyHostToDevice, st));
    bilateral<<<g1, b, 0, st>>>(d_src, d_den, 1.f / 18.f, 1.f / 1800.f);
    tone_downscale<<<g2, b, 0, st>>>(d_den, d_out, 1.1f + 0.05f * (f % 5));
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaMemcpyAsync(slot[s], d_out, out_bytes, cudaMemcpyDeviceToHost, st));
    CUDA_OK(cudaEventRecord(done[s], st));
    if (prev >= 0) { CUDA_OK(cudaEventSynchronize(done[prev])); pool.submit(prev); }
    prev = s;
    if (f % 100 == 99) printf("frame %d submitted\n", f + 1);
  }
  if (prev >= 0) { CUDA_OK(cudaEventSynchronize(done[prev])); pool.submit(prev); }
  pool.drain();
  double ms = std::chrono::duration<double, std::milli>(now() - t0).count();
  pool.stop();
  printf("%d proofs, %.1f KB each on average\n", steps, pool.bytes() / 1024.0 / steps);
  printf("round_ms %.4f\n", ms / (steps - warm));
  return 0;
}
