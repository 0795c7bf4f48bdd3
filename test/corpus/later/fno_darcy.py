"""Train a Fourier neural operator on 2-D Darcy flow (coefficient field -> pressure)."""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class SpectralConv2d(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        scale = 1.0 / width
        self.low = nn.Parameter(scale * torch.randn(width, width, modes, modes, 2))
        self.high = nn.Parameter(scale * torch.randn(width, width, modes, modes, 2))

    def forward(self, x):
        m = self.modes
        h, w = x.shape[-2:]
        ft = torch.fft.rfft2(x, norm="ortho")
        out = torch.zeros_like(ft)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", ft[:, :, :m, :m], torch.view_as_complex(self.low))
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", ft[:, :, -m:, :m], torch.view_as_complex(self.high))
        return torch.fft.irfft2(out, s=(h, w), norm="ortho")


class Gelu(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused

    def forward(self, x):
        if self.fused:
            return F.gelu(x, approximate="tanh")
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


class FieldNorm(nn.Module):
    """Normalises each channel of each sample over the grid."""

    def __init__(self, width, fused, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.fused, self.eps = fused, eps

    def forward(self, x):
        if self.fused:
            return F.group_norm(x, x.shape[1], self.weight, self.bias, self.eps)
        mean = x.mean(dim=(-2, -1), keepdim=True)
        var = ((x - mean) ** 2).mean(dim=(-2, -1), keepdim=True)
        y = (x - mean) / torch.sqrt(var + self.eps)
        return y * self.weight.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)


class FNOBlock(nn.Module):
    def __init__(self, width, modes, fused):
        super().__init__()
        self.spectral = SpectralConv2d(width, modes)
        self.skip = nn.Conv2d(width, width, 1)
        self.norm = FieldNorm(width, fused)
        self.act = Gelu(fused)

    def forward(self, x):
        return x + self.act(self.norm(self.spectral(x) + self.skip(x)))


class FNO(nn.Module):
    def __init__(self, width, modes, depth, fused):
        super().__init__()
        self.lift = nn.Conv2d(3, width, 1)
        self.blocks = nn.Sequential(*[FNOBlock(width, modes, fused) for _ in range(depth)])
        self.project = nn.Sequential(nn.Conv2d(width, 2 * width, 1), Gelu(fused), nn.Conv2d(2 * width, 1, 1))

    def forward(self, a, grid):
        x = torch.cat([a, grid.expand(a.shape[0], -1, -1, -1)], dim=1)
        return self.project(self.blocks(self.lift(x)))


def smooth_fields(n, size, power, device):
    """Gaussian random fields, spectrum (k^2 + 9)^(-power/2)."""
    kx = torch.fft.fftfreq(size, 1.0 / size, device=device)
    ky = torch.fft.rfftfreq(size, 1.0 / size, device=device)
    spectrum = (kx[:, None] ** 2 + ky[None, :] ** 2 + 9.0) ** (-power / 2)
    field = torch.fft.irfft2(torch.fft.rfft2(torch.randn(n, 1, size, size, device=device)) * spectrum, s=(size, size))
    return field / field.std(dim=(-2, -1), keepdim=True)


def make_dataset(n, size, device):
    field = smooth_fields(n, size, 3.0, device)
    coeff = torch.where(field > 0, torch.full_like(field, 1.0), torch.full_like(field, 0.25))
    kx = torch.fft.fftfreq(size, 1.0 / size, device=device)
    ky = torch.fft.rfftfreq(size, 1.0 / size, device=device)
    green = 1.0 / (kx[:, None] ** 2 + ky[None, :] ** 2 + 1.0)
    pressure = torch.fft.irfft2(torch.fft.rfft2(1.0 / coeff) * green, s=(size, size))
    pressure = (pressure - pressure.mean()) / pressure.std()
    return coeff, pressure


def relative_l2(pred, target):
    diff = (pred - target).flatten(1).norm(dim=1)
    return (diff / target.flatten(1).norm(dim=1)).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=140)
    ap.add_argument("--samples", type=int, default=256)
    ap.add_argument("--size", type=int, default=256)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--modes", type=int, default=24)
    ap.add_argument("--depth", type=int, default=4)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    coeff, pressure = make_dataset(args.samples, args.size, device)
    axis = torch.linspace(0, 1, args.size, device=device)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij")).unsqueeze(0)

    model = FNO(args.width, args.modes, args.depth, args.fixed).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    running = torch.zeros((), device=device)

    skip = args.steps // 4
    for step in range(args.steps):
        if step == skip:
            torch.cuda.synchronize()
            start = time.perf_counter()
        pick = torch.randint(args.samples, (args.batch,), device=device)
        loss = relative_l2(model(coeff[pick], grid), pressure[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        running += loss.detach()
        if (step + 1) % 35 == 0:
            print(f"step {step + 1:4d}  rel-L2 {running.item() / 35:.4f}  lr {sched.get_last_lr()[0]:.2e}", flush=True)
            running.zero_()
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - start) / (args.steps - skip) * 1e3:.3f}")


if __name__ == "__main__":
    main()
