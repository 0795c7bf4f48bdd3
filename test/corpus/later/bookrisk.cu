// bookrisk.cu : full-revaluation VaR of an equity exotics book by Monte Carlo
//
// Every scenario (spot / vol / rate shock) reprices the whole book with common
// random numbers; the P&L vector gives VaR and expected shortfall.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include <curand_kernel.h>

namespace {

void cu(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

enum class Payoff : int { Call, Put, AsianCall, UpOutCall, LookbackPut };

struct Instrument {
  Payoff type;
  float spot, strike, barrier, vol, maturity, notional;
};

struct Shock { float spot, vol, rate; };

constexpr int kPaths = 8192;
constexpr int kWeeks = 52;
constexpr int kBlock = 128;
constexpr float kRate = 0.031f;

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : n_(n) { cu(cudaMalloc(&p_, n * sizeof(T))); }
  explicit DeviceArray(const std::vector<T>& h) : DeviceArray(h.size()) {
    cu(cudaMemcpy(p_, h.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(p_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* get() const { return p_; }
  void zero() { cu(cudaMemsetAsync(p_, 0, n_ * sizeof(T))); }
  void to_host(std::vector<T>& h) const {
    cu(cudaMemcpy(h.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
  }
 private:
  T* p_ = nullptr;
  size_t n_;
};

__device__ float settle(const Instrument& q, float s, float mean, float hi) {
  switch (q.type) {
    case Payoff::Call: return fmaxf(s - q.strike, 0.f);
    case Payoff::Put: return fmaxf(q.strike - s, 0.f);
    case Payoff::AsianCall: return fmaxf(mean - q.strike, 0.f);
    case Payoff::UpOutCall: return hi >= q.barrier ? 0.f : fmaxf(s - q.strike, 0.f);
    case Payoff::LookbackPut: return hi - s;
  }
  return 0.f;
}

// blockIdx.x runs over the paths, blockIdx.y over instruments from `first`
__global__ void __launch_bounds__(kBlock)
price(const Instrument* __restrict__ book, int first, Shock sh, unsigned long long seed,
      double* __restrict__ pv) {
  const int id = first + blockIdx.y;
  const Instrument q = book[id];
  const int path = blockIdx.x * kBlock + threadIdx.x;

  curandStatePhilox4_32_10_t rng;
  curand_init(seed + id, path, 0, &rng);

  const float vol = q.vol + sh.vol, rate = kRate + sh.rate;
  const float dt = q.maturity / kWeeks;
  const float drift = (rate - 0.5f * vol * vol) * dt, diff = vol * sqrtf(dt);
  float s = q.spot * (1.f + sh.spot), sum = 0.f, hi = s;
  for (int w = 0; w < kWeeks; w += 4) {
    const float4 z = curand_normal4(&rng);
    const float dz[4] = {z.x, z.y, z.z, z.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      s *= expf(drift + diff * dz[k]);
      sum += s;
      hi = fmaxf(hi, s);
    }
  }
  float v = expf(-rate * q.maturity) * settle(q, s, sum / kWeeks, hi);

  __shared__ float part[kBlock / 32];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float t = 0.f;
    for (int i = 0; i < kBlock / 32; ++i) t += part[i];
    atomicAdd(&pv[id], double(q.notional) * t / kPaths);
  }
}

std::vector<Instrument> make_book(int n) {
  std::mt19937 g(2024);
  std::uniform_real_distribution<float> u(0.f, 1.f);
  std::vector<Instrument> book(n);
  for (auto& q : book) {
    q.type = static_cast<Payoff>(int(u(g) * 4.999f));
    q.spot = 20.f + 180.f * u(g);
    q.strike = q.spot * (0.8f + 0.4f * u(g));
    q.barrier = q.spot * (1.25f + 0.5f * u(g));
    q.vol = 0.12f + 0.35f * u(g);
    q.maturity = 0.25f + 2.f * u(g);
    q.notional = 1000.f * (u(g) - 0.4f);
  }
  return book;
}

class Revaluer {
 public:
  Revaluer(const std::vector<Instrument>& book, bool fixed)
      : n_(int(book.size())), fixed_(fixed), book_(book), pv_(book.size()), host_(book.size()) {}

  double book_value(const Shock& sh) {
    pv_.zero();
    const int blocks = kPaths / kBlock;
    if (fixed_) {
      price<<<dim3(blocks, n_), kBlock>>>(book_.get(), 0, sh, 777, pv_.get());
    } else {
      for (int i = 0; i < n_; ++i)
        price<<<dim3(blocks, 1), kBlock>>>(book_.get(), i, sh, 777, pv_.get());
    }
    cu(cudaGetLastError());
    pv_.to_host(host_);
    return std::accumulate(host_.begin(), host_.end(), 0.0);
  }

 private:
  int n_;
  bool fixed_;
  DeviceArray<Instrument> book_;
  DeviceArray<double> pv_;
  std::vector<double> host_;
};

int run(int scenarios, int instruments, bool fixed) {
  using clock = std::chrono::steady_clock;
  Revaluer rv(make_book(instruments), fixed);
  const double base = rv.book_value({0.f, 0.f, 0.f});
  std::printf("book of %d instruments, base value %.0f\n", instruments, base);

  std::mt19937 g(99);
  std::normal_distribution<float> nd;
  std::vector<double> pnl;
  const int skip = scenarios / 4;
  auto t0 = clock::now();
  for (int s = 0; s < scenarios; ++s) {
    if (s == skip) {
      cu(cudaDeviceSynchronize());
      t0 = clock::now();
    }
    const float m = nd(g);
    Shock sh{0.02f * m, std::max(-0.05f, -0.012f * m + 0.008f * nd(g)), 0.0008f * nd(g)};
    pnl.push_back(rv.book_value(sh) - base);
    if ((s + 1) % 100 == 0) std::printf("scenario %d: P&L %.0f\n", s + 1, pnl.back());
  }
  cu(cudaDeviceSynchronize());
  const double ms = std::chrono::duration<double, std::milli>(clock::now() - t0).count();

  std::sort(pnl.begin(), pnl.end());
  const size_t k = std::max<size_t>(1, pnl.size() / 100);
  const double es = std::accumulate(pnl.begin(), pnl.begin() + k, 0.0) / k;
  std::printf("VaR99 %.0f  ES99 %.0f\n", -pnl[k - 1], -es);
  std::printf("round_ms %.4f\n", ms / (scenarios - skip));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 560, instruments = 960;
  bool fixed = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--fixed")) fixed = true;
    else if (!std::strcmp(argv[i], "--steps") && i + 1 < argc) steps = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--instruments") && i + 1 < argc) instruments = std::atoi(argv[++i]);
  }
  try {
    return run(steps, instruments, fixed);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bookrisk: %s\n", e.what());
    return 1;
  }
}
