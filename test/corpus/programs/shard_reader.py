"""Train a recommender from interaction shards kept as .npy files."""
import argparse
import functools
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SHARDS, ROWS, COLS, BATCH = 6, 131072, 128, 8192


def write_shards(folder):
    rng = np.random.default_rng(41)
    base = rng.integers(0, 200000, size=(ROWS, COLS), dtype=np.int32)
    for k in range(SHARDS):
        base[:, 0] = rng.integers(0, 2, size=ROWS)
        np.save(os.path.join(folder, f"part-{k:03d}.npy"), base)


class ShardReader:
    def __init__(self, folder, cached):
        self.folder = folder
        self.load = functools.lru_cache(maxsize=SHARDS)(self.read) if cached else self.read

    def read(self, k):
        return np.load(os.path.join(self.folder, f"part-{k:03d}.npy"))

    def batch(self, i):
        shard = self.load(i % SHARDS)
        lo = (i // SHARDS * BATCH) % ROWS
        return torch.from_numpy(shard[lo:lo + BATCH])


class Recommender(nn.Module):
    def __init__(self, items=200000, dim=64):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        self.mlp = nn.Sequential(nn.Linear(dim * 2, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                                 nn.Linear(1024, 1))

    def forward(self, rows):
        e = self.items(rows[:, 1:])
        return self.mlp(torch.cat([e[:, :-1].mean(1), e[:, -1]], 1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="shards_")
    try:
        write_shards(folder)
        reader = ShardReader(folder, cached=args.fixed)
        model = Recommender().cuda()
        opt = torch.optim.SGD(model.parameters(), lr=0.05)
        warm = args.steps // 4
        for i in range(args.steps):
            if i == warm:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            rows = reader.batch(i).cuda()
            loss = F.binary_cross_entropy_with_logits(model(rows), rows[:, 0].float())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        torch.cuda.synchronize()
        t1 = time.perf_counter()
        print(f"loss {loss.item():.4f}")
        print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.3f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
