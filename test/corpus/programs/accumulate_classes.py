"""Train an image classifier with gradient accumulation and per-class statistics."""
import argparse
import time
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES = 60


class Meter:
    def __init__(self):
        self.sums = defaultdict(float)
        self.counts = defaultdict(int)

    def add(self, key, value):
        self.sums[key] += value
        self.counts[key] += 1

    def mean(self, key):
        return self.sums[key] / max(1, self.counts[key])


class Trainer:
    def __init__(self, fixed, accum=4, micro=128):
        self.fixed, self.accum, self.micro = fixed, accum, micro
        self.model = nn.Sequential(
            nn.Conv2d(3, 128, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(128, 256, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, CLASSES),
        ).cuda().bfloat16().to(memory_format=torch.channels_last)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        self.images = torch.randn(micro * 8, 3, 96, 96, device="cuda").bfloat16()
        self.images = self.images.to(memory_format=torch.channels_last)
        self.labels = torch.randint(0, CLASSES, (micro * 8,), device="cuda")
        self.meter = Meter()

    def class_stats(self, logits, losses, y):
        loss_sum = torch.zeros(CLASSES, device="cuda").scatter_add_(0, y, losses)
        hits = (logits.argmax(1) == y).float()
        hit_sum = torch.zeros(CLASSES, device="cuda").scatter_add_(0, y, hits)
        return loss_sum, hit_sum

    def record(self, loss_sum, hit_sum):
        if self.fixed:
            loss_sum, hit_sum = torch.stack([loss_sum, hit_sum]).tolist()
            for c in range(CLASSES):
                self.meter.add(f"loss/{c}", loss_sum[c])
                self.meter.add(f"hits/{c}", hit_sum[c])
            return
        for c in range(CLASSES):
            self.meter.add(f"loss/{c}", loss_sum[c].item())
            self.meter.add(f"hits/{c}", hit_sum[c].item())

    def step(self, it):
        self.opt.zero_grad(set_to_none=True)
        for k in range(self.accum):
            off = ((it * self.accum + k) % 8) * self.micro
            x, y = self.images[off:off + self.micro], self.labels[off:off + self.micro]
            logits = self.model(x).float()
            losses = F.cross_entropy(logits, y, reduction="none")
            (losses.mean() / self.accum).backward()
            self.record(*self.class_stats(logits.detach(), losses.detach(), y))
        self.opt.step()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(5)
    tr = Trainer(args.fixed)
    warm = args.steps // 4
    for it in range(args.steps):
        if it == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        tr.step(it)
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print("class 0 loss", tr.meter.mean("loss/0"))
    print(f"round_ms {(t1 - t0) * 1e3 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
