"""Causal LM pre-training on one GPU: 0.7 B parameters, bf16 autocast, SDPA, fused AdamW."""
import argparse
import math
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, SEQ = 32000, 1024


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(dim, 3 * dim, bias=False)
        self.c_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                   for z in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = CausalSelfAttention(dim, heads)
        self.ln_2 = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, 4 * dim, bias=False)
        self.proj = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, dim=2048, layers=12, heads=16):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, dim)
        self.wpe = nn.Embedding(SEQ, dim)
        self.h = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, VOCAB, bias=False)
        self.lm_head.weight = self.wte.weight
        self.apply(self._init)
        for name, p in self.named_parameters():
            if name.endswith("proj.weight"):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe.weight[:idx.size(1)]
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


class TokenStream:
    """Random windows of a token array, staged through pinned memory one batch ahead."""

    def __init__(self, tokens, batch, device, seed=1):
        self.tokens, self.batch, self.device = tokens, batch, device
        self.rng = np.random.default_rng(seed)
        self.pending = self._fetch()

    def _fetch(self):
        starts = self.rng.integers(0, len(self.tokens) - SEQ - 1, self.batch)
        rows = np.stack([self.tokens[s:s + SEQ + 1] for s in starts]).astype(np.int64)
        return torch.from_numpy(rows).pin_memory().to(self.device, non_blocking=True)

    def next(self):
        rows, self.pending = self.pending, self._fetch()
        return rows[:, :-1], rows[:, 1:].contiguous()


def learning_rate(step, total, peak=3e-4, warmup=20):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=90)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--fixed", action="store_true", help="no effect here")
    args = ap.parse_args()

    torch.manual_seed(1337)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    corpus = np.minimum(np.random.default_rng(0).zipf(1.2, 4_000_000), VOCAB - 1).astype(np.uint16)
    stream = TokenStream(corpus, args.batch, device)
    with device:
        model = GPT()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1},
                             {"params": rest, "weight_decay": 0.0}],
                            lr=3e-4, betas=(0.9, 0.95), fused=True)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters", flush=True)

    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        for group in opt.param_groups:
            group["lr"] = learning_rate(step, args.steps)
        x, y = stream.next()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if (step + 1) % 25 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  "
                  f"mem {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB", flush=True)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - t0
    n = args.steps - warm
    print(f"{args.batch * SEQ * n / elapsed:.0f} tokens/s")
    print(f"round_ms {elapsed * 1000 / n:.3f}")


if __name__ == "__main__":
    main()
