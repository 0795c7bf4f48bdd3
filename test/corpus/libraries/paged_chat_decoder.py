"""Batched token generation with a paged KV cache and a Triton attention kernel."""
import argparse
import os
import statistics
import tempfile
import time

SCRATCH = tempfile.TemporaryDirectory()
os.environ.setdefault("TRITON_CACHE_DIR", SCRATCH.name)

import torch
import torch.nn as nn
import triton
import triton.language as tl

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()

LAYERS, DIM, HEADS, VOCAB = 4, 512, 8, 16000
HEAD = DIM // HEADS
BATCH, PAGE, MAX_PAGES, PROMPT = 64, 16, 32, 40


@triton.jit
def paged_attention(q_ptr, k_ptr, v_ptr, table_ptr, len_ptr, out_ptr, scale, max_pages,
                    H: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    d, p = tl.arange(0, D), tl.arange(0, PAGE)
    q = tl.load(q_ptr + (b * H + h) * D + d).to(tl.float32) * scale
    n = tl.load(len_ptr + b)
    top = -1.0e30
    total = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    for start in range(0, n, PAGE):
        page = tl.load(table_ptr + b * max_pages + start // PAGE).to(tl.int64)
        offs = ((page * PAGE + p[:, None]) * H + h) * D + d[None, :]
        k, v = tl.load(k_ptr + offs).to(tl.float32), tl.load(v_ptr + offs).to(tl.float32)
        s = tl.where(start + p < n, tl.sum(k * q[None, :], axis=1), -1.0e30)
        new_top = tl.maximum(top, tl.max(s, axis=0))
        w = tl.exp(s - new_top)
        fade = tl.exp(top - new_top)
        total = total * fade + tl.sum(w, axis=0)
        acc = acc * fade + tl.sum(w[:, None] * v, axis=0)
        top = new_top
    tl.store(out_ptr + (b * H + h) * D + d, (acc / total).to(out_ptr.dtype.element_ty))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 3 * DIM))
        self.proj = nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))
        self.register_buffer("cache", torch.zeros(2, BATCH * MAX_PAGES * PAGE, HEADS, HEAD))

    def forward(self, x, slots, table, lengths):
        q, k, v = self.qkv(x).view(BATCH, 3, HEADS, HEAD).unbind(1)
        self.cache[0].index_copy_(0, slots, k)
        self.cache[1].index_copy_(0, slots, v)
        q, out = q.contiguous(), torch.empty_like(x)
        paged_attention[(BATCH, HEADS)](q, self.cache[0], self.cache[1], table, lengths, out,
                                        HEAD**-0.5, MAX_PAGES, H=HEADS, D=HEAD, PAGE=PAGE)
        x = x + self.proj(out)
        return x + self.mlp(x)


class PageTable:
    def __init__(self):
        self.free = torch.randperm(BATCH * MAX_PAGES).tolist()
        self.pages, self.length = [[] for _ in range(BATCH)], [0] * BATCH
        self.table = torch.zeros(BATCH, MAX_PAGES, dtype=torch.int32, device="cuda")
        self.staging = torch.zeros(BATCH, MAX_PAGES, dtype=torch.int32, pin_memory=True)
        self.rows = self.staging.numpy()

    def grow(self):
        for i in range(BATCH):
            if self.length[i] == MAX_PAGES * PAGE:
                self.free += self.pages[i]
                self.pages[i], self.length[i] = [], 0
            if self.length[i] % PAGE == 0:
                self.pages[i].append(self.free.pop())
                self.rows[i, len(self.pages[i]) - 1] = self.pages[i][-1]
            self.length[i] += 1
        self.lengths = torch.tensor(self.length, dtype=torch.int32, device="cuda")
        if args.fixed:
            self.table.copy_(self.staging, non_blocking=True)
        else:
            for i in range(BATCH):
                self.table[i, : len(self.pages[i])] = torch.tensor(self.pages[i], dtype=torch.int32)
        last = (self.lengths - 1).long()
        return self.table.gather(1, (last // PAGE)[:, None])[:, 0].long() * PAGE + last % PAGE


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    embed = nn.Embedding(VOCAB, DIM).cuda().bfloat16()
    blocks = nn.ModuleList(Block() for _ in range(LAYERS)).cuda().bfloat16()
    head, pages = nn.Linear(DIM, VOCAB).cuda().bfloat16(), PageTable()
    tokens = torch.randint(0, VOCAB, (BATCH,), device="cuda")
    answers, times, stop = [], [], None
    while stop is None or time.perf_counter() < stop:
        t0 = time.perf_counter()
        slots = pages.grow()
        x = embed(tokens)
        for block in blocks:
            x = block(x, slots, pages.table, pages.lengths)
        tokens = head(x).argmax(-1)
        answers.append(tokens.tolist())
        if stop is not None:
            times.append((time.perf_counter() - t0) * 1e3)
        elif len(answers) == PROMPT:
            stop = time.perf_counter() + 4.0
    print(f"{len(answers)} tokens per sequence")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
