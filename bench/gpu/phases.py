#!/usr/bin/env python3
"""Phases of a step by lull beside CUDA events around the same phases. Needs a GPU and PyTorch.

    phases.py LULL OUT [--steps N]
    phases.py --train STEPS     the training loop itself, which prints a line for each phase

The loop is GPU-bound, so that the time between the events of a phase is the time of its kernels. It has no marks: lull
finds the phases by its hooks. Status 1: a phase differs by more than 2 %.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

WARM = 5
ALLOWED = 0.02  # of the time between the events


def train(steps):
    import torch
    import torch.nn as nn

    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(2048, 16, 8192, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 8).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(16, 1024, 2048, device="cuda", dtype=torch.bfloat16)
    times = {"forward": [], "backward": [], "optimizer": []}
    for i in range(WARM + steps):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        events[0].record()
        loss = model(x).square().mean()
        events[1].record()
        loss.backward()
        events[2].record()
        optimizer.step()
        events[3].record()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if i >= WARM:
            for name, a, b in zip(times, events, events[1:]):
                times[name].append(a.elapsed_time(b))
    print(json.dumps({name: statistics.mean(v) for name, v in times.items()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--train", type=int, metavar="STEPS")
    o = parser.parse_args()
    if o.train:
        return train(o.train)
    os.makedirs(o.out, exist_ok=True)
    report = os.path.join(o.out, "phases.lull")
    done = subprocess.run([o.lull, "profile", "-q", "-f", "true", "-o", report, sys.executable, os.path.abspath(__file__), "--train", str(o.steps)],
                          stdout=subprocess.PIPE, text=True, check=True)
    events = json.loads(done.stdout.strip().splitlines()[-1])
    rows = json.loads(subprocess.run([o.lull, "stats", "-q", "-r", "phases", "--format", "json", report], stdout=subprocess.PIPE, text=True, check=True).stdout)
    by_lull = {r["Phase"].split(":")[-1]: (r["GPU Time (ns)"] / 1e6, r["GPU Idle (ns)"] / 1e6) for r in rows}
    is_good = True
    for name, ms in events.items():
        # Between two events lie the gaps between kernels, too.
        busy, idle = by_lull.get(name, (0, 0))
        print("%-10s events %8.3f ms   lull %8.3f busy + %.3f idle = %8.3f ms   %.4f" % (name, ms, busy, idle, busy + idle, (busy + idle) / ms))
        is_good &= abs((busy + idle) / ms - 1) <= ALLOWED
    sys.exit(0 if is_good else 1)


main()
