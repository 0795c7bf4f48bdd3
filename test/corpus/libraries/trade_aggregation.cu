// Per-instrument volume and top movers from a stream of trade blocks (thrust).
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

using Clock = std::chrono::steady_clock;
constexpr int kTrades = 1 << 21;
constexpr int kInstruments = 4096;

// Keeps freed blocks for the next algorithm instead of giving them back.
class ScratchPool {
 public:
  using value_type = char;
  ~ScratchPool() {
    for (auto& b : free_) cudaFree(b.second);
  }
  char* allocate(std::ptrdiff_t n) {
    auto it = free_.lower_bound(n);
    char* p = nullptr;
    if (it != free_.end()) {
      p = it->second;
      n = it->first;
      free_.erase(it);
    } else {
      cudaMalloc(&p, n);
    }
    used_[p] = n;
    return p;
  }
  void deallocate(char* p, size_t) {
    free_.emplace(used_[p], p);
    used_.erase(p);
  }

 private:
  std::multimap<std::ptrdiff_t, char*> free_;
  std::map<char*, std::ptrdiff_t> used_;
};

struct MakeTrade {
  unsigned seed;
  __host__ __device__ unsigned operator()(unsigned i) const {
    unsigned x = (i + 1) * 747796405u + seed * 2891336453u;
    x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
    return ((x >> 22) ^ x) % kInstruments;
  }
};

struct Volume {
  __host__ __device__ float operator()(unsigned id) const { return 1.0f + (id % 97) * 0.25f; }
};

struct Buffers {
  thrust::device_vector<unsigned> id, out_id;
  thrust::device_vector<float> volume, total, running;
  Buffers() : id(kTrades), out_id(kInstruments), volume(kTrades), total(kInstruments), running(kInstruments) {}
};

template <class Policy>
float aggregate(const Policy& policy, Buffers& b, unsigned block) {
  auto first = thrust::make_counting_iterator(0u);
  thrust::transform(policy, first, first + kTrades, b.id.begin(), MakeTrade{block});
  thrust::transform(policy, b.id.begin(), b.id.end(), b.volume.begin(), Volume{});
  thrust::sort_by_key(policy, b.id.begin(), b.id.end(), b.volume.begin());
  auto ends = thrust::reduce_by_key(policy, b.id.begin(), b.id.end(), b.volume.begin(), b.out_id.begin(), b.total.begin());
  int n = ends.first - b.out_id.begin();
  thrust::sort_by_key(policy, b.total.begin(), b.total.begin() + n, b.out_id.begin());
  thrust::inclusive_scan(policy, b.total.begin(), b.total.begin() + n, b.running.begin());
  return b.running[n - 1];
}

int main(int argc, char** argv) {
  bool fixed = argc > 1 && !strcmp(argv[1], "--fixed");
  ScratchPool pool;
  std::unique_ptr<Buffers> keep(fixed ? new Buffers : nullptr);
  double grand = 0;
  unsigned block = 0;
  std::vector<double> times;
  auto stop = Clock::time_point::max();
  while (Clock::now() < stop) {
    auto t0 = Clock::now();
    if (fixed) {
      grand += aggregate(thrust::cuda::par(pool), *keep, block);
    } else {
      Buffers fresh;
      grand += aggregate(thrust::device, fresh, block);
    }
    auto t1 = Clock::now();
    if (++block > 20) times.push_back(std::chrono::duration<double, std::milli>(t1 - t0).count());
    if (block == 20) stop = t1 + std::chrono::seconds(3);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  printf("%u blocks, volume %.3e\n", block, grand);
  printf("round_ms %.4f\n", times[times.size() / 2]);
  return 0;
}
