"""Train a click model on raw categorical events hashed into buckets."""
import argparse
import time
import zlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Cfg:
    fields: int = 26
    buckets: int = 1 << 18
    dim: int = 48
    batch: int = 2048
    steps: int = 50


class EventLog:
    def __init__(self, cfg):
        rng = np.random.default_rng(13)
        self.events = rng.integers(0, 10**7, size=(8, cfg.batch, cfg.fields))
        self.clicks = (rng.random((8, cfg.batch)) < 0.1).astype(np.float32)

    def batch(self, i):
        return self.events[i % 8], self.clicks[i % 8]


def featurize(events, buckets):
    rows = []
    for event in events.tolist():
        row = []
        for field, value in enumerate(event):
            key = f"{field}={value}".encode()
            row.append(zlib.crc32(key) % buckets)
        rows.append(row)
    return torch.tensor(rows)


def featurize_array(events, buckets):
    h = events.astype(np.uint64) + np.arange(events.shape[1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(31)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(29)
    return torch.from_numpy((h % np.uint64(buckets)).astype(np.int64))


class ClickModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.buckets, cfg.dim)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.fields * cfg.dim, 2048), nn.ReLU(),
            nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1))

    def forward(self, ids):
        return self.mlp(self.emb(ids).flatten(1)).squeeze(1)


def main(cfg, build):
    torch.manual_seed(0)
    events = EventLog(cfg)
    model = ClickModel(cfg).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    warm = cfg.steps // 4
    for step in range(cfg.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        raw, clicks = events.batch(step)
        ids = build(raw, cfg.buckets).cuda()
        y = torch.from_numpy(clicks).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logit = model(ids)
        loss = F.binary_cross_entropy_with_logits(logit.float(), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"logloss {loss.item():.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (cfg.steps - warm):.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=Cfg.steps)
    p.add_argument("--fixed", action="store_true")
    a = p.parse_args()
    main(Cfg(steps=a.steps), featurize_array if a.fixed else featurize)
