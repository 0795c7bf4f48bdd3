"""Train a denoiser on scan slices."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.graph import save_on_cpu


class Stage(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1)
        self.b = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(x)))


class Denoiser(nn.Module):
    def __init__(self, channels=64, pin=False):
        super().__init__()
        self.pin = pin
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.wide = Stage(channels)
        self.down = nn.Conv2d(channels, 256, 4, stride=4)
        self.core = nn.Sequential(*[Stage(256) for _ in range(4)])
        self.up = nn.ConvTranspose2d(256, channels, 4, stride=4)
        self.out = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, x):
        h = self.stem(x)
        with save_on_cpu(pin_memory=self.pin):
            h = self.wide(h)
        h = h + self.up(self.core(self.down(h)))
        return x - self.out(h)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=32)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(17)
    model = Denoiser(pin=args.fixed).cuda().to(torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    slices = torch.rand(4, args.batch, 1, 128, 128, device="cuda", dtype=torch.bfloat16)
    warm = args.steps // 4
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        clean = slices[i % 4]
        noisy = clean + 0.1 * torch.randn_like(clean)
        loss = F.mse_loss(model(noisy), clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mse {loss.item():.5f}")
    print(f"round_ms {1e3 * (t1 - t0) / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
