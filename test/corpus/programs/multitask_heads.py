"""Train a multi-task network and keep running metrics for every task."""
import argparse
import time
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

TASKS, CLASSES, INPUT, WIDTH, BATCH = 40, 8, 512, 2048, 1024


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(INPUT, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.heads = nn.Linear(WIDTH, TASKS * CLASSES)

    def forward(self, x):
        return self.heads(self.trunk(x)).view(-1, TASKS, CLASSES)


class Meters:
    def __init__(self):
        self.sums = defaultdict(float)
        self.count = 0

    def update(self, values):
        for name, v in values.items():
            self.sums[name] += v
        self.count += 1


class DeviceMeters:
    def __init__(self):
        self.total = torch.zeros(3, TASKS, device="cuda")
        self.count = 0
        self.latest = None

    def update(self, loss, acc, conf):
        self.total += torch.stack([loss, acc, conf])
        self.count += 1
        if self.count % 40 == 0:
            self.latest = (self.total / self.count).tolist()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(77)
    torch.set_float32_matmul_precision("high")
    model = MultiTask().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x_all = torch.randn(8 * BATCH, INPUT, device="cuda")
    y_all = torch.randint(0, CLASSES, (8 * BATCH, TASKS), device="cuda")
    meters = DeviceMeters() if args.fixed else Meters()
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        lo = (step % 8) * BATCH
        x, y = x_all[lo:lo + BATCH], y_all[lo:lo + BATCH]
        logits = model(x)
        task_loss = F.cross_entropy(logits.transpose(1, 2), y, reduction="none").mean(0)
        opt.zero_grad()
        task_loss.sum().backward()
        opt.step()
        with torch.no_grad():
            conf, pred = logits.softmax(-1).max(-1)
            acc, conf, losses = (pred == y).float().mean(0), conf.mean(0), task_loss.detach()
        if args.fixed:
            meters.update(losses, acc, conf)
        else:
            metrics = {}
            for i in range(TASKS):
                metrics[f"task{i}/loss"] = losses[i].item()
                metrics[f"task{i}/acc"] = acc[i].item()
                metrics[f"task{i}/conf"] = conf[i].item()
            meters.update(metrics)
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"loss {losses.mean().item():.4f} over {meters.count} updates")
    print(f"round_ms {1e3 * dt / (args.steps - warm):.4f}")


if __name__ == "__main__":
    main()
