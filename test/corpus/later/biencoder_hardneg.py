"""Bi-encoder for passage retrieval; InfoNCE with in-batch and mined hard negatives.

Document embeddings are kept in a bank (one row per document) which is refreshed
with whatever was encoded in the step (as in ANCE / cross-batch memory).
"""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=130)
p.add_argument("--batch-size", type=int, default=96)
p.add_argument("--docs", type=int, default=20000)
p.add_argument("--negatives", type=int, default=4)
p.add_argument("--skip-top", type=int, default=2, help="likely false negatives")
p.add_argument("--doc-len", type=int, default=64)
p.add_argument("--query-len", type=int, default=24)
p.add_argument("--temperature", type=float, default=0.05)
p.add_argument("--fixed", action="store_true")
opt = p.parse_args()

VOCAB, DIM, LAYERS, HEADS, EMB = 30522, 512, 6, 8, 256
dev = torch.device("cuda")
torch.manual_seed(7)
torch.set_float32_matmul_precision("high")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.randn(1, 128, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.out = nn.Linear(DIM, EMB)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[:, :ids.size(1)]
        x = self.body(x).mean(1)
        return F.normalize(self.out(x).float(), dim=-1)


def encode(model, ids):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(ids)


@torch.no_grad()
def build_bank(model, corpus, chunk=2048):
    return torch.cat([encode(model, corpus[i:i + chunk]) for i in range(0, len(corpus), chunk)])


def mine_numpy(q, bank, pos):
    scores = (q @ bank.t()).cpu().numpy()
    ranking = np.argsort(-scores, axis=1)
    gold = pos.cpu().numpy()
    picked = np.empty((len(gold), opt.negatives), dtype=np.int64)
    for i, row in enumerate(ranking):
        row = row[:opt.skip_top + opt.negatives + 1]
        picked[i] = row[row != gold[i]][opt.skip_top:opt.skip_top + opt.negatives]
    return torch.from_numpy(picked).to(dev)


def mine_topk(q, bank, pos):
    scores = q @ bank.t()
    scores.scatter_(1, pos[:, None], float("-inf"))
    return scores.topk(opt.skip_top + opt.negatives, dim=1).indices[:, opt.skip_top:]


mine = mine_topk if opt.fixed else mine_numpy

# ---- data: queries are noisy excerpts of their document
corpus = torch.randint(5, VOCAB, (opt.docs, opt.doc_len), device=dev)


def sample_batch():
    pos = torch.randperm(opt.docs, device=dev)[:opt.batch_size]
    docs = corpus[pos]
    cols = torch.randint(0, opt.doc_len, (opt.batch_size, opt.query_len), device=dev)
    queries = docs.gather(1, cols)
    noise = torch.rand(queries.shape, device=dev) < 0.2
    queries = torch.where(noise, torch.randint_like(queries, 5, VOCAB), queries)
    return queries, docs, pos


model = Encoder().to(dev)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.01)
sched = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 50))
bank = build_bank(model, corpus)
print(f"bank {tuple(bank.shape)}, model {sum(w.numel() for w in model.parameters()) / 1e6:.1f} M", flush=True)

labels = torch.arange(opt.batch_size, device=dev)
first = opt.steps // 4
for step in range(opt.steps):
    if step == first:
        torch.cuda.synchronize()
        start = time.perf_counter()
    queries, docs, pos = sample_batch()
    q = encode(model, queries)
    with torch.no_grad():
        neg_ids = mine(q.detach(), bank, pos)
    d = encode(model, torch.cat([docs, corpus[neg_ids.flatten()]]))
    d_pos, d_neg = d[:opt.batch_size], d[opt.batch_size:]

    in_batch = q @ d_pos.t()
    hard = torch.einsum("bd,bkd->bk", q, d_neg.view(opt.batch_size, opt.negatives, EMB))
    logits = torch.cat([in_batch, hard], dim=1) / opt.temperature
    loss = F.cross_entropy(logits, labels)

    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    sched.step()
    with torch.no_grad():
        bank[neg_ids.flatten()] = d_neg.detach()
        bank[pos] = d_pos.detach()
    if (step + 1) % 30 == 0:
        acc = (logits.argmax(1) == labels).float().mean().item()
        print(f"[{step + 1:4d}/{opt.steps}] loss={loss.item():.4f} acc={acc:.3f}", flush=True)

torch.cuda.synchronize()
total = time.perf_counter() - start
print(f"round_ms {1e3 * total / (opt.steps - first):.3f}")
