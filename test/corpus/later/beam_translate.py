"""Beam search decoding for a decoder-only translation model (prompt = source sentence + tag)."""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class GrowingCache:
    def __init__(self, prefill, beams, max_len):
        self.k = [k.repeat_interleave(beams, 0) for k, _ in prefill]
        self.v = [v.repeat_interleave(beams, 0) for _, v in prefill]

    @property
    def length(self):
        return self.k[-1].shape[2]

    def append(self, i, k, v):
        self.k[i] = torch.cat([self.k[i], k], dim=2)
        self.v[i] = torch.cat([self.v[i], v], dim=2)
        return self.k[i], self.v[i]

    def reorder(self, rows):
        self.k = [k.index_select(0, rows) for k in self.k]
        self.v = [v.index_select(0, rows) for v in self.v]


class StaticCache:
    def __init__(self, prefill, beams, max_len):
        self.prompt_len = self.length = prefill[0][0].shape[2]
        self.k, self.v = [], []
        for k, v in prefill:
            n, h, t, d = k.shape
            for src, bufs in ((k, self.k), (v, self.v)):
                buf = src.new_empty(n * beams, h, max_len, d)
                buf[:, :, :t] = src.repeat_interleave(beams, 0)
                bufs.append(buf)

    def append(self, i, k, v):
        end = self.length + 1
        self.k[i][:, :, self.length:end] = k
        self.v[i][:, :, self.length:end] = v
        if i == len(self.k) - 1:
            self.length = end
        return self.k[i][:, :, :end], self.v[i][:, :, :end]

    def reorder(self, rows):
        # all beams of one sentence share the prompt part
        for buf in self.k + self.v:
            tail = buf[:, :, self.prompt_len:self.length]
            tail.copy_(tail.index_select(0, rows))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, index, cache):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        new = (k, v)
        if cache is not None:
            k, v = cache.append(index, k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)))), new


class Translator(nn.Module):
    def __init__(self, vocab, dim, layers, heads, max_len):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids, cache=None):
        start = 0 if cache is None else cache.length
        pos = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.tok(ids) + self.pos(pos)
        kv = []
        for i, block in enumerate(self.blocks):
            x, new = block(x, i, cache)
            kv.append(new)
        return F.linear(self.norm(x[:, -1]), self.tok.weight), kv


class BeamSearch:
    def __init__(self, model, beams, max_new, cache_cls):
        self.model, self.beams, self.max_new, self.cache_cls = model, beams, max_new, cache_cls

    def start(self, prompts):
        n = prompts.shape[0]
        logits, kv = self.model(prompts)
        self.cache = self.cache_cls(kv, self.beams, prompts.shape[1] + self.max_new)
        self.scores, first = F.log_softmax(logits.float(), -1).topk(self.beams)
        self.last = first.reshape(-1, 1)
        self.hyps = torch.zeros(n * self.beams, self.max_new, dtype=torch.long, device=prompts.device)
        self.hyps[:, :1] = self.last
        self.base = torch.arange(n, device=prompts.device).unsqueeze(1) * self.beams

    def step(self, t):
        n = self.base.shape[0]
        logits, _ = self.model(self.last, self.cache)
        vocab = logits.shape[-1]
        logp = F.log_softmax(logits.float(), -1).view(n, self.beams, vocab)
        self.scores, flat = (self.scores.unsqueeze(-1) + logp).view(n, -1).topk(self.beams)
        rows = (self.base + torch.div(flat, vocab, rounding_mode="floor")).view(-1)
        self.last = (flat % vocab).view(-1, 1)
        self.hyps = self.hyps.index_select(0, rows)
        self.hyps[:, t:t + 1] = self.last
        self.cache.reorder(rows)

    def best(self):
        return self.hyps.view(-1, self.beams, self.max_new)[:, 0], self.scores[:, 0]


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--requests", type=int, default=8, help="batches of sentences")
    ap.add_argument("--sentences", type=int, default=16)
    ap.add_argument("--beams", type=int, default=4)
    ap.add_argument("--prompt-len", type=int, default=896)
    ap.add_argument("--max-new", type=int, default=112)
    ap.add_argument("--dim", type=int, default=1024)
    ap.add_argument("--layers", type=int, default=24)
    ap.add_argument("--vocab", type=int, default=32000)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    device = "cuda"
    with torch.device(device):
        model = Translator(args.vocab, args.dim, args.layers, args.dim // 64, args.prompt_len + args.max_new)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.4 / math.sqrt(args.dim))
    model = model.to(torch.bfloat16).eval()
    search = BeamSearch(model, args.beams, args.max_new, StaticCache if args.fixed else GrowingCache)
    source = torch.randint(args.vocab, (args.requests, args.sentences, args.prompt_len), device=device)

    total = args.requests * (args.max_new - 1)
    done = 0
    for r in range(args.requests):
        search.start(source[r])
        for t in range(1, args.max_new):
            if done == total // 4:
                torch.cuda.synchronize()
                begin = time.perf_counter()
            search.step(t)
            done += 1
        hyp, score = search.best()
        print(f"request {r}: {args.sentences} sentences, best logp/token "
              f"{score.mean().item() / args.max_new:.3f}, first ids {hyp[0, :6].tolist()}", flush=True)
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - begin) * 1e3 / (total - total // 4):.3f}")


if __name__ == "__main__":
    main()
