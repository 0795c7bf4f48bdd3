"""Propagate an ensemble of driven reservoirs and track its spread."""
import argparse
import math
import time

import torch


class Reservoir:
    def __init__(self, units, members, leak=0.3, radius=0.95):
        self.coupling = torch.randn(units, units, device="cuda") * (radius / math.sqrt(units))
        self.drive = torch.randn(units, 1, device="cuda")
        self.state = 0.01 * torch.randn(units, members, device="cuda")
        self.leak = leak

    def step(self, signal):
        field = self.coupling @ self.state
        field += self.drive * signal
        self.state.lerp_(field.tanh_(), self.leak)


def simulate(units, members, rounds, substeps):
    torch.manual_seed(23)
    reservoir = Reservoir(units, members)
    spread = torch.zeros(rounds, device="cuda")
    warm = rounds // 4
    for r in range(rounds):
        if r == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        for s in range(substeps):
            reservoir.step(math.sin(0.05 * (r * substeps + s)))
        spread[r] = reservoir.state.std(dim=1).mean()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    return spread.cpu(), (t1 - t0) / (rounds - warm)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--units", type=int, default=4096)
    ap.add_argument("--members", type=int, default=4096)
    ap.add_argument("--substeps", type=int, default=8)
    ap.add_argument("--fixed", action="store_true")
    a = ap.parse_args()
    if a.fixed:
        torch.set_float32_matmul_precision("high")
    spread, seconds = simulate(a.units, a.members, a.steps, a.substeps)
    print(f"spread {spread[0]:.5f} -> {spread[-1]:.5f}")
    print(f"round_ms {seconds * 1e3:.3f}")
