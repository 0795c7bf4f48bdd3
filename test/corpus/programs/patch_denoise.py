"""Denoise blocks of image patches."""
import argparse
import time

import torch
import torch.nn as nn

ROWS, DIM, HIDDEN, RING = 32768, 4096, 8192, 3


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=130)
    args = ap.parse_args()

    torch.manual_seed(0)
    dev = torch.device("cuda")
    model = nn.Sequential(nn.Linear(DIM, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, DIM))
    model = model.to(dev, torch.bfloat16).eval()
    src = [torch.empty(ROWS, DIM, dtype=torch.bfloat16, pin_memory=True) for _ in range(RING)]
    dst = [torch.empty(ROWS, DIM, dtype=torch.bfloat16, pin_memory=True) for _ in range(RING)]
    for t in src:
        t.copy_(torch.randn(ROWS, DIM, device=dev, dtype=torch.bfloat16))
    xs = [torch.empty(ROWS, DIM, dtype=torch.bfloat16, device=dev) for _ in range(RING)]
    ys = [torch.empty(ROWS, DIM, dtype=torch.bfloat16, device=dev) for _ in range(RING)]
    compute = torch.cuda.current_stream()
    if args.fixed:
        up, down = torch.cuda.Stream(), torch.cuda.Stream()
    else:
        up = down = compute
    loaded = [torch.cuda.Event() for _ in range(RING)]
    done = [torch.cuda.Event() for _ in range(RING)]
    stored = [torch.cuda.Event() for _ in range(RING)]
    torch.cuda.synchronize()

    first = args.steps // 4
    t0 = 0.0
    with torch.inference_mode():
        for step in range(args.steps):
            if step == first:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            k = step % RING
            with torch.cuda.stream(up):
                up.wait_event(done[k])
                xs[k].copy_(src[k], non_blocking=True)
                loaded[k].record(up)
            compute.wait_event(loaded[k])
            compute.wait_event(stored[k])
            ys[k].copy_(model(xs[k]))
            done[k].record(compute)
            with torch.cuda.stream(down):
                down.wait_event(done[k])
                dst[k].copy_(ys[k], non_blocking=True)
                stored[k].record(down)
        torch.cuda.synchronize()
        ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
    print(f"mean {dst[0].float().mean().item():.5f}")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
