"""Denoise a pool of latents in which every sample is at its own timestep."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

T = 1000


class Denoiser(nn.Module):
    def __init__(self, ch=256):
        super().__init__()
        self.temb = nn.Embedding(T, ch)
        self.inp = nn.Conv2d(4, ch, 3, padding=1)
        self.mid = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1) for _ in range(5))
        self.out = nn.Conv2d(ch, 4, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.temb(t)[:, :, None, None]
        for conv in self.mid:
            h = h + F.silu(conv(h))
        return self.out(h)


class Scheduler:
    def __init__(self, device):
        betas = torch.linspace(1e-4, 0.02, T, device=device)
        self.ac = torch.cumprod(1 - betas, 0)
        self.stride = 20

    def coeffs(self, t):
        """alpha for the current and the next timestep of each sample, and the next t."""
        rows = []
        for i in range(t.shape[0]):
            cur = int(t[i].item())
            nxt = cur - self.stride if cur >= self.stride else T - 1
            rows.append((self.ac[cur].item(), self.ac[nxt].item(), nxt))
        a, b, n = zip(*rows)
        return torch.tensor(a, device=t.device), torch.tensor(b, device=t.device), torch.tensor(n, device=t.device)

    def coeffs_batched(self, t):
        nxt = torch.where(t >= self.stride, t - self.stride, T - 1)
        return self.ac[t], self.ac[nxt], nxt


@torch.inference_mode()
def run(steps, pool, fixed):
    torch.manual_seed(31)
    model = Denoiser().cuda().bfloat16().to(memory_format=torch.channels_last).eval()
    sched = Scheduler("cuda")
    coeffs = sched.coeffs_batched if fixed else sched.coeffs
    x = torch.randn(pool, 4, 48, 48, device="cuda")
    t = torch.randint(0, T, (pool,), device="cuda")
    warm = steps // 4
    for i in range(steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        eps = model(x.bfloat16().to(memory_format=torch.channels_last), t).float()
        a, b, nxt = coeffs(t)
        a, b = a.view(-1, 1, 1, 1), b.view(-1, 1, 1, 1)
        x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-3, 3)
        x = b.sqrt() * x0 + (1 - b).sqrt() * eps
        t = nxt
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mean {x.mean().item():.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (steps - warm):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--pool", type=int, default=96)
    parser.add_argument("--fixed", action="store_true")
    ns = parser.parse_args()
    run(ns.steps, ns.pool, ns.fixed)
