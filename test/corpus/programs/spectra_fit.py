"""Fit an autoencoder to a collection of spectra."""
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn

ROWS, DIM, CHUNKS = 6144, 1024, 64


def write_spectra(path):
    rng = np.random.default_rng(1)
    base = rng.standard_normal((ROWS, DIM), dtype=np.float32)
    with open(path, "wb") as f:
        for k in range(CHUNKS):
            np.roll(base, k * 37, axis=1).tofile(f)
        f.flush()
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_spectra(path):
    return np.memmap(path, dtype=np.float32, mode="r", shape=(CHUNKS, ROWS, DIM))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=64)
    args = ap.parse_args()

    tmp = tempfile.mkdtemp(prefix="spectra_")
    try:
        path = os.path.join(tmp, "spectra.f32")
        write_spectra(path)
        torch.manual_seed(0)
        dev = torch.device("cuda")
        model = nn.Sequential(nn.Linear(DIM, 4096), nn.GELU(), nn.Linear(4096, 256),
                              nn.Linear(256, 4096), nn.GELU(),
                              nn.Linear(4096, DIM)).to(dev, torch.bfloat16)
        opt = torch.optim.SGD(model.parameters(), lr=1e-2)
        resident = np.fromfile(path, dtype=np.float32).reshape(CHUNKS, ROWS, DIM) \
            if args.fixed else None

        first = args.steps // 4
        t0 = 0.0
        for step in range(args.steps):
            if step == first:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            k = step % CHUNKS
            if resident is not None:
                batch = resident[k]
            else:
                batch = np.array(open_spectra(path)[k])
            x = torch.from_numpy(batch).to(dev).to(torch.bfloat16)
            loss = (model(x) - x).float().square().mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        torch.cuda.synchronize()
        ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
        print(f"loss {loss.item():.4f}")
        print(f"round_ms {ms:.4f}")
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


if __name__ == "__main__":
    main()
