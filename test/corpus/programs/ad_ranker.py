"""Rank ads with a small tower over named feature columns."""
import argparse
import time

import torch
import torch.nn as nn

FEATURES, BATCH = 320, 2048


def make_batch(gen):
    return {f"f{i:03d}": torch.rand(BATCH, generator=gen) for i in range(FEATURES)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=80)
    args = ap.parse_args()

    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(9)
    batches = [make_batch(gen) for _ in range(8)]
    names = sorted(batches[0])
    dev = torch.device("cuda")
    model = nn.Sequential(nn.Linear(FEATURES, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                          nn.Linear(4096, 1)).to(dev, torch.bfloat16).eval()
    scores = []
    first = args.steps // 4
    t0 = 0.0
    with torch.inference_mode():
        for step in range(args.steps):
            if step == first:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            batch = batches[step % len(batches)]
            if args.fixed:
                x = torch.stack([batch[n] for n in names]).to(dev).t()
            else:
                cols = {n: v.to(dev) for n, v in batch.items()}
                x = torch.stack([cols[n] for n in names]).t()
            scores.append(model(x.to(torch.bfloat16)).float().mean())
        torch.cuda.synchronize()
        ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
    print(f"score {torch.stack(scores).mean().item():.4f}")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
