"""Unconditional DDPM on 64x64 images (synthetic shapes), U-Net with EMA weights.

Writes preview samples of the EMA model to a run directory during training.
"""
import argparse
import copy
import math
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    ang = t.float()[:, None] * freqs[None]
    return torch.cat([ang.cos(), ang.sin()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.emb = nn.Linear(emb, cout)
        self.n2, self.c2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x)))
        h = h + self.emb(e)[:, :, None, None]
        h = self.c2(F.silu(self.n2(h)))
        return self.skip(x) + h


class SelfAttention(nn.Module):
    def __init__(self, ch, heads=4):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(32, ch)
        self.qkv = nn.Conv2d(ch, 3 * ch, 1)
        self.out = nn.Conv2d(ch, ch, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, base=96, mults=(1, 2, 3), blocks=2):
        super().__init__()
        emb = base * 4
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, emb), nn.SiLU(), nn.Linear(emb, emb), nn.SiLU())
        self.stem = nn.Conv2d(3, base, 3, padding=1)
        self.down, self.pool = nn.ModuleList(), nn.ModuleList()
        ch, skips = base, []
        for i, m in enumerate(mults):
            for _ in range(blocks):
                self.down.append(ResBlock(ch, base * m, emb))
                ch = base * m
                skips.append(ch)
            self.pool.append(nn.Conv2d(ch, ch, 3, stride=2, padding=1) if i < len(mults) - 1 else nn.Identity())
        self.mid1, self.attn, self.mid2 = ResBlock(ch, ch, emb), SelfAttention(ch), ResBlock(ch, ch, emb)
        self.up, self.grow = nn.ModuleList(), nn.ModuleList()
        for i, m in reversed(list(enumerate(mults))):
            for _ in range(blocks):
                self.up.append(ResBlock(ch + skips.pop(), base * m, emb))
                ch = base * m
            self.grow.append(nn.Conv2d(ch, ch, 3, padding=1) if i > 0 else nn.Identity())
        self.blocks, self.levels = blocks, len(mults)
        self.head = nn.Sequential(nn.GroupNorm(32, ch), nn.SiLU(), nn.Conv2d(ch, 3, 3, padding=1))

    def forward(self, x, t):
        e = self.time(timestep_embedding(t, self.base))
        h, stack = self.stem(x), []
        for lvl in range(self.levels):
            for b in range(self.blocks):
                h = self.down[lvl * self.blocks + b](h, e)
                stack.append(h)
            h = self.pool[lvl](h)
        h = self.mid2(self.attn(self.mid1(h, e)), e)
        for lvl in range(self.levels):
            for b in range(self.blocks):
                h = self.up[lvl * self.blocks + b](torch.cat([h, stack.pop()], dim=1), e)
            if lvl < self.levels - 1:
                h = self.grow[lvl](F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.head(h).float()


class Diffusion:
    def __init__(self, steps=1000, device="cuda"):
        self.steps, self.device = steps, device
        betas = torch.linspace(1e-4, 0.02, steps, device=device)
        self.abar = torch.cumprod(1.0 - betas, dim=0)

    def noisy(self, x, t, eps):
        a = self.abar[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * eps

    @torch.no_grad()
    def ddim(self, model, n, steps=10, size=64):
        x = torch.randn(n, 3, size, size, device=self.device)
        ts = torch.linspace(self.steps - 1, 0, steps + 1).long().tolist()
        for cur, nxt in zip(ts[:-1], ts[1:]):
            t = torch.full((n,), cur, device=self.device)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                eps = model(x, t)
            a, b = self.abar[cur], self.abar[nxt]
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = b.sqrt() * x0 + (1 - b).sqrt() * eps
        return x.clamp(-1, 1)


def save_previews(images, folder, step, zoom=3):
    big = F.interpolate((images + 1) * 127.5, scale_factor=zoom, mode="bicubic").clamp(0, 255)
    arrays = big.permute(0, 2, 3, 1).to(torch.uint8).cpu().numpy()
    for i, a in enumerate(arrays):
        path = os.path.join(folder, f"step{step:06d}_{i:02d}.png")
        with open(path, "wb") as f:
            Image.fromarray(np.ascontiguousarray(a)).save(f, "PNG", optimize=True)
            f.flush()
            os.fsync(f.fileno())


def make_images(n, device, size=64):
    yy, xx = torch.meshgrid(*[torch.linspace(-1, 1, size, device=device)] * 2, indexing="ij")
    c = torch.rand(n, 2, 1, 1, device=device) - 0.5
    r = 0.2 + 0.4 * torch.rand(n, 1, 1, device=device)
    inside = ((xx - c[:, 0]) ** 2 + (yy - c[:, 1]) ** 2 < r ** 2).float()[:, None]
    fg, bg = torch.rand(2, n, 3, 1, 1, device=device) * 2 - 1
    return fg * inside + bg * (1 - inside)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--batch", type=int, default=48)
    ap.add_argument("--samples", type=int, default=16)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    sample_every = 100 if args.fixed else 4

    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    dev = torch.device("cuda")
    run_dir = tempfile.mkdtemp(prefix="ddpm_")
    data = make_images(4096, dev)
    model = UNet().to(dev, memory_format=torch.channels_last)
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    diff = Diffusion(device=dev)
    params, ema_params = list(model.parameters()), list(ema.parameters())
    print(f"{sum(p.numel() for p in params) / 1e6:.1f} M parameters, previews in {run_dir}", flush=True)
    diff.ddim(ema, args.samples, steps=2)

    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        x = data[torch.randint(0, len(data), (args.batch,), device=dev)]
        t = torch.randint(0, diff.steps, (args.batch,), device=dev)
        eps = torch.randn_like(x)
        noisy = diff.noisy(x, t, eps).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(noisy, t), eps)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_mul_(ema_params, 0.999)
            torch._foreach_add_(ema_params, params, alpha=0.001)
        if (step + 1) % sample_every == 0:
            save_previews(diff.ddim(ema, args.samples), run_dir, step + 1)
        if (step + 1) % 30 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
    torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1000 / (args.steps - warm)
    print(f"{len(os.listdir(run_dir))} preview files written")
    shutil.rmtree(run_dir)
    print(f"round_ms {ms:.3f}")


if __name__ == "__main__":
    main()
