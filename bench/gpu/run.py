#!/usr/bin/env python3
"""What recording costs on a real GPU, beside an agent that enables CUPTI's kernel records and drops them.

    bench/gpu/run.py --lull build/lull --planted planted.py --budget 170
    bench/gpu/run.py --only loop,parts              what the parts of it cost

Runs alternate and medians are compared within one run: such machines vary by 15 % from one to the next. Targets are
those of the issue: a launch at most 0.35 us above the floor; steps at most 5 % above it and less than half of what
torch.profiler adds; 1.01 of untraced where the device is the limit, and after the recording.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                                "test", "gpu"))
import gpu
from gpu import Failed, Skipped, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
QUIET = ["-s", "none", "--cpuctxsw", "none", "--python-sampling=false"]
ALL = ["-t", "cuda,nvtx,osrt,python-gil,nccl,cublas,cudnn", "--cuda-memory-usage=true"]


def prefix(b, variant):
    """The command that a variant puts before the program, and its environment; #N tells copies apart."""
    variant = variant.partition("#")[0]
    lull = [b.lull, "profile", "-q", "-f", "true", "-o", b.path("bench")]
    floor = {"CUDA_INJECTION64_PATH": b.floor, "FLOOR_WITH": "", **b.cupti()}
    kind, _, words = variant.partition(":")
    if kind == "with":
        return lull + (words.split() if words.startswith("-t") else ["-t", "cuda"] + alone(words)), {}
    return {
        "untraced": ([], {}),
        "profiler": ([], {}),
        "floor": ([], {**floor, "FLOOR_WITH": words}),
        "cuda": (lull + ["-t", "cuda"] + QUIET, {}),
        "cuda, no flush": (lull + ["-t", "cuda", "--cuda-flush-interval=0"] + QUIET, {}),
        "none": (lull + ["-t", "nvtx"] + alone(""), {}),
        "x": (lull + ["-t", "cuda"] + alone(""), {"LULL_X": "1"}),
        "default": (lull, {}),
        "everything": (lull + ALL, {}),
    }[kind]


def alone(words):
    """CUDA and what these options add to it: what is on otherwise is switched off first."""
    off = {"-s": "none", "--cpuctxsw": "none", "--python-sampling": "false", "--gpu-metrics": "none"}
    for word in words.split():
        key, _, value = word.partition("=")
        off[key] = value
    return [word for key, value in off.items() for word in ([key, value] if key == "-s" else [key + "=" + value])]


def alternate(b, variants, argv, rounds, key, share=1.0):
    """What each variant printed in each round; rounds end when their share of the budget is spent."""
    found = {v: [] for v in variants}
    first = time.monotonic()
    for i in range(rounds):
        begin = time.monotonic()
        for v in variants:
            before, env = prefix(b, v)
            text = b.run(before + argv, {**b.cupti(), **env})
            values = gpu.numbers(text)
            if key and key not in values:
                raise Failed("%s printed no %s" % (v, key))
            found[v].append(values)
        round_s = (time.monotonic() - begin) * 1.2
        if round_s + 2 > b.left() or time.monotonic() - first + round_s > share * b.options.budget:
            break
    return found, i + 1


def middle(runs, key):
    return statistics.median(values[key] for values in runs)


def bench_loop(b):
    n = 20000 if b.options.short or b.options.sim else 100000
    variants = ["untraced", "floor", "cuda", "default", "cuda, no flush"]
    found, rounds = alternate(b, variants, [b.probe, "loop", str(n)], b.options.rounds, "ns_per_launch", 0.35)
    median = {v: middle(found[v], "ns_per_launch") for v in variants}
    for v in variants:
        over = median[v] - median["floor"]
        good = v in ("untraced", "floor", "cuda, no flush") or over <= 350
        yield ("loop: " + v, "" if v in ("untraced", "floor") else "<= 350 ns above the floor",
               "%.0f ns a launch, %+.0f; CPU %.0f, n=%d" % (median[v], over, middle(found[v], "cpu_per_launch"), rounds),
               verdict(good))


def bench_parts(b):
    """The floor and one thing more at a time."""
    n = 20000 if b.options.short or b.options.sim else 100000
    words = ["", "kinds", "graph", "clock", "zeroed", "launch", "calls", "flush", "walk", "small",
             "kinds,graph,clock,zeroed,calls,flush,walk"]
    variants = ["floor:" + w for w in words]
    found, rounds = alternate(b, variants, [b.probe, "loop", str(n)], 3, "ns_per_launch", 0.2)
    base = middle(found[variants[0]], "ns_per_launch")
    for v in variants:
        m = middle(found[v], "ns_per_launch")
        yield ("parts: " + (v[6:].replace(words[-1], "all but small") or "kernel records"), "",
               "%.0f ns a launch, %+.0f; CPU %.0f, n=%d" % (m, m - base, middle(found[v], "cpu_per_launch"), rounds), "ok")


def bench_after(b):
    """A recording of half a second is over when the loop begins."""
    n = 10000 if b.options.short or b.options.sim else 100000
    plain, traced = [], []
    for _ in range(3):
        plain.append(gpu.numbers(b.run([b.probe, "later", str(n)], b.cupti()))["ns_per_launch"])
        text = b.record("after", ["-t", "cuda", *QUIET, "-d", "0.5", "--kill", "none"], [b.probe, "later", str(n)],
                        b.cupti())
        traced.append(gpu.numbers(text)["ns_per_launch"])
    ratio = statistics.median(traced) / statistics.median(plain)
    yield ("after the recording", "<= 1.01 of untraced", "%.3f (%.0f and %.0f ns)" % (
        ratio, statistics.median(traced), statistics.median(plain)), verdict(ratio <= 1.01))


def judge_case(case, m):
    """Rows for one planted loop; m are medians by variant."""
    floor, plain = m["floor"], m["untraced"]
    is_launching = case in ("optimizer_loop", "launch_bound")
    if is_launching:
        theirs = m["profiler"] - plain
        yield (case + ": default", "<= 1.05 of the floor", "%.3f (%.2f ms, floor %.2f, untraced %.2f)" % (
            m["default"] / floor, m["default"], floor, plain), verdict(m["default"] <= 1.05 * floor))
        yield (case + ": beside torch.profiler", "< half of +%.2f ms" % theirs, "+%.2f ms" % (m["default"] - plain),
               verdict(m["default"] - plain < theirs / 2))
    else:
        yield (case + ": default", "<= 1.01 of untraced", "%.3f (%.2f ms, untraced %.2f)" % (
            m["default"] / plain, m["default"], plain), verdict(m["default"] <= 1.01 * plain))
    yield (case + ": everything on", "<= 1.25 of the floor", "%.3f (%.2f ms)" % (m["everything"] / floor, m["everything"]),
           verdict(m["everything"] <= 1.25 * floor))


def start_cases(b, variant, ix, argv):
    """One process with all the cases, recorded in one way."""
    before, env = prefix(b, variant)
    before = [b.path("bench-%d" % ix) if word == b.path("bench") else word for word in before]
    more = ["--profiler"] if variant.startswith("profiler") else []
    return subprocess.Popen(before + argv + more, env={**b.env, **b.cupti(), **env}, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def answer(process, begin):
    """The rest of the next line that starts so."""
    for line in process.stdout:
        if line.startswith(begin):
            return line[len(begin):]
    raise Failed("a variant ended early, status %s" % process.wait())


def rotated(items, by):
    return items[by % len(items):] + items[:by % len(items)]


def take_turns(b, processes, cases):
    """Milliseconds a step by variant and case, in rounds through all processes until the time is spent."""
    found = {v: {case: [] for case in cases} for v in processes}
    for process in processes.values():
        answer(process, "ready")
    for i in range(b.options.rounds):
        begin = time.monotonic()
        for case in cases:
            # Who comes first finds the device cooler: everybody does once.
            for variant, process in rotated(list(processes.items()), i):
                process.stdin.write(case + "\n")
                process.stdin.flush()
                found[variant][case].append(float(answer(process, case + "=")))
        if (time.monotonic() - begin) * 1.3 > b.left():
            break
    return found, i + 1


def turns(b, variants, cases):
    """Medians by variant and case of the planted loops. All variants are there at once and take turns."""
    if not b.options.planted:
        raise Skipped("no planted.py; give it with --planted")
    gpu.need_torch(b)
    # One at a time has these CPUs: with CPUs of its own each process would be fast or slow by chance.
    pin = ["taskset", "-c", "4-7"] if shutil.which("taskset") and os.cpu_count() >= 8 else []
    argv = [*pin, sys.executable, os.path.join(HERE, "planted_cases.py"), b.options.planted, ",".join(cases),
            "--repeats", str(b.options.rounds), "--steps", "3" if b.options.short else "6"]
    processes = {v: start_cases(b, v, i, argv) for i, v in enumerate(variants)}
    try:
        found, rounds = take_turns(b, processes, cases)
    finally:
        for process in processes.values():
            process.stdin.close()
        for process in processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
    return {v: {case: statistics.median(found[v][case]) for case in cases} for v in variants}, rounds


def bench_planted(b):
    """Several processes of each kind: each is faster or slower than its like by some per cent, all its life."""
    cases = ["optimizer_loop", "launch_bound", "compute_bound", "dataloader_cpu"]
    copies = {"untraced": 2, "floor": 3, "default": 3, "everything": 2, "profiler": 1}
    found, rounds = turns(b, ["%s#%d" % (v, i) for v, n in copies.items() for i in range(n)], cases)
    for case in cases:
        m = {v: statistics.median([found["%s#%d" % (v, i)][case] for i in range(n)]) for v, n in copies.items()}
        for name, expected, measured, good in judge_case(case, m):
            yield (name, expected, measured + ", n=%d" % rounds, good)
    for v in found:
        yield (v, "", "  ".join("%s %.2f" % (c, found[v][c]) for c in cases), "ok")


def show_turns(b, name, variants, cases):
    medians, rounds = turns(b, variants, cases)
    for v in variants:
        yield (name + ": " + v.replace(" ".join(alone("")), "")[:24], "", "  ".join(
            "%s %.2f (%.3f)" % (c, medians[v][c], medians[v][c] / medians["floor"][c]) for c in cases) +
            ", n=%d" % rounds, "ok")


def bench_calls(b):
    """What CUPTI costs for each thing one more, in a framework; twice the same shows the noise."""
    words = ["", "kinds", "launch", "launch,runtime", "calls", "kinds,graph,clock,zeroed,calls,flush,walk"]
    variants = ["untraced", "floor"] + ["floor:" + w for w in words] + ["none", "with:", "with: "]
    return show_turns(b, "calls", variants + (["x"] if os.environ.get("LULL_X") else []), ["optimizer_loop", "launch_bound"])


def bench_kinds(b):
    """What CUPTI costs for each kind of record one more, in a framework."""
    variants = ["untraced", "floor"] + ["floor:k%d" % k for k in (1, 22, 2, 38, 17, 52)] + ["floor:kinds", "floor:"]
    return show_turns(b, "kinds", variants, ["optimizer_loop", "launch_bound"])


def bench_sources(b):
    """What each source adds to the steps of loops that the CPU limits."""
    words = ["", "--gpu-metrics=nvml", "-s=process-tree", "--cpuctxsw=process-tree", "--python-sampling=true",
             "-t cuda,osrt " + " ".join(alone("")), "-t cuda,python-gil " + " ".join(alone("")),
             "--cuda-flush-interval=0"]
    variants = ["untraced", "floor"] + ["with:" + w for w in words] + ["default"]
    return show_turns(b, "sources", variants, ["optimizer_loop", "launch_bound", "dataloader_cpu"])


ITEMS = [
    ("loop", 12, bench_loop),
    ("planted", 65, bench_planted),
    ("parts", 20, bench_parts),
    ("calls", 70, bench_calls),
    ("kinds", 70, bench_kinds),
    ("sources", 70, bench_sources),
    ("after", 18, bench_after),
]

if __name__ == "__main__":
    sys.exit(gpu.main(gpu.parse(__doc__.split("\n")[0], [
        (("--rounds",), dict(type=int, default=7, help="alternating rounds at most (default: 7)")),
    ]), ITEMS) and 1)
