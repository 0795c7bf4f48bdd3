#!/usr/bin/env python3
"""lull why on programs that it was not written for: a host, a device and a recorder in 150 lines of Python.

Each case is a training loop as somebody might write it. It runs here twice, as it is and with its fix, against a clock
that a host thread and the streams of a device share; the first run is turned into a report as lull would record it, with
samples, waits and calls. The first cause has to be right, or nothing is said; where a fix exists, the step that is
predicted is held against the one that the fixed loop takes here. Nothing of this shares code with src/cause.
Usage: test_why_cases.py BUILD [NAME...]
"""
import json
import os
import random
import sys

import runner

LULL = os.path.join(os.path.abspath(sys.argv[1]), "lull")
USER, TORCH, LIB = "/srv/train/train.py", "/opt/venv/lib/python3.12/site-packages/torch/", "/usr/lib/python3.12/"
MAIN, BACK, OTHER, COMPUTE, SIDE = 1, 2, 3, 4, 5  # lanes
LATENCY = 6.0


class Program:
    """Times in us. Rows are collected only while `is_recorded`."""

    def __init__(self, seed, is_recorded=True):
        self.rng = random.Random(seed)
        self.is_recorded = is_recorded
        self.t = 1000.0
        self.ends = {COMPUTE: 0.0, SIDE: 0.0}
        self.rows, self.frames, self.stacks, self.launches, self.strings = [], {}, {}, {}, {}
        self.number = 0
        self.lane = MAIN
        self.on_cpu = 1000.0
        self.preempted = 0.0  # how often a us: anywhere, also inside of calls

    def row(self, at, table, **cells):
        if self.is_recorded:
            words = " ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in cells.items())
            self.rows.append((at, f"{table} start={at * 1000:.0f}ns {words}"))

    def stack(self, frames):
        """The number of a stack; frames are (function, file), outermost first."""
        parent = 0
        for frame in frames:
            f = self.frames.setdefault(frame, len(self.frames) + 1)
            parent = self.stacks.setdefault((parent, f), len(self.stacks) + 1)
        return parent

    def spread(self, us):
        return us * self.rng.lognormvariate(0, 0.05)

    def sample(self, begin, end, stack, lane=None):
        """Python every 10 ms, the CPU every 1 ms, at moments that have nothing to do with the program."""
        lane = lane or self.lane
        for k in range(int(begin // 10000) + 1, int(end // 10000) + 1):
            self.row(k * 10000.0, "pysample", lane=lane, stack=self.stack(stack), has_gil=1)
        native = [("_PyEval_EvalFrameDefault", "")]
        for k in range(int(begin // 1000) + 1, int(end // 1000) + 1):
            self.row(k * 1000.0 + 0.5, "sample", lane=lane, stack=self.stack(native), weight_ns=1000000, source=1)

    def run(self, us, *stack):
        """Python of the program, in these functions."""
        us = self.spread(us)
        self.sample(self.t, self.t + us, [("main", USER), *stack])
        self.t += us

    def leave(self, reason):
        self.row(self.on_cpu, "sched", dur=f"{(self.t - self.on_cpu) * 1000:.0f}ns", lane=self.lane, end_reason=reason)

    def wait(self, us, call=None, *stack):
        """Off the CPU; in a call of the C library, if it has a name."""
        us = self.spread(us)
        self.leave(1)
        if call:
            self.row(self.t, "oscall", dur=f"{us * 1000:.0f}ns", lane=self.lane, name=call, ret=1,
                     stack=self.stack([("main", USER), *stack]))
        for k in range(int(self.t // 10000) + 1, int((self.t + us) // 10000) + 1):
            self.row(k * 10000.0, "pysample", lane=self.lane, stack=self.stack([("main", USER), *stack]), is_idle=1)
        self.t += us
        self.on_cpu = self.t

    def gil(self, us):
        self.leave(1)
        self.row(self.t, "gil_wait", dur=f"{us * 1000:.0f}ns", lane=self.lane, n_slices=1)
        self.sample(self.t, self.t + us, [("log", USER)], OTHER)
        self.t += us
        self.on_cpu = self.t

    def preempt(self, us):
        self.leave(2)
        self.t += us
        self.on_cpu = self.t

    def maybe_preempt(self, us):
        if self.rng.random() < self.preempted * us:
            self.preempt(self.spread(3000))

    def call(self, name, us, number=0):
        begin = self.t
        self.t += us / 2
        self.maybe_preempt(us)
        self.t += us / 2
        self.row(begin, "cuda_call", dur=f"{(self.t - begin) * 1000:.0f}ns", lane=self.lane, name=name,
                 correlation=number, api=2)

    def framework(self, us, *stack):
        us = self.spread(us)
        self.sample(self.t, self.t + us, [("main", USER), *(stack or [("forward", TORCH + "nn/modules/linear.py")])])
        self.t += us
        self.maybe_preempt(us)

    def start(self, stream, us, after=0.0):
        begin = max(self.t + LATENCY, self.ends[stream] + 1, after)
        self.ends[stream] = begin + us
        return begin

    def kernel(self, name, us, stream=COMPUTE, gap=18, after=0.0):
        self.framework(gap)
        self.number += 1
        us = self.spread(us)
        launch = self.launches.setdefault(name, len(self.launches) + 1)
        begin = self.start(stream, us, after)
        self.row(begin, "kernel", dur=f"{us * 1000:.0f}ns", lane=stream, launch=launch, correlation=self.number, process=1)
        self.call("cudaLaunchKernel", self.spread(5), self.number)

    def copy(self, mib, *stack, out=False, pinned=False, stream=COMPUTE, gap=15):
        """A copy to the device, or from it; from ordinary memory the call takes as long as the copy."""
        self.framework(gap, *stack)
        self.number += 1
        us = mib * (1 << 20) / (55e3 if pinned else 8e3) + 1
        begin = self.start(stream, us)
        kinds = dict(src_kind=3, dst_kind=2 if pinned else 1) if out else dict(src_kind=2 if pinned else 1, dst_kind=3)
        self.row(begin, "memcpy", dur=f"{us * 1000:.0f}ns", lane=stream, size_bytes=int(mib * (1 << 20)),
                 correlation=self.number, process=1, copy_kind=2 if out else 1, **kinds)
        self.call("cudaMemcpyAsync", 8 if pinned else max(begin + us - self.t, 8) + 4, self.number)
        return begin + us

    def sync(self, name="cudaStreamSynchronize"):
        self.framework(8)
        self.number += 1
        self.call(name, max(self.ends[COMPUTE] - self.t, 0) + 4, self.number)

    def train(self, kernels=60, us=30, gap=18, every=lambda: None):
        """Layers that are alike, a loss and an update."""
        for k in range(kernels - 2):
            every()
            self.kernel("void gemm_%d" % (k % 7) if k % 3 else "void at::native::vectorized_elementwise_kernel", us, gap=gap)
            if k == kernels // 2:
                self.kernel("void at::native::mse_kernel", us, gap=gap)
        self.kernel("void at::native::multi_tensor_apply_kernel", us, gap=gap)

    def step(self, number, body):
        begin = self.t
        body(self, number)
        self.row(begin, "step", dur=f"{(self.t - begin) * 1000:.0f}ns", lane=MAIN, number=number)

    def text(self):
        lines = ['process pid=10 name=python3 has_agent=1 runtime="python 3.12.1"',
                 'device process=1 device_id=0 name="NVIDIA H200" uuid=gpu0 clock_hz=1980000000',
                 "lane kind=1 process=1 tid=10 name=python3", "lane kind=1 process=1 tid=11 name=pt_autograd_0",
                 "lane kind=1 process=1 tid=12 name=logger", "lane kind=2 process=1 device=1 stream_id=7",
                 "lane kind=2 process=1 device=1 stream_id=20", "metric name=sm_clock unit=MHz source=nvml"]
        for (function, file), _ in sorted(self.frames.items(), key=lambda f: f[1]):
            lines.append(f'frame kind={2 if file else 1} function="{function}" file="{file}" line=7')
        for (parent, frame), _ in sorted(self.stacks.items(), key=lambda s: s[1]):
            lines.append(f"stack parent={parent} frame={frame}")
        lines += [f'launch name="{name}"' for name in self.launches]
        return "\n".join(lines + [line for _, line in sorted(self.rows, key=lambda r: r[0])]) + "\n"


CASES = {}


def case(labels, fixed=None, steps=24):
    """Causes that may be first ("nothing": it may be silent); `fixed` is the loop without its trouble."""
    def register(body):
        CASES[body.__name__] = (body, labels.split(), fixed, steps)
        return body
    return register


def plain(p, i):
    p.train()


def with_batch(p, i):
    p.copy(4, pinned=True)
    p.train()


@case("input-pipeline", with_batch)
def tokenizer_in_the_loop(p, i):
    p.run(9000, ("encode", USER), ("split", USER))
    p.copy(4)
    p.train()


@case("input-pipeline", with_batch)
def images_decoded_by_a_library(p, i):
    p.run(12000, ("load_batch", USER), ("open", "/opt/venv/lib/python3.12/site-packages/PIL/Image.py"))
    p.copy(4)
    p.train()


@case("input-pipeline", with_batch)
def queue_of_a_prefetcher_is_empty(p, i):
    p.wait(9000, "sem_clockwait", ("get", LIB + "queue.py"), ("wait", LIB + "threading.py"))
    p.copy(4, pinned=True)
    p.train()


@case("input-pipeline", with_batch)
def samples_read_from_slow_storage(p, i):
    for _ in range(6):
        p.wait(1800, "read", ("load", USER))
        p.run(60, ("load", USER))
    p.copy(4)
    p.train()


@case("input-pipeline nothing")
def every_tenth_batch_is_late(p, i):
    p.wait(60000 if i % 10 == 9 else 30, "poll", ("_try_get_data", TORCH + "utils/data/dataloader.py"))
    p.copy(4, pinned=True)
    p.train()


def parts(p, i):
    for _ in range(16):
        p.train(6, 40)


@case("host-sync", parts)
def loss_is_printed_each_part(p, i):
    for _ in range(16):
        p.train(6, 40)
        p.copy(0.000004, out=True)
        p.sync()


@case("host-sync", plain)
def predictions_go_to_numpy(p, i):
    p.train()
    p.copy(32, out=True)


def masks(p, i):
    for _ in range(12):
        p.train(4, 80)


@case("host-sync", masks)
def boolean_masks(p, i):
    for _ in range(12):
        p.train(4, 80)
        p.copy(0.000008, out=True)
        p.sync()


@case("storage-write", plain, 30)
def checkpoint_every_fifth_step(p, i):
    p.train()
    if i % 5 == 4:
        save = ("save", TORCH + "serialization.py"), ("_save", TORCH + "serialization.py")
        for _ in range(8):
            p.copy(8, *save, out=True, gap=300)
            p.wait(4000, "write", *save)


@case("storage-write", plain)
def log_is_synced(p, i):
    p.train()
    p.wait(3000, "fsync", ("log", USER))


@case("host-compute", plain)
def garbage_is_collected(p, i):
    p.train()
    p.run(6000, ("collect", USER))


@case("host-compute", plain)
def metrics_in_python(p, i):
    p.train()
    p.run(3000, ("f1_score", USER))


@case("lock-wait", plain)
def another_thread_holds_a_lock(p, i):
    p.train()
    p.wait(4000, "pthread_mutex_lock", ("update_ema", USER))
    p.run(40, ("update_ema", USER))


@case("network-read nothing", plain)
def a_server_is_asked(p, i):
    p.train()
    p.wait(5000, "recv", ("log", "/opt/venv/lib/python3.12/site-packages/wandb/run.py"))


@case("launch-bound")
def many_small_kernels(p, i):
    p.train(250, 4)


@case("launch-bound")
def optimizer_by_tensor(p, i):
    p.train(40, 20)
    for _ in range(300):
        p.kernel("void at::native::vectorized_elementwise_kernel", 2, gap=9)


@case("allocator", plain)
def memory_is_taken_each_step(p, i):
    p.train()
    p.framework(10)
    for _ in range(16):
        p.sync("cudaFree")
        p.call("cudaMalloc", 110)


def pinned_part(p, i):
    p.copy(64, pinned=True)
    p.train()


@case("pageable-copy", pinned_part)
def not_pinned_but_non_blocking(p, i):
    p.copy(64)
    p.train()


def beside(p, i):
    p.copy(128, pinned=True, stream=SIDE)
    p.train(60, 45)


@case("exposed-copy", beside)
def pinned_copies_in_the_way(p, i):
    p.copy(128, pinned=True)
    p.train(60, 45)


@case("gil", plain)
def a_logging_thread_has_the_lock(p, i):
    p.train(every=lambda: p.rng.random() < 0.08 and p.gil(p.spread(900)))


@case("os-scheduling", plain)
def others_take_the_cpu(p, i):
    p.preempted = 0.0015
    p.train()


@case("gpu-bound")
def large_matrices(p, i):
    p.train(60, 200)


@case("gpu-bound")
def copies_beside_large_matrices(p, i):
    p.copy(64, pinned=True, stream=SIDE)
    p.train(60, 200)


@case("throttled")
def clock_is_held_down(p, i):
    p.row(p.t, "counter", metric=1, device=1, value=1200)
    p.train(60, 200)


@case("unfused-elementwise")
def a_chain_of_activations(p, i):
    for k in range(80):
        p.kernel("void at::native::vectorized_elementwise_kernel<%s>" % ("add" if k % 2 else "mul"), 90)


def buckets(p, i):
    for _ in range(4):
        p.train(15, 60)
        p.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 900, SIDE)


@case("collective-exposed", buckets)
def gradients_after_the_backward_pass(p, i):
    p.train(60, 60)
    for _ in range(4):
        p.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 900, SIDE, after=p.ends[COMPUTE])
    p.ends[COMPUTE] = p.ends[SIDE]


@case("host-sync launch-bound gpu-bound nothing", steps=32)
def validation_now_and_then(p, i):
    p.train()
    if i % 8 == 7:
        for _ in range(10):
            p.train(15, 30)
            p.copy(0.000004, out=True)
            p.sync()


@case("lazy-init nothing")
def shapes_change_all_the_time(p, i):
    p.train(30, 30)
    for _ in range(3):
        p.framework(30)
        p.call("cuModuleLoadData", 2500)
        p.kernel("void new_%d" % (p.number % 5), 30)
    p.train(30, 30)


def measure(body, steps, is_recorded, seed):
    """The program after `steps` of it, and its mean step: without the first, as the answer has it."""
    p = Program(seed, is_recorded)
    ends = []
    for i in range(steps):
        p.step(i, body)
        ends.append(max(p.ends.values()))
    p.leave(4)
    return p, (ends[-1] - ends[0]) / (steps - 1) / 1000


def record(name):
    """Run a case and write its report; the measured step in ms."""
    body, _, _, steps = CASES[name]
    p, step_ms = measure(body, steps, True, 1)
    with open(name + ".txt", "w", encoding="utf-8") as f:
        f.write(p.text())
    runner.run([LULL, "text", name + ".txt", name + ".lull"], check=True)
    return step_ms


def ask(name, step_ms, without):
    """What is said of a case: cause, confidence, predicted ms, true ms, all of it."""
    _, _, fixed, steps = CASES[name]
    answer = json.loads(runner.run([LULL, "why", "-f", "json", *without, name + ".lull"], check=True).stdout)
    first = answer["first"]
    found = [f for f in answer["findings"] if f["cause"] == first]
    predicted = found and found[0]["prediction"] and found[0]["prediction"]["step_ns"] / 1e6
    true_ms = measure(fixed, steps, False, 2)[1] if fixed else 0
    # What repeats may be a part of the step, where nobody says what a step is.
    part = answer["steps"]["mean_ns"] / 1e6 / step_ms if answer["steps"]["source"] == "period" else 1
    true_ms *= part if part < 0.6 else 1
    return first or "nothing", found[0]["confidence"] if found else 0, predicted or 0, true_ms, answer


# What was recorded, and what it is called in the table.
VARIANTS = {(): "all", ("--without", "steps,ranges"): "bare",
            ("--without", "steps,ranges,samples,python,osrt,sched,gil"): "calls"}


def is_doubted(without, first, confidence, answer):
    """With less recorded it may guess, if it says so; with CUDA calls alone, that the host does something."""
    return without and (answer["is_probable"] or
                        VARIANTS[without] == "calls" and first == "host-compute" and confidence <= 0.5)


ERRORS = []  # (how far the prediction is off, its case)


def check(name):
    """The first cause is right with all that was recorded, and with less of it."""
    step_ms = record(name)
    for without in VARIANTS:
        first, confidence, predicted, true_ms, answer = ask(name, step_ms, without)
        labels = CASES[name][1]
        line = "%-36s %-5s %-20s %.2f  %7.2f ms" % (name, VARIANTS[without], first, confidence, step_ms)
        if true_ms and predicted and first == labels[0]:
            ERRORS.append((abs(predicted / true_ms - 1), name))
            line += "  predicted %6.2f, true %6.2f (%+.0f %%)" % (predicted, true_ms, (predicted / true_ms - 1) * 100)
        print(line)
        is_good = first in labels or (without and first == "nothing") or is_doubted(without, first, confidence, answer)
        runner.expect(line, is_good, (labels, answer["cannot_tell"]))


def predictions_are_near():
    """Of the cases that ran."""
    if not ERRORS:
        runner.skip("no case with a prediction was chosen")
    errors = sorted(ERRORS)
    print("predictions: median %.0f %%, worst %.0f %% (%s)" % (
        100 * errors[len(errors) // 2][0], 100 * errors[-1][0], errors[-1][1]))
    runner.expect("the median", errors[len(errors) // 2][0] <= 0.15, errors)
    runner.expect("the worst", errors[-1][0] <= 0.3, errors[-1])


if __name__ == "__main__":
    runner.main([*(runner.named(name, check, name) for name in CASES), predictions_are_near], sys.argv[2:])
