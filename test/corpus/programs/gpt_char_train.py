"""Train a small character-level GPT on synthetic text."""
import argparse
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 96
    block: int = 128
    layers: int = 3
    heads: int = 4
    dim: int = 256
    batch: int = 16
    lr: float = 3e-4


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h = c.heads
        self.ln1 = nn.LayerNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim)
        self.proj = nn.Linear(c.dim, c.dim)
        self.ln2 = nn.LayerNorm(c.dim)
        self.fc = nn.Linear(c.dim, 4 * c.dim)
        self.out = nn.Linear(4 * c.dim, c.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class CharGPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c.vocab, c.dim)
        self.pos = nn.Parameter(torch.randn(c.block, c.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.layers)])
        self.ln = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab)

    def forward(self, idx, targets):
        x = self.blocks(self.tok(idx) + self.pos)
        logits = self.head(self.ln(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--fixed", action="store_true")
    args = p.parse_args()
    torch.manual_seed(1337)
    torch.set_float32_matmul_precision("high")
    cfg = Config()
    model = CharGPT(cfg).cuda()
    if args.fixed:
        opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.1, fused=True)
    else:
        opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.1, foreach=False)
    data = torch.randint(0, cfg.vocab, (200_000,), device="cuda")
    offs = torch.arange(cfg.block + 1, device="cuda")

    warm = args.steps // 4
    loss = None
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        ix = torch.randint(0, data.numel() - cfg.block - 1, (cfg.batch, 1), device="cuda")
        chunk = data[ix + offs]
        loss = model(chunk[:, :-1], chunk[:, 1:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    print(f"final loss {loss.item():.4f}")
    print(f"round_ms {1000 * elapsed / (args.steps - warm):.4f}")


if __name__ == "__main__":
    main()
