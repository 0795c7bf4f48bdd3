// roadcent: sampled harmonic centrality of a road network.
//
// One breadth-first search per pivot on the GPU (queue based, top-down); after
// each search every junction collects 1/(1+hops).  Pivots are random junctions.
#include <cuda_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <iomanip>
#include <random>
#include <string>
#include <vector>

using std::vector;

inline void must(cudaError_t rc, int line) {
  if (rc != cudaSuccess) {
    std::cerr << "roadcent.cu:" << line << ": " << cudaGetErrorString(rc) << std::endl;
    std::exit(EXIT_FAILURE);
  }
}
#define MUST(e) must((e), __LINE__)

struct Csr {
  vector<int> off, adj;
  int n() const { return int(off.size()) - 1; }
};

// Street grid with closed segments and a few diagonal shortcuts.
static Csr street_grid(int side, double closed, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> u(0, 1);
  const int n = side * side;
  vector<std::pair<int, int>> edges;
  edges.reserve(4 * size_t(n));
  auto link = [&](int a, int b) { edges.push_back({a, b}); edges.push_back({b, a}); };
  for (int r = 0; r < side; ++r)
    for (int c = 0; c < side; ++c) {
      int v = r * side + c;
      if (c + 1 < side && u(rng) > closed) link(v, v + 1);
      if (r + 1 < side && u(rng) > closed) link(v, v + side);
      if (c + 1 < side && r + 1 < side && u(rng) < 0.03) link(v, v + side + 1);
    }
  Csr g;
  g.off.assign(n + 1, 0);
  for (auto& e : edges) ++g.off[e.first + 1];
  for (int v = 0; v < n; ++v) g.off[v + 1] += g.off[v];
  g.adj.resize(edges.size());
  vector<int> at(g.off.begin(), g.off.end() - 1);
  for (auto& e : edges) g.adj[at[e.first]++] = e.second;
  return g;
}

__global__ void start_search(int* hops, int n, int source, int* queue, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) hops[i] = i == source ? 0 : -1;
  if (i == 0) {
    queue[0] = source;
    count[0] = 1;
  }
}

// Expands queue `in` (count[level] junctions) into `out` (count[level + 1]).
__global__ void expand(const int* __restrict__ off, const int* __restrict__ adj, int* hops, const int* in,
                       int* out, int* count, int level) {
  const int m = count[level];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += gridDim.x * blockDim.x) {
    int v = in[i];
    for (int e = off[v]; e < off[v + 1]; ++e) {
      int w = adj[e];
      if (hops[w] < 0 && atomicCAS(&hops[w], -1, level + 1) == -1)
        out[atomicAdd(&count[level + 1], 1)] = w;
    }
  }
}

__global__ void collect(const int* hops, float* score, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && hops[i] > 0) score[i] += 1.0f / (1.0f + hops[i]);
}

class Searcher {
 public:
  Searcher(const Csr& g, int check_every) : n_(g.n()), check_(check_every), max_levels_(g.n() + 2 * check_every) {
    MUST(cudaMalloc(&off_, g.off.size() * sizeof(int)));
    MUST(cudaMalloc(&adj_, g.adj.size() * sizeof(int)));
    MUST(cudaMemcpy(off_, g.off.data(), g.off.size() * sizeof(int), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(adj_, g.adj.data(), g.adj.size() * sizeof(int), cudaMemcpyHostToDevice));
    MUST(cudaMalloc(&hops_, n_ * sizeof(int)));
    for (auto& q : queue_) MUST(cudaMalloc(&q, n_ * sizeof(int)));
    MUST(cudaMalloc(&count_, max_levels_ * sizeof(int)));
    MUST(cudaMalloc(&score_, n_ * sizeof(float)));
    MUST(cudaMemset(score_, 0, n_ * sizeof(float)));
    MUST(cudaMallocHost(&frontier_, sizeof(int)));
  }
  ~Searcher() {
    for (void* p : {(void*)off_, (void*)adj_, (void*)hops_, (void*)queue_[0], (void*)queue_[1], (void*)count_, (void*)score_})
      cudaFree(p);
    cudaFreeHost(frontier_);
  }

  int search(int source) {
    const int grid = (n_ + 255) / 256;
    MUST(cudaMemsetAsync(count_, 0, max_levels_ * sizeof(int)));
    start_search<<<grid, 256>>>(hops_, n_, source, queue_[0], count_);
    int level = 0;
    do {
      for (int k = 0; k < check_; ++k, ++level)
        expand<<<64, 128>>>(off_, adj_, hops_, queue_[level & 1], queue_[~level & 1], count_, level);
      MUST(cudaMemcpyAsync(frontier_, count_ + level, sizeof(int), cudaMemcpyDeviceToHost));
      MUST(cudaStreamSynchronize(0));
    } while (*frontier_ > 0);
    collect<<<grid, 256>>>(hops_, score_, n_);
    MUST(cudaGetLastError());
    return level;
  }

  vector<float> scores() const {
    vector<float> s(n_);
    MUST(cudaMemcpy(s.data(), score_, n_ * sizeof(float), cudaMemcpyDeviceToHost));
    return s;
  }

 private:
  int n_, check_, max_levels_;
  int *off_, *adj_, *hops_, *queue_[2], *count_, *frontier_;
  float* score_;
};

int main(int argc, char** argv) {
  int pivots = 500, side = 480;
  bool fixed = false;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--fixed") fixed = true;
    else if (a == "--steps" && i + 1 < argc) pivots = std::stoi(argv[++i]);
    else if (a == "--side" && i + 1 < argc) side = std::stoi(argv[++i]);
    else {
      std::cerr << "roadcent [--steps PIVOTS] [--side N] [--fixed]\n";
      return 2;
    }
  }
  Csr g = street_grid(side, 0.18, 7);
  std::cout << "road network: " << g.n() << " junctions, " << g.adj.size() / 2 << " segments\n" << std::fixed;

  // pivots: junctions with at least three streets, so not in a cut-off yard
  std::mt19937 rng(11);
  vector<int> pivot;
  while (int(pivot.size()) < pivots) {
    int v = int(rng() % unsigned(g.n()));
    if (g.off[v + 1] - g.off[v] >= 3) pivot.push_back(v);
  }

  Searcher s(g, fixed ? 32 : 1);
  using clk = std::chrono::steady_clock;
  const int skip = pivots / 4;
  long levels = 0;
  auto t0 = clk::now();
  for (int i = 0; i < pivots; ++i) {
    if (i == skip) {
      MUST(cudaDeviceSynchronize());
      t0 = clk::now();
    }
    int depth = s.search(pivot[i]);
    levels += depth;
    if (i % 100 == 0) std::cout << "pivot " << i << " (junction " << pivot[i] << "): " << depth << " levels\n";
  }
  MUST(cudaDeviceSynchronize());
  double ms = std::chrono::duration<double, std::milli>(clk::now() - t0).count();

  vector<float> sc = s.scores();
  auto top = std::max_element(sc.begin(), sc.end());
  std::cout << "mean levels " << levels / pivots << ", most central junction " << top - sc.begin() << " score "
            << std::setprecision(5) << *top << "\n";
  std::cout << "round_ms " << std::setprecision(4) << ms / (pivots - skip) << std::endl;
  return 0;
}
