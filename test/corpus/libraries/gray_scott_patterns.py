"""Gray-Scott reaction-diffusion on a periodic grid with CuPy."""
import argparse
import os
import statistics
import time

os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")

import cupy as cp

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--steps", type=int, default=20, help="time steps per round")
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()

DU, DV, FEED, KILL, DT = 0.16, 0.08, 0.0367, 0.0649, 1.0

STEP_SRC = r"""
extern "C" __global__
void gray_scott(const float* __restrict__ u, const float* __restrict__ v,
                float* __restrict__ u2, float* __restrict__ v2, int n,
                float du, float dv, float feed, float kill, float dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    int l = (x == 0 ? n - 1 : x - 1), r = (x == n - 1 ? 0 : x + 1);
    int t = (y == 0 ? n - 1 : y - 1), b = (y == n - 1 ? 0 : y + 1);
    size_t row = (size_t)y * n, i = row + x;
    float uc = u[i], vc = v[i];
    float lu = u[row + l] + u[row + r] + u[(size_t)t * n + x] + u[(size_t)b * n + x] - 4.0f * uc;
    float lv = v[row + l] + v[row + r] + v[(size_t)t * n + x] + v[(size_t)b * n + x] - 4.0f * vc;
    float uvv = uc * vc * vc;
    u2[i] = uc + dt * (du * lu - uvv + feed * (1.0f - uc));
    v2[i] = vc + dt * (dv * lv + uvv - (feed + kill) * vc);
}
"""


def laplacian(f):
    return (cp.roll(f, 1, 0) + cp.roll(f, -1, 0) + cp.roll(f, 1, 1) + cp.roll(f, -1, 1)) - 4.0 * f


class ArraySolver:
    def step(self, u, v):
        uvv = u * v * v
        du = DU * laplacian(u) - uvv + FEED * (1.0 - u)
        dv = DV * laplacian(v) + uvv - (FEED + KILL) * v
        return u + DT * du, v + DT * dv


class KernelSolver:
    def __init__(self, n):
        self.kernel = cp.RawKernel(STEP_SRC, "gray_scott")
        self.n = n
        self.spare = (cp.empty((n, n), cp.float32), cp.empty((n, n), cp.float32))

    def step(self, u, v):
        u2, v2 = self.spare
        grid = ((self.n + 31) // 32, (self.n + 7) // 8)
        consts = [cp.float32(c) for c in (DU, DV, FEED, KILL, DT)]
        self.kernel(grid, (32, 8), (u, v, u2, v2, cp.int32(self.n), *consts))
        self.spare = (u, v)
        return u2, v2


def initial_state(n):
    cp.random.seed(3)
    u = cp.ones((n, n), cp.float32)
    v = cp.zeros((n, n), cp.float32)
    for cx, cy in cp.random.randint(50, n - 50, (200, 2)).get():
        u[cy - 12 : cy + 12, cx - 12 : cx + 12] = 0.5
        v[cy - 12 : cy + 12, cx - 12 : cx + 12] = 0.25
    return u, v + 0.01 * cp.random.random((n, n), dtype=cp.float32)


def main():
    u, v = initial_state(args.size)
    solver = KernelSolver(args.size) if args.fixed else ArraySolver()
    times, mass = [], []
    stop = None
    warm = 3
    while stop is None or time.perf_counter() < stop:
        t0 = time.perf_counter()
        for _ in range(args.steps):
            u, v = solver.step(u, v)
        mass.append(float(v.mean()))
        if len(mass) > warm:
            times.append((time.perf_counter() - t0) * 1e3)
        elif len(mass) == warm:
            stop = time.perf_counter() + args.seconds
    print(f"{len(mass) * args.steps} steps, mean v {mass[0]:.4f} -> {mass[-1]:.4f}")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
