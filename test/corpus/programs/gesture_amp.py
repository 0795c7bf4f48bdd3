"""Gestures from a wrist sensor: a slim transformer trained in half precision."""
import argparse
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Setup:
    channels: int = 6
    frames: int = 32
    dim: int = 48
    heads: int = 4
    layers: int = 10
    gestures: int = 8
    batch: int = 64
    lr: float = 6e-4
    warm: int = 20
    seconds: float = 2.2


class SlimLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.mix = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.wide, self.back = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-1, -2) * (d // self.heads) ** -0.5).softmax(-1)
        x = x + self.mix((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.back(F.gelu(self.wide(self.norm_b(x))))


class GestureNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.enter = nn.Linear(s.channels, s.dim)
        self.place = nn.Parameter(0.02 * torch.randn(s.frames, s.dim))
        self.layers = nn.ModuleList(SlimLayer(s.dim, s.heads) for _ in range(s.layers))
        self.out = nn.Linear(s.dim, s.gestures)

    def forward(self, x):
        x = self.enter(x) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))


def record_gestures(s, count):
    label = torch.randint(0, s.gestures, (count,), device="cuda")
    t = torch.linspace(0, 6.28, s.frames, device="cuda").view(1, -1, 1)
    axis = torch.arange(1, s.channels + 1, device="cuda").view(1, 1, -1)
    wave = torch.sin(t * (1 + label.view(-1, 1, 1) % 4) + axis * label.view(-1, 1, 1))
    return wave + 0.2 * torch.randn_like(wave), label


class HalfTrainer:
    def __init__(self, s, graphed):
        self.s = s
        self.net = GestureNet(s).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=s.lr, fused=True)
        self.scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=500)
        self.x = torch.zeros(s.batch, s.frames, s.channels, device="cuda")
        self.y = torch.zeros(s.batch, dtype=torch.long, device="cuda")
        self.graph = self.record() if graphed else None

    def gradients(self):
        with torch.autocast("cuda", torch.float16, cache_enabled=False):
            self.loss = F.cross_entropy(self.net(self.x), self.y)
        self.scaler.scale(self.loss).backward()

    def record(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.opt.zero_grad(set_to_none=True)
                self.gradients()
        torch.cuda.current_stream().wait_stream(side)
        self.opt.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.gradients()
        return graph

    def learn(self, x, y):
        self.x.copy_(x)
        self.y.copy_(y)
        if self.graph is not None:
            self.graph.replay()
        else:
            self.opt.zero_grad(set_to_none=True)
            self.gradients()
        self.scaler.step(self.opt)
        self.scaler.update()


@torch.no_grad()
def hit_rate(net, x, y):
    with torch.autocast("cuda", torch.float16):
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    s = Setup()
    torch.manual_seed(23)
    xs, ys = record_gestures(s, s.batch * 64)
    test = record_gestures(s, 1024)
    trainer = HalfTrainer(s, args.fixed)
    xs, ys = xs.split(s.batch), ys.split(s.batch)
    for i in range(s.warm):
        trainer.learn(xs[i % 64], ys[i % 64])
    torch.cuda.synchronize()
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < s.seconds:
        trainer.learn(xs[n % 64], ys[n % 64])
        n += 1
        if n % 200 == 0:
            print(f"batch {n} loss {trainer.loss.item():.4f} scale {trainer.scaler.get_scale():.0f}")
    torch.cuda.synchronize()
    ms = (time.perf_counter() - start) * 1e3 / n
    print(f"hit rate {hit_rate(trainer.net, *test):.3f}")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
