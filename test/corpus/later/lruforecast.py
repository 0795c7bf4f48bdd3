#!/usr/bin/env python
"""Train a gated linear recurrent network to forecast plant sensor channels.

Each block is norm -> (gate branch * recurrent branch) -> projection, then an
MLP. The recurrence is the real-gated LRU:  h_t = a_t * h_{t-1} + b_t.
"""
import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional as F


def recurrence(a, b):
    """h_t = a_t * h_{t-1} + b_t along dim 1, h_{-1} = 0."""
    h = torch.zeros_like(b[:, 0])
    out = []
    for a_t, b_t in zip(a.unbind(1), b.unbind(1)):
        h = a_t * h + b_t
        out.append(h)
    return torch.stack(out, dim=1)


def recurrence_scan(a, b):
    """h_t = a_t * h_{t-1} + b_t along dim 1, h_{-1} = 0 (recursive doubling)."""
    d = 1
    while d < a.shape[1]:
        b = torch.cat([b[:, :d], torch.addcmul(b[:, d:], a[:, d:], b[:, :-d])], dim=1)
        a = torch.cat([a[:, :d], a[:, d:] * a[:, :-d]], dim=1)
        d *= 2
    return b


class GatedRecurrence(nn.Module):
    C = 8.0

    def __init__(self, dim, scan):
        super().__init__()
        self.scan = scan
        self.input_gate = nn.Linear(dim, dim)
        self.decay_gate = nn.Linear(dim, dim)
        u = torch.rand(dim) * 0.099 + 0.9
        self.log_lambda = nn.Parameter(torch.log(torch.expm1(-torch.log(u) / self.C)))

    def forward(self, x):
        r = torch.sigmoid(self.decay_gate(x))
        i = torch.sigmoid(self.input_gate(x))
        log_a = -self.C * F.softplus(self.log_lambda) * r
        a = torch.exp(log_a)
        b = torch.sqrt(-torch.expm1(2 * log_a) + 1e-6) * (i * x)
        return self.scan(a, b)


class Block(nn.Module):
    def __init__(self, dim, scan):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, dim)
        self.inp = nn.Linear(dim, dim)
        self.conv = nn.Conv1d(dim, dim, 4, groups=dim, padding=3)
        self.rec = GatedRecurrence(dim, scan)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        u = self.conv(self.inp(y).transpose(1, 2))[..., : x.shape[1]].transpose(1, 2).contiguous()
        x = x + self.out(F.gelu(self.gate(y)) * self.rec(u))
        return x + self.mlp(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, channels, dim, depth, horizon, scan):
        super().__init__()
        self.embed = nn.Linear(channels, dim)
        self.blocks = nn.Sequential(*[Block(dim, scan) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, channels * horizon)
        self.horizon = horizon

    def forward(self, x):
        y = self.head(self.norm(self.blocks(self.embed(x))))
        return y.view(*x.shape[:2], self.horizon, x.shape[2])


class PlantData:
    """Long multichannel record; batches are random windows of it."""

    def __init__(self, length, channels, device):
        g = torch.Generator(device=device).manual_seed(8)
        t = torch.arange(length, device=device, dtype=torch.float32)[:, None]
        period = torch.logspace(1.2, 3.2, channels, device=device)
        phase = 2 * math.pi * torch.rand(channels, device=device, generator=g)
        noise = torch.randn(length, channels, device=device, generator=g)
        drift = torch.cumsum(noise * 0.01, 0)
        self.x = torch.sin(2 * math.pi * t / period + phase) + (drift - drift.mean(0)) / drift.std(0) + 0.1 * noise
        self.g = g

    def batch(self, n, window, horizon):
        start = torch.randint(0, len(self.x) - window - horizon, (n, 1), device=self.x.device, generator=self.g)
        at = start + torch.arange(window + horizon, device=self.x.device)
        w = self.x[at]
        target = w[:, 1:].unfold(1, horizon, 1)[:, :window].transpose(2, 3)
        return w[:, :window], target


def main():
    p = argparse.ArgumentParser(description="gated linear recurrence forecaster")
    p.add_argument("--steps", type=int, default=130)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--window", type=int, default=256)
    p.add_argument("--horizon", type=int, default=8)
    p.add_argument("--channels", type=int, default=24)
    p.add_argument("--dim", type=int, default=512)
    p.add_argument("--depth", type=int, default=4)
    p.add_argument("--lr", type=float, default=4e-4)
    p.add_argument("--fixed", action="store_true")
    a = p.parse_args()

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    dev = "cuda"
    data = PlantData(200_000, a.channels, dev)
    net = Forecaster(a.channels, a.dim, a.depth, a.horizon, recurrence_scan if a.fixed else recurrence).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=a.lr, weight_decay=0.02, fused=True)
    print(f"{sum(q.numel() for q in net.parameters()) / 1e6:.2f} M parameters, window {a.window}")

    def train_step():
        x, y = data.batch(a.batch_size, a.window, a.horizon)
        loss = F.smooth_l1_loss(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        return loss.detach()

    train_step()
    torch.cuda.synchronize()
    warm = a.steps // 4
    begin = time.perf_counter()
    for step in range(a.steps):
        if step == warm:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        loss = train_step()
        if step % 25 == 0:
            print(f"step {step:5d}  loss {loss.item():.4f}", flush=True)
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - begin) * 1e3 / (a.steps - warm):.4f}")


if __name__ == "__main__":
    main()
