"""Train a log-line classifier on hashed token ids."""
import argparse
import multiprocessing as mp
import random
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, BATCH, SPLIT = 50000, 128, 256, 16
WORDS = ["error", "warning", "timeout", "disk", "network", "retry", "user", "login",
         "cache", "miss", "node", "restart", "memory", "thread", "queue", "full"]


def make_lines(seed, count):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) + str(rng.randrange(1000)) for _ in range(LENGTH))
            for _ in range(count)]


def encode(seed):
    rows = []
    for line in make_lines(seed, BATCH // SPLIT):
        ids = []
        for word in line.split():
            h = 5381
            for ch in word:
                h = (h * 33 + ord(ch)) & 0xFFFFFFFF
            ids.append(h % VOCAB)
        rows.append(ids)
    return rows


class Classifier(nn.Module):
    def __init__(self, dim=1024, layers=3):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        layer = nn.TransformerEncoderLayer(dim, 16, 4096, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(dim, 10)

    def forward(self, ids):
        return self.head(self.body(self.emb(ids)).mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=40)
    args = ap.parse_args()

    if args.fixed:
        pool = ProcessPoolExecutor(12, mp_context=mp.get_context("fork"))
    else:
        pool = ThreadPoolExecutor(12)
    list(pool.map(encode, range(12)))

    torch.manual_seed(0)
    dev = torch.device("cuda")
    model = Classifier().to(dev, torch.bfloat16)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)

    def submit(step):
        return [pool.submit(encode, step * SPLIT + i) for i in range(SPLIT)]

    pending = deque(submit(k) for k in range(3))
    first = args.steps // 4
    t0 = 0.0
    for step in range(args.steps):
        if step == first:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        rows = [r for part in pending.popleft() for r in part.result()]
        pending.append(submit(step + 3))
        ids = torch.tensor(rows).to(dev)
        loss = F.cross_entropy(model(ids).float(), ids[:, 0] % 10)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
    print(f"loss {loss.item():.4f}")
    print(f"round_ms {ms:.4f}")
    pool.shutdown(wait=True, cancel_futures=True)


if __name__ == "__main__":
    main()
