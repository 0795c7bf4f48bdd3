"""Train a wide vision transformer on synthetic images."""
import argparse
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ViTConfig:
    dim: int = 2048
    depth: int = 3
    heads: int = 16
    patches: int = 256
    batch: int = 96
    classes: int = 1000
    steps: int = 50


class Encoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.n1, self.n2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.proj = nn.Linear(c.dim, 3 * c.dim), nn.Linear(c.dim, c.dim)
        self.up, self.down = nn.Linear(c.dim, 4 * c.dim), nn.Linear(4 * c.dim, c.dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class ViT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patch = nn.Linear(3 * 14 * 14, c.dim)
        self.blocks = nn.ModuleList(Encoder(c) for _ in range(c.depth))
        self.head = nn.Linear(c.dim, c.classes)

    def forward(self, x):
        x = self.patch(x)
        for blk in self.blocks:
            x = blk(x)
        return self.head(x.mean(1))


def main(c):
    torch.manual_seed(0)
    model = ViT(c).cuda().bfloat16()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    host = [torch.randn(c.batch, c.patches, 588).bfloat16().pin_memory() for _ in range(2)]
    labels = torch.randint(0, c.classes, (2, c.batch), device="cuda")
    total = torch.zeros((), device="cuda")
    warm = c.steps // 4
    for step in range(c.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        torch.cuda.nvtx.range_push("step")
        x = host[step % 2].to("cuda", non_blocking=True)
        loss = F.cross_entropy(model(x).float(), labels[step % 2])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mean loss {total.item() / c.steps:.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (c.steps - warm):.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=ViTConfig.steps)
    ap.add_argument("--fixed", action="store_true")
    ns = ap.parse_args()
    main(ViTConfig(steps=ns.steps))
