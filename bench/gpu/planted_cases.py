#!/usr/bin/env python3
"""Step times of the planted training loops, several in one process: importing torch takes longer than they do.

    planted_cases.py PLANTED.PY CASE,CASE... [--steps N] [--repeats K] [--switch WHO]

Warms up all cases and says "ready". Then each line of input names a case and a mode; it runs N steps and answers
"CASE=MS/REF...", the times of the steps and of a fixed piece of work before each; each case can be asked for K times.
Mode "off" is without a recording, "on" with one by WHO: lull (run under `lull profile -c lull
--capture-range-end=repeat`), the floor (which takes the words of its FLOOR_WITH as modes) or torch.profiler with CPU and
CUDA, which is what others pay. With lull, "floor" or "floor:WORDS" is the floor in the same process, while lull has left
CUPTI: a process is some per cent faster or slower than its like, all its life, so it is compared with itself.
"""
import argparse
import ctypes
import importlib.util
import os
import statistics
import sys
import time

import torch

from piece import piece


def load(path):
    spec = importlib.util.spec_from_file_location("planted", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reference():
    """Milliseconds of a fixed piece of work of the same kind: how fast this CPU is just now.

    The median of short ones: CPU samples of a recording, which are to be seen in the steps, are in one of ten.
    """
    return statistics.median(piece() for _ in range(9))


# So many steps are measured as one where the device is the limit: it is to have work all the time.
BLOCKS = {"compute_bound": 4}


def measure(step, first, n, block=1):
    """(milliseconds, those of the reference) for each step, to the end of its work on the device."""
    times = []
    torch.cuda.synchronize()
    for i in range(first, first + n, block):
        ref = reference()
        begin = time.perf_counter()
        for k in range(i, i + block):
            step(k)
        torch.cuda.synchronize()
        times.append(((time.perf_counter() - begin) * 1e3 / block, ref))
    return times


def place_threads(cpu, others):
    """Forward and backward take turns, so one CPU is enough for them; all other threads are elsewhere."""
    for task in os.listdir("/proc/self/task") if cpu is not None else ():
        try:
            with open("/proc/self/task/%s/comm" % task, encoding="utf-8") as f:
                is_loop = int(task) == os.getpid() or f.read().startswith("pt_autograd")
            os.sched_setaffinity(int(task), [cpu] if is_loop else others)
        except OSError:
            pass  # it has ended


class Profiler:
    """torch.profiler as other people use it."""

    def __init__(self):
        self.running = None

    def __call__(self, mode):
        from torch.profiler import ProfilerActivity, profile
        if self.running:
            self.running.stop()
        self.running = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) if mode != "off" else None
        if self.running:
            self.running.start()


def by_floor():
    floor, words = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]), {"on": "", "off": "finalize"}
    return lambda mode: floor.floor_switch(words.get(mode, mode).encode())


class Lull:
    """lull and the floor in one process; CUPTI is with one of them, or with nobody."""

    def __init__(self):
        import lull
        self.lull = lull
        self.floor = ctypes.CDLL(os.environ["FLOOR_AGENT"])

    def leave(self):
        """lull leaves CUPTI when it is told something, a few tenths of a second after the recording."""
        self.lull.stop()
        self.floor.floor_switch(b"finalize")
        for _ in range(200):
            self.lull.is_recording()
            if self.floor.floor_is_alone():
                return
            time.sleep(0.005)
        sys.exit("planted_cases: lull does not leave CUPTI")

    def start(self):
        for _ in range(100):
            self.lull.start()
            if self.lull.is_recording():
                return
            time.sleep(0.02)  # the report before this one is being closed
        sys.exit("planted_cases: the recording does not begin")

    def __call__(self, mode):
        self.leave()
        if mode.partition(":")[0] == "floor":
            self.floor.floor_switch(mode.partition(":")[2].encode())
        elif mode == "on":
            self.start()


SWITCHES = {"none": lambda: lambda mode: None, "floor": by_floor, "lull": Lull, "profiler": Profiler}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("planted")
    ap.add_argument("cases")
    ap.add_argument("--steps", type=int, default=10)
    ap.add_argument("--repeats", type=int, default=7)
    ap.add_argument("--warm", type=int, default=5)
    ap.add_argument("--cpu", type=int, help="where the loop runs, and nothing else of this process")
    ap.add_argument("--switch", choices=sorted(SWITCHES), default="none")
    a = ap.parse_args()
    planted = load(a.planted)
    steps, done = {}, {}
    for name in a.cases.split(","):
        torch.manual_seed(0)
        n = a.warm + (max(a.steps, 2 * BLOCKS.get(name, 1)) + 1) * a.repeats
        steps[name] = planted.CASES[name][0](False, n)
        measure(steps[name], 0, a.warm)
        done[name] = a.warm
    switch, now, cpus = SWITCHES[a.switch](), None, os.sched_getaffinity(0)
    print("ready", flush=True)
    for line in sys.stdin:
        name, mode = line.split()
        is_new, block = mode != now, BLOCKS.get(name, 1)
        if is_new:
            switch(mode)
            now = mode
        measure(steps[name], done[name], 1)  # others had the device in between
        if is_new:
            place_threads(a.cpu, cpus - {a.cpu})  # some began with the first launch
        n = max(a.steps, 2 * block)
        times = measure(steps[name], done[name] + 1, n, block)
        done[name] += n + 1
        print(name + "=" + " ".join("%.4f/%.4f" % pair for pair in times), flush=True)


if __name__ == "__main__":
    main()
