"""Sample small images with a DDIM loop and a compact U-Net."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, ch, emb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, ch), nn.Conv2d(ch, ch, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(8, ch), nn.Conv2d(ch, ch, 3, padding=1)
        self.e = nn.Linear(emb, ch)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.e(e)[:, :, None, None]
        return x + self.c2(F.silu(self.n2(h)))


class UNet(nn.Module):
    def __init__(self, ch=64, emb=128):
        super().__init__()
        self.emb = nn.Sequential(nn.Linear(64, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.d1, self.down = ResBlock(ch, emb), nn.Conv2d(ch, ch * 2, 3, 2, 1)
        self.m1, self.m2 = ResBlock(ch * 2, emb), ResBlock(ch * 2, emb)
        self.up = nn.ConvTranspose2d(ch * 2, ch, 2, 2)
        self.u1, self.out = ResBlock(ch, emb), nn.Conv2d(ch, 3, 3, padding=1)
        self.register_buffer("freqs", torch.exp(-torch.arange(32) * 0.28))

    def forward(self, x, t):
        a = t.float()[:, None] * self.freqs
        e = F.silu(self.emb(torch.cat([a.sin(), a.cos()], 1)))
        h1 = self.d1(self.inp(x), e)
        h = self.m2(self.m1(self.down(h1), e), e)
        return self.out(self.u1(self.up(h) + h1, e))


class Sampler:
    def __init__(self, steps, batch, graphed):
        self.model = UNet().cuda().eval()
        ac = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device="cuda"), 0)
        idx = torch.linspace(999, 0, steps, device="cuda").long()
        self.ts, self.cur = idx, ac[idx]
        self.nxt = torch.cat([ac[idx[1:]], ac.new_ones(1)])
        self.x = torch.randn(batch, 3, 32, 32, device="cuda")
        self.t = torch.zeros(batch, dtype=torch.long, device="cuda")
        self.a, self.b = torch.ones((), device="cuda"), torch.ones((), device="cuda")
        self.graph = None
        if graphed:
            self.capture()

    def denoise(self):
        eps = self.model(self.x, self.t)
        x0 = (self.x - (1 - self.a).sqrt() * eps) / self.a.sqrt()
        x0 = x0.clamp(-1, 1)
        self.x.copy_(self.b.sqrt() * x0 + (1 - self.b).sqrt() * eps)

    def capture(self):
        keep = self.x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.denoise()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.denoise()
        self.x.copy_(keep)

    def step(self, i):
        self.t.copy_(self.ts[i].expand_as(self.t))
        self.a.copy_(self.cur[i])
        self.b.copy_(self.nxt[i])
        if self.graph is None:
            self.denoise()
        else:
            self.graph.replay()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=140)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    warm = args.steps // 4
    with torch.no_grad():
        s = Sampler(args.steps, args.batch, args.fixed)
        for i in range(args.steps):
            if i == warm:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            s.step(i)
        torch.cuda.synchronize()
        t1 = time.perf_counter()
    print(f"std {s.x.std().item():.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.4f}")


if __name__ == "__main__":
    main()
