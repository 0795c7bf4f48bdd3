"""Pretrain a GPT in bf16 on random tokens."""
import argparse
import logging
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import nvtx

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("pretrain")


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1 = nn.LayerNorm(dim, bias=False)
        self.n2 = nn.LayerNorm(dim, bias=False)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GPT(nn.Module):
    def __init__(self, vocab, dim, heads, layers, ctx):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Embedding(ctx, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim, bias=False)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.register_buffer("ids", torch.arange(ctx), persistent=False)

    def forward(self, x, y):
        h = self.wte(x) + self.wpe(self.ids)
        for layer in self.layers:
            h = layer(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


class Trainer:
    def __init__(self, steps):
        self.steps = steps
        with torch.device("cuda"):
            self.model = GPT(16384, 3072, 24, 4, 1024).to(torch.bfloat16)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.pool = torch.randint(0, 16384, (16, 8, 1025)).pin_memory()

    def run(self):
        warm = self.steps // 4
        for i in range(self.steps):
            if i == warm:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            with nvtx.range("batch"):
                tokens = self.pool[i % 16].to("cuda", non_blocking=True)
            with nvtx.range("forward"):
                loss = self.model(tokens[:, :-1], tokens[:, 1:])
            with nvtx.range("backward"):
                loss.backward()
            with nvtx.range("optimizer"):
                self.opt.step()
                self.opt.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        ms = 1e3 * (time.perf_counter() - t0) / (self.steps - warm)
        log.info("loss %.3f", loss.item())
        print(f"round_ms {ms:.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=45)
    cli.add_argument("--fixed", action="store_true")
    opts = cli.parse_args()
    torch.manual_seed(0)
    Trainer(opts.steps).run()
