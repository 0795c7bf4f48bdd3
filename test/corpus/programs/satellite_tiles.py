"""Train a land-cover classifier on large 8-bit satellite tiles."""
import argparse
import logging
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("tiles")


class TileSource:
    """Keeps a few shards of tiles in host memory and hands them out in turn."""

    def __init__(self, shards, batch, side, pin):
        rng = np.random.default_rng(11)
        self.batches = []
        for _ in range(shards):
            raw = np.frombuffer(rng.bytes(batch * 3 * side * side), dtype=np.uint8)
            x = torch.from_numpy(raw.copy()).view(batch, 3, side, side)
            y = torch.from_numpy(rng.integers(0, 21, size=batch))
            if pin:
                x, y = x.pin_memory(), y.pin_memory()
            self.batches.append((x, y))

    def __getitem__(self, i):
        return self.batches[i % len(self.batches)]


class TileNet(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 8, stride=8)
        self.mid = nn.Sequential(
            nn.Conv2d(64, 128, 3, 2, 1), nn.GELU(),
            nn.Conv2d(128, 256, 3, 1, 1), nn.GELU(),
            nn.Conv2d(256, 256, 3, 2, 1), nn.GELU())
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        return self.head(self.mid(F.gelu(self.stem(x))).mean((2, 3)))


def run(steps, fixed):
    torch.manual_seed(2)
    device = torch.device("cuda", 0)
    source = TileSource(shards=2, batch=256, side=512, pin=fixed)
    model = TileNet().to(device).bfloat16()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = torch.zeros(steps, device=device)
    warm = steps // 4
    for step in range(steps):
        if step == warm:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        x, y = source[step]
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        logits = model(x.to(torch.bfloat16).div_(255.0))
        loss = F.cross_entropy(logits.float(), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses[step] = loss.detach()
    torch.cuda.synchronize()
    took = time.perf_counter() - begin
    log.info("mean loss %.4f", losses.mean().item())
    print(f"round_ms {took * 1000.0 / (steps - warm):.3f}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--fixed", action="store_true")
    opts = ap.parse_args()
    run(opts.steps, opts.fixed)
