#!/usr/bin/env python3
"""Training loops of many kinds, to try `lull why` on programs that it was not written for.

    unseen.py --list
    unseen.py [--short] CASE[,CASE...]

Each case is the loop as somebody wrote it and, where there is one, the loop with the one change that helps. The first
is the captured part (cudaProfilerStart to cudaProfilerStop); the second runs after it, for the true speed-up. Nothing
names its phases: there are no ranges but one around each step. Prints a line RESULT for each case. Recorded with

    lull profile -c cudaProfilerApi --capture-range-end=repeat -o NAME-%n unseen.py CASE,CASE
"""
import argparse
import contextlib
import ctypes
import gc
import json
import multiprocessing
import os
import queue
import tempfile
import threading
import time
import traceback

import torch
import torch.nn.functional as F
from torch import nn

try:
    import numpy
except ImportError:
    numpy = None  # the cases that use it fail

CASES = {}
STEPS = 16
WARM = 6


def case(labels, steps=STEPS):
    """Register a case: which causes may be named first."""
    def register(build):
        CASES[build.__name__] = (build, labels, steps)
        return build
    return register


def net(width, depth):
    return nn.Sequential(*[m for _ in range(depth) for m in (nn.Linear(width, width), nn.GELU())]).cuda()


def trainer(width=1024, depth=8, batch=512, **options):
    """A model, and a function that trains it on a batch (or its own) and returns the loss."""
    model = net(width, depth)
    opt = torch.optim.AdamW(model.parameters(), **(options or {"fused": True}))
    own = torch.randn(batch, width, device="cuda")

    def train(x=None):
        x = own if x is None else x
        loss = F.mse_loss(model(x), x)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss
    return model, train


@case("input-pipeline host-compute")
def tokenizer(finish):
    words = ["word%d" % (i * 7919 % 5000) for i in range(5000)]
    vocabulary = {w: i for i, w in enumerate(sorted(set(words)))}
    lines = [" ".join(words[(i * 31 + k) % 5000] for k in range(160)) for i in range(512)]
    table = nn.Embedding(5001, 256).cuda()
    _, train = trainer(256, 6)

    def tokens():
        return [[vocabulary.get(w, 0) for w in line.lower().split()] for line in lines]

    def step(i):
        ids = torch.tensor(tokens())
        train(table(ids.to("cuda")).mean(1).detach())
    ready = torch.tensor(tokens()).pin_memory()

    def fixed(i):
        train(table(ready.to("cuda", non_blocking=True)).mean(1).detach())
    return step, fixed


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        x = torch.full((1024,), float(i % 7))
        for _ in range(10):
            x = torch.sin(x * 1.01)
        return x


@case("input-pipeline")
def few_workers(finish):
    _, train = trainer()

    def loop(workers):
        it = iter(torch.utils.data.DataLoader(Slow(), batch_size=256, num_workers=workers, pin_memory=True))
        finish.append(lambda: it._shutdown_workers())
        return lambda i: train(next(it).to("cuda", non_blocking=True))
    return loop(1), None


@case("input-pipeline")
def starved_queue(finish):
    _, train = trainer()

    def loop(n):
        ready, stop = queue.Queue(2), []

        def produce():
            while not stop:
                time.sleep(0.012)  # as a download does
                x = torch.randn(512, 1024).pin_memory()
                while not stop:
                    try:
                        ready.put(x, timeout=0.1)
                        break
                    except queue.Full:
                        pass
        for _ in range(n):
            threading.Thread(target=produce, daemon=True).start()
        finish.append(lambda: stop.append(1))
        return lambda i: train(ready.get().to("cuda", non_blocking=True))
    return loop(1), None


@case("host-sync gpu-bound")  # 6 % of the step
def print_loss(finish):
    _, train = trainer(2048, 4, 1024)
    log = open(os.devnull, "w", encoding="utf-8")

    def step(i):
        for _ in range(8):
            print("loss", train().item(), file=log)

    def fixed(i):
        for _ in range(8):
            train()
    return step, fixed


@case("host-sync")
def metrics_cpu(finish):
    model, train = trainer()
    x = torch.randn(16384, 1024, device="cuda")
    truth = numpy.zeros(16384, dtype=numpy.int64)

    def step(i):
        train()
        with torch.no_grad():
            found = model(x)
        (found.cpu().numpy().argmax(1) == truth).mean()
    want = torch.zeros(16384, dtype=torch.int64, device="cuda")

    def fixed(i):
        train()
        with torch.no_grad():
            (model(x).argmax(1) == want).float().mean()
    return step, fixed


@case("host-sync")
def bool_index(finish):
    _, train = trainer(1024, 6, 2048)
    x = torch.randn(2048, 1024, device="cuda")

    def step(i):
        train()
        for k in range(24):
            y = torch.tanh(x * k) @ x.t()
            y[y > 0.5].sum()

    def fixed(i):
        train()
        for k in range(24):
            y = torch.tanh(x * k) @ x.t()
            torch.where(y > 0.5, y, 0).sum()
    return step, fixed


@case("storage-write", 24)
def checkpoint_k(finish):
    model, train = trainer(2048, 8)
    path = os.path.join(tempfile.mkdtemp(), "model.pt")
    finish.append(lambda: os.path.exists(path) and os.unlink(path))

    def step(i):
        train()
        if i % 4 == 3:
            torch.save(model.state_dict(), path)
    return step, lambda i: train()


@case("storage-write")
def fsync_log(finish):
    _, train = trainer()
    log = tempfile.TemporaryFile()

    def step(i):
        train()
        for k in range(8):
            log.write(b"step %d %d\n" % (i, k) * 2000)
            log.flush()
            os.fsync(log.fileno())
    return step, lambda i: train()


@case("host-compute")
def gc_pause(finish):
    _, train = trainer()
    heap = [[k] for k in range(400000)]
    finish.append(heap.clear)

    def step(i):
        train()
        gc.collect()
    return step, lambda i: train()


@case("host-compute")
def cpu_metric(finish):
    _, train = trainer()
    scores = [((k * 7919) % 10007) / 10007 for k in range(40000)]

    def step(i):
        train()
        order = sorted(scores)
        sum(a * b for a, b in zip(order, scores))
    return step, lambda i: train()


@case("launch-bound")
def graphs_partly(finish):
    model = net(128, 30)
    opt = torch.optim.AdamW(model.parameters(), foreach=False, capturable=True)
    x = torch.randn(64, 128, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            F.mse_loss(model(x), x).backward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    opt.zero_grad(set_to_none=False)
    with torch.cuda.graph(graph):
        F.mse_loss(model(x), x).backward()

    def step(i):
        graph.replay()
        opt.step()
        opt.zero_grad(set_to_none=False)
    return step, None


@case("launch-bound")
def small_batch(finish):
    _, train = trainer(64, 80, 4)
    return lambda i: train(), None


@case("allocator")
def malloc_each(finish):
    _, train = trainer()
    cuda = ctypes.CDLL("libcuda.so.1")

    def step(i):
        train()
        for _ in range(24):
            at = ctypes.c_uint64()
            assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(8 << 20)) == 0
            assert cuda.cuMemFree_v2(at) == 0
    return step, lambda i: train()


@case("pageable-copy")
def nonpinned(finish):
    _, train = trainer()
    host = torch.randn(32, 512, 1024)
    pinned = host.pin_memory()

    def step(i):
        train(host.to("cuda", non_blocking=True)[0])

    def fixed(i):
        train(pinned.to("cuda", non_blocking=True)[0])
    return step, fixed


@case("gil")
def gil_logger(finish):
    _, train = trainer(512, 20)
    stop = []

    def log():
        event = {"metric%d" % k: [k] * 20 for k in range(800)}
        while not stop:
            json.dumps(event, indent=1)
            time.sleep(0.0005)
    threading.Thread(target=log, daemon=True, name="logger").start()
    finish.append(lambda: stop.append(1))

    def fixed(i):
        if not stop:
            stop.append(1)
            time.sleep(0.1)
        train()
    return lambda i: train(), fixed


@case("host-compute unknown")
def lock_wait(finish):
    _, train = trainer()
    lock, stop = threading.Lock(), []

    def hold():
        while not stop:
            with lock:
                time.sleep(0.008)
            time.sleep(0.0002)
    threading.Thread(target=hold, daemon=True).start()
    finish.append(lambda: stop.append(1))

    def step(i):
        train()
        with lock:
            pass
    return step, lambda i: train()


@case("input-pipeline")
def cpu_augment(finish):
    _, train = trainer()
    images = numpy.random.default_rng(0).random((512, 1024), dtype=numpy.float32)

    def augment():
        x = images.copy()
        for _ in range(6):
            x = numpy.clip(numpy.tanh(x * 1.1) + 0.01, 0, 1)
        return x

    def step(i):
        train(torch.from_numpy(augment()).to("cuda"))
    ready = torch.from_numpy(augment()).pin_memory()
    return step, lambda i: train(ready.to("cuda", non_blocking=True))


def spin():
    os.sched_setaffinity(0, {1})
    while True:
        pass


def move(tids, cpus):
    for tid in tids:
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(tid, cpus)


@case("os-scheduling")
def preempted(finish):
    _, train = trainer(512, 20)
    others = [multiprocessing.get_context("fork").Process(target=spin, daemon=True) for _ in range(2)]
    all_cpus = os.sched_getaffinity(0)
    tids = [int(t) for t in os.listdir("/proc/self/task")]
    for other in others:
        other.start()
    move(tids, {1})

    def end():
        for other in others:
            other.kill()
        move([int(t) for t in os.listdir("/proc/self/task")], all_cpus)
    finish.append(end)
    return lambda i: train(), None


@case("any", 18)
def validation(finish):
    model, train = trainer()
    x = torch.randn(2048, 1024, device="cuda")

    def step(i):
        train()
        if i % 6 == 5:
            with torch.no_grad():
                for _ in range(12):
                    F.mse_loss(model(x), x).item()
    return step, None


def measure(step, steps):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(steps):
        torch.cuda.nvtx.range_push("step_%d" % i)
        step(i)
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps * 1e3


def run(name, is_short):
    build, labels, steps = CASES[name]
    finish = []
    torch.manual_seed(0)
    try:
        step, fixed = build(finish)
        for i in range(WARM):
            step(i)
        plain_ms = 0.0 if is_short else measure(step, steps)
        torch.cuda.profiler.start()
        taken_ms = measure(step, steps)
        torch.cuda.profiler.stop()
        time.sleep(0.2)  # until the recorder has seen it
        fixed_ms = 0.0
        if fixed and not is_short:
            for i in range(WARM):
                fixed(i)
            fixed_ms = measure(fixed, 2 * steps)
        print("RESULT case=%s labels=%s plain_ms=%.3f recorded_ms=%.3f fixed_ms=%.3f" %
              (name, ",".join(labels.split()), plain_ms, taken_ms, fixed_ms), flush=True)
    finally:
        for end in finish:
            end()
        gc.collect()
        torch.cuda.empty_cache()


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    ap.add_argument("cases", nargs="?", default="")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--short", action="store_true", help="the captured part alone")
    a = ap.parse_args()
    if a.list or not a.cases:
        for name, (_, labels, _) in sorted(CASES.items()):
            print("%-16s %s" % (name, labels))
        return
    for name in a.cases.split(","):
        try:
            run(name, a.short)
        except Exception:  # one that fails must not cost the others
            traceback.print_exc()
            print("RESULT case=%s failed" % name, flush=True)


if __name__ == "__main__":
    main()
