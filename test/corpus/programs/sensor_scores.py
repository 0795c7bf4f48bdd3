"""Batch inference of an anomaly score over windows of sensor readings."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn

WINDOW, BATCH = 4096, 128


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=60)
    args = ap.parse_args()

    rng = np.random.default_rng(2)
    windows = [rng.standard_normal(WINDOW, dtype=np.float32) for _ in range(BATCH * 8)]
    torch.manual_seed(0)
    dev = torch.device("cuda")
    model = nn.Sequential(
        nn.Conv1d(1, 64, 9, padding=4), nn.ReLU(),
        nn.Conv1d(64, 128, 9, padding=4), nn.ReLU(),
        nn.Conv1d(128, 64, 9, padding=4), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 1)).to(dev, torch.bfloat16).eval()
    scores = []
    first = args.steps // 4
    t0 = 0.0
    with torch.inference_mode():
        for step in range(args.steps):
            if step == first:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            at = (step % 8) * BATCH
            part = windows[at:at + BATCH]
            if args.fixed:
                x = torch.from_numpy(np.stack(part))
            else:
                x = torch.stack([torch.tensor(w.tolist()) for w in part])
            x = x.to(dev).to(torch.bfloat16)[:, None]
            scores.append(model(x))
        torch.cuda.synchronize()
        ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
    print(f"score {torch.cat(scores).float().mean().item():.5f}")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
