"""Forecast electric load of many meters; keep safe checkpoints of the run."""
import argparse
import os
import shutil
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import nvtx

PAST, AHEAD, METERS = 336, 48, 512


class MixBlock(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Forecaster(nn.Module):
    def __init__(self, width=768, blocks=3):
        super().__init__()
        self.read = nn.Linear(PAST, width)
        self.blocks = nn.Sequential(*[MixBlock(width, 3 * width) for _ in range(blocks)])
        self.write = nn.Linear(width, AHEAD)

    def forward(self, past):
        level = past.mean(1, keepdim=True)
        return self.write(self.blocks(self.read(past - level))) + level


def make_series(length):
    t = torch.arange(length, device="cuda", dtype=torch.float32)
    phase = torch.rand(METERS, 1, device="cuda") * 6.28
    size = torch.rand(METERS, 1, device="cuda") + 0.5
    day, week = torch.sin(t * 6.2832 / 48 + phase), torch.sin(t * 6.2832 / 336 + phase)
    return size * (1.5 + day + 0.4 * week) + 0.1 * torch.randn(METERS, length, device="cuda")


def windows(series, batch):
    meter = torch.randint(0, METERS, (batch, 1), device="cuda")
    first = torch.randint(0, series.shape[1] - PAST - AHEAD, (batch, 1), device="cuda")
    span = series[meter, first + torch.arange(PAST + AHEAD, device="cuda")]
    return span[:, :PAST], span[:, PAST:]


class CheckpointKeeper:
    """Writes next to the target, syncs, renames; keeps the newest few."""

    def __init__(self, folder, every, keep=2):
        self.folder, self.every, self.keep = folder, every, keep
        self.files = []

    def due(self, step):
        return self.every > 0 and step % self.every == 0

    def save(self, step, **parts):
        target = os.path.join(self.folder, f"step_{step:07d}.pt")
        torch.save({"step": step, **{k: v.state_dict() for k, v in parts.items()}}, target + ".part")
        fd = os.open(target + ".part", os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(target + ".part", target)
        self.files.append(target)
        while len(self.files) > self.keep:
            os.remove(self.files.pop(0))


class Training:
    def __init__(self, keeper, batch=2048):
        self.keeper, self.batch = keeper, batch
        self.series = make_series(6000)
        self.model = Forecaster().cuda()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=5e-4, fused=True)
        self.sched = torch.optim.lr_scheduler.LinearLR(self.opt, 1.0, 0.1, 2000)
        self.step = 0

    def advance(self):
        with nvtx.range("update"):
            past, ahead = windows(self.series, self.batch)
            loss = F.huber_loss(self.model(past), ahead)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            self.sched.step()
        self.step += 1
        if self.keeper.due(self.step):
            with nvtx.range("checkpoint"):
                self.keeper.save(self.step, model=self.model, optimizer=self.opt, schedule=self.sched)
        if self.step % 50 == 0:
            print(f"step {self.step} huber {loss.item():.4f}")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seconds", type=float, default=2.2)
    ap.add_argument("--save-every", type=int, default=5)
    ap.add_argument("--fixed", action="store_true", help="save once, at the end")
    args = ap.parse_args()
    torch.manual_seed(12)
    folder = tempfile.mkdtemp(prefix="load_forecaster_")
    try:
        keeper = CheckpointKeeper(folder, 0 if args.fixed else args.save_every)
        run = Training(keeper)
        for _ in range(5):
            run.advance()
        torch.cuda.synchronize()
        t0, counted = time.perf_counter(), 0
        while counted < 15 or time.perf_counter() - t0 < args.seconds:
            for _ in range(5):
                run.advance()
            counted += 5
        torch.cuda.synchronize()
        spent = time.perf_counter() - t0
        keeper.save(run.step, model=run.model, optimizer=run.opt, schedule=run.sched)
        print("newest checkpoint", os.path.basename(keeper.files[-1]))
        print(f"round_ms {spent * 1000 / counted:.4f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
