"""Train a classifier on compressed single-channel scans."""
import argparse
import time
import zlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    steps: int = 70
    batch: int = 32
    size: int = 160
    workers: int = 2
    lr: float = 3e-4


class ScanDataset(Dataset):
    """Holds scans as zlib blobs, as they come out of the archive."""

    def __init__(self, n, size):
        rng = np.random.default_rng(7)
        ramp = np.linspace(0, 200, size, dtype=np.float32)
        self.size, self.n = size, n
        self.blobs = []
        for _ in range(96):
            img = ramp[None] * rng.random() + ramp[:, None] * rng.random()
            img = img + rng.integers(0, 24, size=(size, size))
            self.blobs.append(zlib.compress(np.clip(img, 0, 255).astype(np.uint8).tobytes(), 1))

    def __len__(self):
        return self.n

    def smooth(self, img):
        k = np.exp(-0.5 * (np.arange(-4, 5) / 1.6) ** 2)
        k = (k / k.sum()).astype(np.float32)
        for axis in (0, 1):
            pad = [(0, 0), (0, 0)]
            pad[axis] = (4, 4)
            p = np.pad(img, pad, mode="reflect")
            img = sum(w * np.take(p, range(j, j + self.size), axis=axis) for j, w in enumerate(k))
        return img

    def __getitem__(self, i):
        raw = np.frombuffer(zlib.decompress(self.blobs[i % 96]), dtype=np.uint8)
        img = raw.reshape(self.size, self.size).astype(np.float32)
        img = self.smooth(img)
        lo, hi = np.percentile(img, (1, 99))
        img = np.clip((img - lo) / (hi - lo + 1e-3), 0, 1) * 255
        return torch.from_numpy(img.astype(np.uint8))[None], i % 8


def make_model():
    layers, cin = [], 1
    for cout, stride in ((64, 2), (128, 1), (128, 2), (256, 1), (256, 2), (512, 1)):
        layers += [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, 8))


def train(cfg):
    torch.manual_seed(1)
    loader = DataLoader(
        ScanDataset(cfg.steps * cfg.batch, cfg.size),
        batch_size=cfg.batch,
        num_workers=cfg.workers,
        pin_memory=True,
    )
    model = make_model().cuda().to(memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    total = torch.zeros((), device="cuda")
    warm, t0 = cfg.steps // 4, 0.0
    for it, (x, y) in enumerate(loader):
        if it == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        torch.cuda.nvtx.range_push("train_step")
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x.float() / 255.0), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"mean loss {total.item() / cfg.steps:.4f}")
    print(f"round_ms {dt * 1e3 / (cfg.steps - warm):.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=Config.steps)
    p.add_argument("--fixed", action="store_true")
    a = p.parse_args()
    cfg = Config(steps=a.steps)
    if a.fixed:
        cfg.workers = 14
    train(cfg)
