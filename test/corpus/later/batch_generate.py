#!/usr/bin/env python3
# Offline batched text generation with a decoder-only LM and a static KV cache.
import argparse
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class LMConfig:
    vocab: int = 32000
    dim: int = 1024
    heads: int = 16
    layers: int = 16
    max_len: int = 1024


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.h, self.hd = cfg.heads, cfg.dim // cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.proj = nn.Linear(cfg.dim, cfg.dim, bias=False)

    def forward(self, x, cache, pos):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, self.hd).permute(2, 0, 3, 1, 4)
        ck, cv = cache
        ck[:, :, pos:pos + t] = k
        cv[:, :, pos:pos + t] = v
        y = F.scaled_dot_product_attention(q, ck[:, :, :pos + t], cv[:, :, :pos + t], is_causal=t > 1)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn = Attention(cfg)
        self.up = nn.Linear(cfg.dim, 4 * cfg.dim, bias=False)
        self.down = nn.Linear(4 * cfg.dim, cfg.dim, bias=False)

    def forward(self, x, cache, pos):
        x = x + self.attn(self.ln1(x), cache, pos)
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class DecoderLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Embedding(cfg.max_len, cfg.dim)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def new_cache(self, batch):
        p = self.head.weight
        shape = (batch, self.cfg.heads, self.cfg.max_len, self.cfg.dim // self.cfg.heads)
        return [(p.new_zeros(shape), p.new_zeros(shape)) for _ in self.layers]

    def forward(self, ids, cache, pos):
        x = self.tok(ids) + self.pos.weight[pos:pos + ids.size(1)]
        for layer, c in zip(self.layers, cache):
            x = layer(x, c, pos)
        return self.head(self.norm(x[:, -1]))


def sample(logits, temperature=0.9, top_k=50):
    vals, idx = torch.topk(logits.float() / temperature, top_k, dim=-1)
    choice = torch.multinomial(F.softmax(vals, dim=-1), 1)
    return idx.gather(1, choice).squeeze(1)


class StopCheckerHost:
    """Ends a sequence at EOS or at any of the stop sequences."""

    def __init__(self, batch, eos, stops, device):
        self.eos, self.stops = eos, stops
        self.finished = [False] * batch
        self.alive = torch.ones(batch, dtype=torch.bool, device=device)

    def _ends_with(self, tokens, row, cur, stop):
        for j, want in enumerate(reversed(stop)):
            if tokens[row, cur - j].item() != want:
                return False
        return True

    def update(self, tokens, cur):
        for row in range(len(self.finished)):
            if self.finished[row]:
                continue
            if tokens[row, cur].item() == self.eos or any(
                    self._ends_with(tokens, row, cur, s) for s in self.stops):
                self.finished[row] = True
                self.alive[row] = False
        return all(self.finished)


class StopCheckerDevice:
    def __init__(self, batch, eos, stops, device, poll=32):
        seqs = [[eos]] + stops
        self.width = max(map(len, seqs))
        want = torch.full((len(seqs), self.width), -1, dtype=torch.long)
        for i, s in enumerate(seqs):
            want[i, self.width - len(s):] = torch.tensor(s)
        self.want = want.to(device)
        self.any_tok = self.want < 0
        self.alive = torch.ones(batch, dtype=torch.bool, device=device)
        self.poll, self.calls = poll, 0

    def update(self, tokens, cur):
        window = tokens[:, cur - self.width + 1:cur + 1].unsqueeze(1)
        hit = ((window == self.want) | self.any_tok).all(-1).any(-1)
        self.alive &= ~hit
        self.calls += 1
        return self.calls % self.poll == 0 and not self.alive.any().item()


@torch.inference_mode()
def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--batch", type=int, default=96)
    ap.add_argument("--prompt-len", type=int, default=64)
    ap.add_argument("--steps", type=int, default=850, help="new tokens for each sequence")
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(1234)
    cfg = LMConfig()
    assert args.prompt_len + args.steps < cfg.max_len
    device = "cuda"
    model = DecoderLM(cfg).to(device, torch.bfloat16).eval()
    print(f"params {sum(p.numel() for p in model.parameters()) / 1e6:.0f} M")

    eos, pad = 2, 0
    stops = [[13, 13], [2277, 29937], [11889, 29901, 29871]]
    tokens = torch.full((args.batch, cfg.max_len), pad, dtype=torch.long, device=device)
    tokens[:, :args.prompt_len] = torch.randint(3, cfg.vocab, (args.batch, args.prompt_len), device=device)

    checker_cls = StopCheckerDevice if args.fixed else StopCheckerHost
    checker = checker_cls(args.batch, eos, stops, device)
    cache = model.new_cache(args.batch)
    logits = model(tokens[:, :args.prompt_len], cache, 0)
    cur = args.prompt_len
    warm = args.steps // 4
    done_steps = 0
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        nxt = sample(logits)
        tokens[:, cur] = torch.where(checker.alive, nxt, torch.full_like(nxt, pad))
        done_steps = step + 1
        if checker.update(tokens, cur):
            break
        logits = model(tokens[:, cur:cur + 1], cache, cur)
        cur += 1
        if (step + 1) % 200 == 0:
            print(f"token {step + 1}: {int(checker.alive.sum())} of {args.batch} sequences running", flush=True)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - t0
    n = done_steps - warm
    print(f"throughput {args.batch * n / elapsed:.0f} tok/s")
    print(f"round_ms {elapsed * 1000 / n:.3f}")


if __name__ == "__main__":
    main()
