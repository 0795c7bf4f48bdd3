// Frequency-domain beamformer for a hydrophone array (cuFFT + cuBLAS).
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(x)                                                        \
  do {                                                                  \
    if ((x) != 0) {                                                     \
      fprintf(stderr, "%s failed, line %d\n", #x, __LINE__);            \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

using Clock = std::chrono::steady_clock;
constexpr int kSensors = 256, kSamples = 8192, kBins = kSamples / 2 + 1, kBeams = 128;
constexpr size_t kIn = size_t(kSensors) * kSamples, kSpec = size_t(kSensors) * kBins, kOut = size_t(kBeams) * kBins;

__global__ void window(float* x, int n) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < kIn) x[i] *= 0.5f - 0.5f * cospif(2.0f * (i % n) / n);
}

__global__ void power(const cufftComplex* y, float* p) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < kOut) p[i] = y[i].x * y[i].x + y[i].y * y[i].y;
}

struct Lane {
  cudaStream_t stream;
  cufftHandle plan;
  cublasHandle_t blas;
  float *x, *p;
  cufftComplex *spec, *beams;
  float* result;  // on the host
};

void process(Lane& l, const float* ping, const cufftComplex* steering, bool wait) {
  const cufftComplex one{1, 0}, zero{0, 0};
  CHECK(cudaMemcpyAsync(l.x, ping, kIn * sizeof(float), cudaMemcpyHostToDevice, l.stream));
  window<<<(kIn + 255) / 256, 256, 0, l.stream>>>(l.x, kSamples);
  if (wait) CHECK(cudaDeviceSynchronize());
  CHECK(cufftExecR2C(l.plan, l.x, l.spec));
  if (wait) CHECK(cudaDeviceSynchronize());
  CHECK(cublasCgemm(l.blas, CUBLAS_OP_N, CUBLAS_OP_N, kBins, kBeams, kSensors, &one, l.spec, kBins, steering, kSensors,
                    &zero, l.beams, kBins));
  if (wait) CHECK(cudaDeviceSynchronize());
  power<<<(kOut + 255) / 256, 256, 0, l.stream>>>(l.beams, l.p);
  CHECK(cudaMemcpyAsync(l.result, l.p, kOut * sizeof(float), cudaMemcpyDeviceToHost, l.stream));
  if (wait) CHECK(cudaDeviceSynchronize());
}

float* host_buffer(size_t n, bool pinned) {
  float* p = nullptr;
  if (pinned) {
    CHECK(cudaMallocHost(&p, n * sizeof(float)));
  } else {
    p = static_cast<float*>(malloc(n * sizeof(float)));
  }
  memset(p, 0, n * sizeof(float));
  return p;
}

int main(int argc, char** argv) {
  bool fixed = argc > 1 && !strcmp(argv[1], "--fixed");
  const int kLanes = fixed ? 2 : 1, kPings = 4, kGroup = 8;
  std::vector<float*> pings;
  for (int k = 0; k < kPings; ++k) {
    pings.push_back(host_buffer(kIn, fixed));
    for (size_t i = 0; i < kIn; ++i) pings[k][i] = sinf(0.01f * (i % kSamples) * (k + 1)) + (i * 2654435761u >> 8 & 255) / 512.f;
  }
  std::vector<cufftComplex> steer(size_t(kSensors) * kBeams);
  for (size_t i = 0; i < steer.size(); ++i) {
    float a = 0.002f * (i % kSensors) * (i / kSensors);
    steer[i] = {cosf(a) / kSensors, sinf(a) / kSensors};
  }
  cufftComplex* steering;
  CHECK(cudaMalloc(&steering, steer.size() * sizeof(cufftComplex)));
  CHECK(cudaMemcpy(steering, steer.data(), steer.size() * sizeof(cufftComplex), cudaMemcpyHostToDevice));
  std::vector<Lane> lanes(kLanes);
  for (auto& l : lanes) {
    CHECK(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking));
    CHECK(cufftPlan1d(&l.plan, kSamples, CUFFT_R2C, kSensors));
    CHECK(cufftSetStream(l.plan, l.stream));
    CHECK(cublasCreate(&l.blas));
    CHECK(cublasSetStream(l.blas, l.stream));
    CHECK(cudaMalloc(&l.x, kIn * sizeof(float)));
    CHECK(cudaMalloc(&l.spec, kSpec * sizeof(cufftComplex)));
    CHECK(cudaMalloc(&l.beams, kOut * sizeof(cufftComplex)));
    CHECK(cudaMalloc(&l.p, kOut * sizeof(float)));
    l.result = host_buffer(kOut, fixed);
  }
  std::vector<double> times;
  double loudest = 0;
  auto stop = Clock::time_point::max();
  for (int round = 0; Clock::now() < stop; ++round) {
    auto t0 = Clock::now();
    for (int i = 0; i < kGroup; ++i) process(lanes[i % kLanes], pings[i % kPings], steering, !fixed);
    for (auto& l : lanes) CHECK(cudaStreamSynchronize(l.stream));
    loudest = std::max(loudest, double(lanes[0].result[kBins / 2]));
    auto t1 = Clock::now();
    if (round >= 5) times.push_back(std::chrono::duration<double, std::milli>(t1 - t0).count() / kGroup);
    if (round == 4) stop = t1 + std::chrono::seconds(3);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  printf("%zu groups of pings, loudest %.4g\n", times.size(), loudest);
  printf("round_ms %.4f\n", times[times.size() / 2]);
  return 0;
}
