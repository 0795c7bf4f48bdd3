// Decodes telescope packets on worker threads, searches them for bursts on the GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
constexpr int kChannels = 256, kTimes = 2048, kTrials = 128, kWorkers = 8, kSlots = 16;
constexpr size_t kSamples = size_t(kChannels) * kTimes;

__global__ void dedisperse(const float* x, float* best) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, trial = blockIdx.y;
  float sum = 0;
  for (int c = 0; c < kChannels; ++c) sum += x[size_t(c) * kTimes + (t + c * trial / 64) % kTimes];
  for (int o = 16; o; o >>= 1) sum = fmaxf(sum, __shfl_xor_sync(0xffffffffu, sum, o));
  if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<int*>(best), __float_as_int(fmaxf(sum, 0.0f)));
}

struct Block { float* samples; uint64_t id; };

class Receiver {
 public:
  explicit Receiver(bool wide) : wide_(wide) {
    for (int i = 0; i < kSlots; ++i) {
      empty_.push_back(nullptr);
      cudaMallocHost(&empty_.back(), kSamples * sizeof(float));
    }
    for (int i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { run(); });
  }
  ~Receiver() {
    { std::lock_guard<std::mutex> lock(mutex_); closing_ = true; }
    has_empty_.notify_all();
    for (auto& w : workers_) w.join();
  }
  Block next() {
    std::unique_lock<std::mutex> lock(mutex_);
    has_full_.wait(lock, [this] { return !full_.empty(); });
    Block b = full_.front();
    full_.pop_front();
    return b;
  }
  void recycle(Block b) {
    std::lock_guard<std::mutex> lock(mutex_);
    empty_.push_back(b.samples);
    has_empty_.notify_one();
  }

 private:
  static void decode(uint64_t id, float* out) {
    uint32_t s = uint32_t(id) * 2654435761u + 1;
    for (size_t i = 0; i < kSamples; ++i) {
      s ^= s << 13, s ^= s >> 17, s ^= s << 5;
      int nibbles = (s & 15) + (s >> 4 & 15) + (s >> 8 & 15) + (s >> 12 & 15);
      out[i] = (nibbles - 30) * 0.0625f;
    }
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      has_empty_.wait(lock, [this] { return closing_ || !empty_.empty(); });
      if (closing_) return;
      Block b{empty_.front(), next_id_++};
      empty_.pop_front();
      if (wide_) lock.unlock();
      decode(b.id, b.samples);
      if (wide_) lock.lock();
      full_.push_back(b);
      has_full_.notify_one();
    }
  }

  const bool wide_;
  bool closing_ = false;
  uint64_t next_id_ = 0;
  std::mutex mutex_;
  std::condition_variable has_full_, has_empty_;
  std::deque<float*> empty_;
  std::deque<Block> full_;
  std::vector<std::thread> workers_;
};

int main(int argc, char** argv) {
  bool fixed = argc > 1 && !strcmp(argv[1], "--fixed");
  float *x, *best, peak = 0;
  cudaMalloc(&x, kSamples * sizeof(float));
  cudaMalloc(&best, sizeof(float));
  cudaStream_t stream = cudaStreamPerThread;
  std::vector<double> times;
  Receiver receiver(fixed);
  const int kGroup = 16;
  auto stop = Clock::time_point::max();
  for (int round = 0; Clock::now() < stop; ++round) {
    auto t0 = Clock::now();
    for (int i = 0; i < kGroup; ++i) {
      Block b = receiver.next();
      cudaMemcpyAsync(x, b.samples, kSamples * sizeof(float), cudaMemcpyHostToDevice, stream);
      cudaMemsetAsync(best, 0, sizeof(float), stream);
      dedisperse<<<dim3(kTimes / 256, kTrials), 256, 0, stream>>>(x, best);
      float found = 0;
      cudaMemcpyAsync(&found, best, sizeof(float), cudaMemcpyDeviceToHost, stream);
      cudaStreamSynchronize(stream);
      peak = std::max(peak, found);
      receiver.recycle(b);
    }
    auto t1 = Clock::now();
    if (round >= 3) times.push_back(std::chrono::duration<double, std::milli>(t1 - t0).count() / kGroup);
    if (round == 2) stop = t1 + std::chrono::seconds(3);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  printf("%zu groups, peak %.3f, %s\n", times.size(), peak, cudaGetErrorString(cudaGetLastError()));
  printf("round_ms %.4f\n", times[times.size() / 2]);
  return 0;
}
