"""Train a small diffusion model and keep moving averages of its weights."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Eps(nn.Module):
    def __init__(self, ch=64, depth=12):
        super().__init__()
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.temb = nn.Embedding(1000, ch)
        self.body = nn.ModuleList(nn.Conv2d(ch, ch, 3, padding=1) for _ in range(depth))
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        h = self.inp(x) + self.temb(t)[:, :, None, None]
        for conv in self.body:
            h = F.relu(conv(h))
        return self.out(h)


class MovingAverages:
    """Several decays at once, so that the best can be chosen afterwards."""

    def __init__(self, model, decays, grouped):
        self.decays, self.grouped = decays, grouped
        self.params = list(model.parameters())
        self.shadow = {d: [p.detach().clone() for p in self.params] for d in decays}

    @torch.no_grad()
    def update(self):
        for d in self.decays:
            avg = self.shadow[d]
            if self.grouped:
                torch._foreach_lerp_(avg, self.params, 1.0 - d)
                continue
            for i, p in enumerate(self.params):
                avg[i].copy_(avg[i] * d + p * (1.0 - d))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=24)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(8)
    model = Eps().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    ema = MovingAverages(model, (0.99, 0.999, 0.9995, 0.9999), grouped=args.fixed)
    ac = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device="cuda"), 0)
    data = torch.randn(256, 3, 32, 32, device="cuda")
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        off = (step * args.batch) % 256
        x = data[off:off + args.batch]
        t = torch.randint(0, 1000, (args.batch,), device="cuda")
        noise = torch.randn_like(x)
        a = ac[t].view(-1, 1, 1, 1)
        loss = F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema.update()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"loss {loss.item():.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
