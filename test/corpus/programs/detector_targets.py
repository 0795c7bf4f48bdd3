"""Train a centre-point detector with box targets of varying number per image."""
import argparse
import math
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

STRIDE, SIZE, CLASSES = 4, 256, 4
GRID = SIZE // STRIDE


def make_annotations(n, seed=3):
    rnd = random.Random(seed)
    out = []
    for _ in range(n):
        boxes = []
        for _ in range(rnd.randint(6, 10)):
            w, h = rnd.uniform(12, 70), rnd.uniform(12, 70)
            cx, cy = rnd.uniform(20, SIZE - 20), rnd.uniform(20, SIZE - 20)
            boxes.append((cx, cy, w, h, rnd.randrange(CLASSES)))
        out.append(boxes)
    return out


def collate_plain(samples):
    heat = [[[[0.0] * GRID for _ in range(GRID)] for _ in range(CLASSES)] for _ in samples]
    for b, boxes in enumerate(samples):
        for cx, cy, w, h, c in boxes:
            gx, gy = cx / STRIDE, cy / STRIDE
            sigma = max(w, h) / STRIDE / 6 + 0.5
            r = int(3 * sigma)
            for y in range(max(0, int(gy) - r), min(GRID, int(gy) + r + 1)):
                for x in range(max(0, int(gx) - r), min(GRID, int(gx) + r + 1)):
                    v = math.exp(-((x - gx) ** 2 + (y - gy) ** 2) / (2 * sigma * sigma))
                    if v > heat[b][c][y][x]:
                        heat[b][c][y][x] = v
    return torch.tensor(heat)


def collate_numpy(samples):
    heat = np.zeros((len(samples), CLASSES, GRID, GRID), dtype=np.float32)
    grid = np.arange(GRID, dtype=np.float32)
    for b, boxes in enumerate(samples):
        box = np.asarray(boxes, dtype=np.float32)
        sigma = np.maximum(box[:, 2], box[:, 3]) / STRIDE / 6 + 0.5
        s2 = (2 * sigma * sigma)[:, None]
        gx = np.exp(-((grid[None] - box[:, 0:1] / STRIDE) ** 2) / s2)
        gy = np.exp(-((grid[None] - box[:, 1:2] / STRIDE) ** 2) / s2)
        for k, c in enumerate(box[:, 4].astype(int)):
            np.maximum(heat[b, c], gy[k][:, None] * gx[k][None], out=heat[b, c])
    return torch.from_numpy(heat)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 64, 5, 2, 2), nn.ReLU(), nn.Conv2d(64, 256, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.Conv2d(256, CLASSES, 1))

    def forward(self, x):
        return self.net(x)


def main(steps, fixed):
    torch.manual_seed(0)
    batch = 16
    collate = collate_numpy if fixed else collate_plain
    ann = make_annotations(512)
    images = torch.randn(64, 3, SIZE, SIZE, device="cuda").to(memory_format=torch.channels_last)
    model = Detector().cuda().to(memory_format=torch.channels_last)
    opt = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    warm = steps // 4
    start = None
    for i in range(steps):
        if i == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        sel = [(i * batch + j) % len(ann) for j in range(batch)]
        target = collate([ann[k] for k in sel]).to("cuda")
        off = (i * batch) % 64
        with torch.autocast("cuda", dtype=torch.bfloat16):
            pred = model(images[off:off + batch])
        loss = F.binary_cross_entropy_with_logits(pred.float(), target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    end = time.perf_counter()
    print("loss", float(loss))
    print(f"round_ms {(end - start) * 1000 / (steps - warm):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fixed", action="store_true")
    ns = parser.parse_args()
    main(ns.steps, ns.fixed)
