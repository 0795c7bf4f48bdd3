"""Leaf photographs: a conv classifier with strong augmentation."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SIZE, PAD, BATCH, CLASSES = 96, 8, 128, 20
MEAN, STD = 0.47, 0.25


class Leaves(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, CLASSES, count)
        y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) / SIZE
        base = np.stack([np.sin((k + 3) * x * 3 + k) * np.cos((k + 2) * y * 2) for k in range(CLASSES)])
        base = ((base + 1) * 90 + 30).astype(np.uint8)
        self.photos = np.repeat(base[self.labels][:, None], 3, axis=1)
        self.photos += rng.integers(0, 40, self.photos.shape, dtype=np.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.photos[i], self.labels[i]


class NumpyAugment:
    """Collate: crop, flip, light, contrast, noise and cutout for every photo."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, photo):
        r = self.rng
        wide = np.pad(photo, ((0, 0), (PAD, PAD), (PAD, PAD)), mode="reflect")
        top, left = r.integers(0, 2 * PAD + 1, 2)
        img = wide[:, top:top + SIZE, left:left + SIZE].astype(np.float32) / 255.0
        if r.random() < 0.5:
            img = img[:, :, ::-1]
        img = img * r.uniform(0.7, 1.3)
        middle = img.mean(axis=(1, 2), keepdims=True)
        img = (img - middle) * r.uniform(0.6, 1.4) + middle
        img = img + r.normal(0.0, 0.03, img.shape).astype(np.float32)
        cy, cx = r.integers(0, SIZE - 24, 2)
        img[:, cy:cy + 24, cx:cx + 24] = MEAN
        return (np.clip(img, 0.0, 1.0) - MEAN) / STD

    def __call__(self, samples):
        photos = np.stack([self.one(p) for p, _ in samples]).astype(np.float32)
        return torch.from_numpy(photos), torch.tensor([int(k) for _, k in samples])


def collate_raw(samples):
    return torch.from_numpy(np.stack([p for p, _ in samples])), torch.tensor([int(k) for _, k in samples])


def augment_on_device(raw):
    """The same set of changes for a whole uint8 batch, on the device of the batch."""
    n, dev = raw.shape[0], raw.device
    img = F.pad(raw.float() / 255.0, (PAD, PAD, PAD, PAD), mode="reflect")
    line = torch.arange(SIZE, device=dev)
    rows = line + torch.randint(0, 2 * PAD + 1, (n, 1), device=dev)
    cols = line + torch.randint(0, 2 * PAD + 1, (n, 1), device=dev)
    cols = torch.where(torch.rand(n, 1, device=dev) < 0.5, cols.flip(1), cols)
    which = torch.arange(n, device=dev)[:, None, None]
    img = img.permute(0, 2, 3, 1)[which, rows[:, :, None], cols[:, None, :]].permute(0, 3, 1, 2)
    img = img * torch.empty(n, 1, 1, 1, device=dev).uniform_(0.7, 1.3)
    middle = img.mean((2, 3), keepdim=True)
    img = (img - middle) * torch.empty(n, 1, 1, 1, device=dev).uniform_(0.6, 1.4) + middle
    img = img + 0.03 * torch.randn_like(img)
    away = line - torch.randint(0, SIZE - 24, (2, n, 1), device=dev)
    inside = (away >= 0) & (away < 24)
    hole = inside[0][:, None, :, None] & inside[1][:, None, None, :]
    return (torch.where(hole, MEAN, img).clamp(0.0, 1.0) - MEAN) / STD


def build_model():
    layers, cin = [], 3
    for cout, stride in ((48, 2), (96, 1), (96, 2), (192, 1), (192, 2), (256, 1)):
        layers += [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(True)]
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, CLASSES))


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--max-seconds", type=float, default=2.4)
    args = ap.parse_args()
    torch.manual_seed(8)
    leaves = Leaves(2048, 8)
    loader = DataLoader(leaves, BATCH, shuffle=True, drop_last=True, pin_memory=True,
                        collate_fn=collate_raw if args.fixed else NumpyAugment(9))
    model = build_model().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, total_steps=4000)
    seen, timed, clock, epoch = 0, 0, None, 0
    while clock is None or time.perf_counter() - clock < args.max_seconds:
        for photos, labels in loader:
            photos, labels = photos.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            if args.fixed:
                photos = augment_on_device(photos)
            loss = F.cross_entropy(model(photos), labels, label_smoothing=0.1)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            seen += 1
            timed += clock is not None
            if clock is None and seen == 8:
                torch.cuda.synchronize()
                clock = time.perf_counter()
            elif clock is not None and time.perf_counter() - clock > args.max_seconds:
                break
        epoch += 1
        if epoch % 5 == 1:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - clock) * 1e3 / timed:.4f}")


if __name__ == "__main__":
    main()
