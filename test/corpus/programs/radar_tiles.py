"""Rain or clutter: train on compressed radar sweeps read through a DataLoader."""
import argparse
import time
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import nvtx
from torch.utils.data import DataLoader, Dataset

SWEEP, CROP, BATCH = 768, 128, 16


def pack(sweep):
    """Archive format: int16, differences along the ray, deflated."""
    delta = np.diff(sweep, axis=1, prepend=np.zeros((sweep.shape[0], 1), np.int16))
    return zlib.compress(delta.astype(np.int16).tobytes(), 1)


def make_archive(count, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:SWEEP, 0:SWEEP].astype(np.float32) / SWEEP
    records = []
    for _ in range(count):
        label = int(rng.integers(0, 2))
        fy, fx = rng.uniform(3, 12, 2) * (1 + label)
        field = 900 * np.sin(fy * y * 6.28 + fx) * np.cos(fx * x * 6.28)
        field += rng.integers(-20, 21, field.shape)
        records.append((pack(field.astype(np.int16)), label))
    return records


class RadarArchive(Dataset):
    def __init__(self, records, length):
        self.records, self.length = records, length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        blob, label = self.records[i % len(self.records)]
        delta = np.frombuffer(zlib.decompress(blob), np.int16).reshape(SWEEP, SWEEP)
        sweep = np.cumsum(delta, axis=1, dtype=np.int16).astype(np.float32)
        low, high = np.percentile(sweep[::4, ::4], (2, 98)).tolist()
        sweep = np.clip((sweep - low) / (high - low + 1e-3), 0.0, 1.0)
        rng = np.random.default_rng(i)
        top, left = rng.integers(0, SWEEP - CROP, 2)
        return np.ascontiguousarray(sweep[None, top:top + CROP, left:left + CROP]), label


def make_loader(records, workers):
    return DataLoader(RadarArchive(records, 16384), BATCH, shuffle=True, drop_last=True, num_workers=workers,
                      pin_memory=True, persistent_workers=True, prefetch_factor=2,
                      multiprocessing_context="fork")


class SweepNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        dims = [1, width, width, 2 * width, 2 * width, 4 * width]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, 1, 1) for a, b in zip(dims, dims[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in dims[1:])
        self.out = nn.Linear(dims[-1], 2)

    def forward(self, x):
        for k, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = F.relu(norm(conv(x)))
            if k % 2 == 1:
                x = F.max_pool2d(x, 2)
        return self.out(x.mean((2, 3)))


class Meter:
    """Running loss on the device; read only when printed."""

    def __init__(self):
        self.total, self.count = torch.zeros((), device="cuda"), 0

    def add(self, loss):
        self.total += loss.detach()
        self.count += 1

    def flush(self):
        value = self.total.item() / max(self.count, 1)
        self.total.zero_()
        self.count = 0
        return value


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=2.4)
    ap.add_argument("--fixed", action="store_true", help="14 workers")
    args = ap.parse_args()
    torch.manual_seed(40)
    records = make_archive(24, 40)
    loader = make_loader(records, 14 if args.fixed else args.workers)
    net = SweepNet().cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1000)
    meter, steps, settle, t0 = Meter(), 0, 16, None
    for sweeps, labels in loader:
        if steps == settle:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        with nvtx.range("step"):
            sweeps, labels = sweeps.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            loss = F.cross_entropy(net(sweeps), labels)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
        meter.add(loss)
        steps += 1
        if steps % 20 == 0:
            print(f"step {steps} loss {meter.flush():.4f}")
        if t0 is not None and time.perf_counter() - t0 > args.seconds:
            break
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - t0) * 1e3 / (steps - settle):.3f}")


if __name__ == "__main__":
    main()
