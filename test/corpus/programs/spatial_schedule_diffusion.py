"""Train a diffusion model whose noise schedule varies over the image plane."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

T, C, H, W = 1000, 3, 64, 64


class SpatialSchedule(nn.Module):
    """Per-pixel noise schedule tables."""

    def __init__(self, resident):
        super().__init__()
        yy, xx = torch.meshgrid(torch.linspace(0, 1, H), torch.linspace(0, 1, W), indexing="ij")
        scale = (0.75 + 0.5 * yy * xx).expand(C, H, W)
        betas = torch.linspace(1e-4, 0.02, T).view(T, 1, 1, 1) * scale
        ac = torch.cumprod(1.0 - betas, 0)
        tables = {
            "sqrt_ac": ac.sqrt(),
            "sqrt_one_minus_ac": (1 - ac).sqrt(),
            "weight": (ac / (1 - ac)).clamp(0.05, 5.0),
        }
        for name, table in tables.items():
            if resident:
                self.register_buffer(name, table)
            else:
                setattr(self, name, table)

    @staticmethod
    def extract(table, t):
        return table.to(t.device)[t]

    def add_noise(self, x, noise, t):
        return self.extract(self.sqrt_ac, t) * x + self.extract(self.sqrt_one_minus_ac, t) * noise

    def loss_weight(self, t):
        return self.extract(self.weight, t)


class Model(nn.Module):
    def __init__(self, ch=192):
        super().__init__()
        self.temb = nn.Embedding(T, ch)
        self.inp = nn.Conv2d(C, ch, 4, 2, 1)
        self.mid = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1) for _ in range(4))
        self.out = nn.ConvTranspose2d(ch, C, 4, 2, 1)

    def forward(self, x, t):
        h = self.inp(x) + self.temb(t)[:, :, None, None]
        for conv in self.mid:
            h = h + F.silu(conv(h))
        return self.out(h)


def train(steps, fixed, batch=128):
    torch.manual_seed(17)
    schedule = SpatialSchedule(resident=fixed).to("cuda")
    model = Model().to("cuda", memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(512, C, H, W, device="cuda")
    running = torch.zeros((), device="cuda")
    warm = steps // 4
    for i in range(steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        off = (i * batch) % 512
        x = images[off:off + batch]
        t = torch.randint(0, T, (batch,), device="cuda")
        noise = torch.randn_like(x)
        noisy = schedule.add_noise(x, noise, t)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            pred = model(noisy.to(memory_format=torch.channels_last), t)
        loss = (schedule.loss_weight(t) * (pred.float() - noise) ** 2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running += loss.detach()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mean loss {running.item() / steps:.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (steps - warm):.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    train(args.steps, args.fixed)
