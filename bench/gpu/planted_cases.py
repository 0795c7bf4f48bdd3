#!/usr/bin/env python3
"""Step times of the planted training loops, several in one process: importing torch takes longer than they do.

    planted_cases.py PLANTED.PY CASE,CASE... [--steps N] [--repeats K] [--profiler]

Warms up all cases and says "ready". Then each line of input names a case; it runs N steps and answers "CASE=MS", the
time of a step; each case can be asked for K times. So several such processes, each recorded in another way, take turns.
With --profiler the steps run inside torch.profiler (CPU and CUDA), which is what others pay.
"""
import argparse
import contextlib
import importlib.util
import sys
import time

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("planted", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(step, first, n):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(first, first + n):
        step(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3 / n


def tool(use_profiler):
    if not use_profiler:
        return contextlib.nullcontext()
    from torch.profiler import ProfilerActivity, profile
    return profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("planted")
    ap.add_argument("cases")
    ap.add_argument("--steps", type=int, default=10)
    ap.add_argument("--repeats", type=int, default=7)
    ap.add_argument("--warm", type=int, default=5)
    ap.add_argument("--profiler", action="store_true")
    a = ap.parse_args()
    planted = load(a.planted)
    steps, done = {}, {}
    for name in a.cases.split(","):
        torch.manual_seed(0)
        steps[name] = planted.CASES[name][0](False, a.warm + (a.steps + 1) * a.repeats)
        measure(steps[name], 0, a.warm)
        done[name] = a.warm
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        measure(steps[name], done[name], 1)  # others had the device in between
        with tool(a.profiler):
            ms = measure(steps[name], done[name] + 1, a.steps)
        done[name] += a.steps + 1
        print("%s=%.4f" % (name, ms), flush=True)


if __name__ == "__main__":
    main()
