#!/usr/bin/env python3
"""What recording costs on a real GPU, beside an agent that enables CUPTI's kernel records and drops them.

    bench/gpu/run.py --lull build/lull --planted planted.py --budget 600
    bench/gpu/run.py --only loop,parts              what the parts of it cost

Runs alternate and medians are compared within one run: such machines vary by 15 % from one to the next, and processes
of one program on one machine by 10 %, so that training loops are compared with themselves: recorded, at the floor, and
neither, by turns in one process. Virtual CPUs share cores, and a step of one and the same process takes 9 or 18 ms, as
the neighbours please. So the quietest CPU is looked for, nothing else of ours runs on the other half of its core, a
fixed piece of work before each step tells whether it is all ours just then or shared, turns of a few steps that follow
each other are compared if they are alike in that, and of these ratios the mean of the middle half is taken. "Not
recorded" is in the same process, with the agent loaded and CUPTI away; that this costs nothing beside a process without
lull is shown for launches (launches.py, `--only after`). Targets: a launch at most 0.35 us above the floor; steps at
most 5 % above it and less than half of what torch.profiler adds; 1.01 of untraced where the device or the data set is
the limit, and after the recording.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                                "test", "gpu"))
import gpu
from gpu import Failed, Skipped, verdict
from cpus import FAST, SLOW, apart, pinned, quiet_cpus
from launches import bench_after, bench_loop, size

HERE = os.path.dirname(os.path.abspath(__file__))
QUIET = ["-s", "none", "--cpuctxsw", "none", "--python-sampling=false"]
MAX_ROUNDS = 1000  # of turns; the time is over before
MIN_STEPS = 4  # of a turn, to compare it; or half of them
ALL = ["-t", "cuda,nvtx,osrt,python-gil,nccl,cublas,cudnn", "--cuda-memory-usage=true"]


def prefix(b, variant):
    """The command that a variant puts before the program, its environment, and who switches it on and off."""
    variant = variant.partition("#")[0]
    lull = [b.lull, "profile", "-q", "-f", "true", "-o", b.path("bench")]
    floor = {"CUDA_INJECTION64_PATH": b.floor, "FLOOR_WITH": "", **b.cupti()}
    kind, _, words = variant.partition(":")
    if kind == "with":
        return lull + (words.split() if words.startswith("-t") else ["-t", "cuda"] + alone(words)), {}, "lull"
    return {
        "untraced": ([], {}, "none"),
        "profiler": ([], {}, "profiler"),
        "floor": ([], {**floor, "FLOOR_WITH": words}, "floor"),
        "cuda": (lull + ["-t", "cuda"] + QUIET, {}, "lull"),
        "cuda, no flush": (lull + ["-t", "cuda", "--cuda-flush-interval=0"] + QUIET, {}, "lull"),
        "default": (lull, {}, "lull"),
        "everything": (lull + ALL, {}, "lull"),
    }[kind]


def alone(words):
    """CUDA and what these options add to it: what is on otherwise is switched off first."""
    off = {"-s": "none", "--cpuctxsw": "none", "--python-sampling": "false", "--gpu-metrics": "none"}
    for word in words.split():
        key, _, value = word.partition("=")
        off[key] = value
    return [word for key, value in off.items() for word in ([key, value] if key == "-s" else [key + "=" + value])]


def placed(b, variant, cpus):
    """The command of a variant up to the program: the recorder is elsewhere than the program."""
    before, env, switch = prefix(b, variant)
    return (pinned(cpus[-8:]) + before if before else []) + pinned(cpus[:4]), env, switch


def alternate(b, variants, argv, rounds, key, share=1.0):
    """What each variant printed in each round; rounds end when their share of the budget is spent."""
    found = {v: [] for v in variants}
    first, cpus = time.monotonic(), apart(quiet_cpus())
    for i in range(rounds):
        begin = time.monotonic()
        for v in rotated(variants, i):
            before, env, _ = placed(b, v, cpus)
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


def above(runs, others, key):
    """By how much they are above others, round by round: the median."""
    return statistics.median(a[key] - b[key] for a, b in zip(runs, others))


def bench_parts(b):
    """The floor and one thing more at a time."""
    n = size(b, 100000, 20000, 2000)
    words = ["", "kinds", "graph", "clock", "zeroed", "launch", "calls", "flush", "walk", "small",
             "kinds,graph,clock,zeroed,calls,flush,walk"]
    variants = ["floor:" + w for w in words]
    found, rounds = alternate(b, variants, [b.probe, "loop", str(n)], size(b, 3, 3, 1), "ns_per_launch", 0.2)
    for v in variants:
        yield ("parts: " + (v[6:].replace(words[-1], "all but small") or "kernel records"), "",
               "%.0f ns a launch, %+.0f; CPU %.0f, n=%d" % (
                   middle(found[v], "ns_per_launch"), above(found[v], found[variants[0]], "ns_per_launch"),
                   middle(found[v], "cpu_per_launch"), rounds), "ok")


def start_cases(b, variant, ix, argv, cpus):
    """One process with all the cases, recorded in one way."""
    before, env, switch = prefix(b, variant)
    before = [b.path("bench-%d" % ix) if word == b.path("bench") else word for word in before]
    if before:
        before = pinned(cpus[-8:]) + before + ["-c", "lull", "--capture-range-end=repeat", "-q"]
    # "Off" is without CUPTI, as in a program that is not recorded.
    env = {**b.env, **b.cupti(), "LULL_CUPTI_LEAVE": "always", "FLOOR_AGENT": b.floor, **env}
    return subprocess.Popen(before + argv + ["--switch", switch], env=env, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def answer(process, begin):
    """The rest of the next line that starts so."""
    for line in process.stdout:
        if line.startswith(begin):
            return line[len(begin):]
    raise Failed("a variant ended early, status %s" % process.wait())


def rotated(items, by):
    return items[by % len(items):] + items[:by % len(items)]


def ask(process, case, mode):
    process.stdin.write("%s %s\n" % (case, mode))
    process.stdin.flush()
    return [tuple(map(float, word.split("/"))) for word in answer(process, case + "=").split()]


def take_turns(b, processes, cases, modes):
    """(milliseconds, reference) of steps by variant, mode, case and round, until the time is spent."""
    found = {v: {m: {case: [] for case in cases} for m in modes(v)} for v in processes}
    for process in processes.values():
        answer(process, "ready")
    first = time.monotonic()
    for i in range(MAX_ROUNDS):
        begin = time.monotonic()
        # Who comes first finds the device cooler: everybody does once.
        for variant, process in rotated(list(processes.items()), i):
            for mode in rotated(modes(variant), i):
                for case in cases:
                    found[variant][mode][case].append(ask(process, case, mode))
        took = (time.monotonic() - begin) * 1.3
        if took > b.left() or time.monotonic() - first + took > b.options.seconds:
            break
    return found, i + 1


def keep(b, found):
    """All steps, a line of JSON for each item, for whoever wants to look closer."""
    if b.options.keep:
        with open(b.options.keep, "a", encoding="utf-8") as f:
            f.write(json.dumps(found) + "\n")


def turns(b, variants, cases, modes):
    """Step times of the planted loops. All variants are there at once and take turns."""
    if not b.options.planted:
        raise Skipped("no planted.py; give it with --planted")
    gpu.need_torch(b)
    # One at a time has these CPUs: with CPUs of its own each process would be fast or slow by chance.
    cpus = apart(quiet_cpus())
    argv = [*pinned(cpus[:4]), sys.executable, os.path.join(HERE, "planted_cases.py"), b.options.planted, ",".join(cases),
            "--repeats", str(MAX_ROUNDS * max(len(modes(v)) for v in variants)),
            "--steps", str(3 if b.options.short else b.options.steps)] + ["--cpu=%d" % cpu for cpu in cpus[:1]]
    processes = {v: start_cases(b, v, i, argv, cpus) for i, v in enumerate(variants)}
    try:
        found = take_turns(b, processes, cases, modes)
        keep(b, found[0])
        return found
    finally:
        for process in processes.values():
            process.stdin.close()
        for process in processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def of_kind(found, kind):
    return [v for v in found if v.partition("#")[0] == kind]


def states(modes, case):
    """What the piece of work takes, (least, most), on a CPU of one's own and on one that is shared all the time."""
    if case == "compute_bound":  # the device is the limit
        return [(0, float("inf"))] * 2
    refs = sorted(ref for turns in modes.values() for turn in turns[case] for _, ref in turn)
    own = refs[len(refs) // 10]
    return [(0, FAST * own), (SLOW * own, float("inf"))]


def steps_in(turn, state):
    """The steps of a turn during which the CPU was in that state: before them and after."""
    refs = [ref for _, ref in turn]
    refs.append(refs[-1])
    return [ms for i, (ms, _) in enumerate(turn) if all(state[0] <= ref <= state[1] for ref in refs[i:i + 2])]


def raw(turns):
    """The median step, ms."""
    return statistics.median(ms for turn in turns for ms, _ in turn)


def pairs(modes, mode, base, case):
    """Steps in one mode against those in another, in each round in which both found the CPU in the same state."""
    enough = min(MIN_STEPS, len(modes[base][case][0]) // 2 + 1)
    both = [(steps_in(a, state), steps_in(b, state)) for a, b in zip(modes[mode][case], modes[base][case])
            for state in dict.fromkeys(states(modes, case))]
    return [statistics.median(a) / statistics.median(b) for a, b in both if min(len(a), len(b)) >= enough]


def middle_mean(values):
    """The mean of their middle half: as deaf to outliers as the median, and steadier."""
    values = sorted(values)
    return statistics.mean(values[len(values) // 4:len(values) - len(values) // 4])


class Ratio:
    """Steps in one mode against those in another, of the processes of one kind: each with itself."""

    def __init__(self, found, kind, mode, base, case):
        groups = [pairs(found[v], mode, base, case) for v in of_kind(found, kind)]
        self.n = sum(map(len, groups))
        if self.n < 7:
            raise Failed("the neighbours change too often; take another machine, or more --seconds")
        self.value = middle_mean(sum(groups, []))
        # Processes drawn again, and pairs of them: where nineteen of twenty such runs would be.
        draw = random.Random(1)
        again = sorted(self.drawn(draw, [g for g in groups if g]) for _ in range(400))
        self.within = again[9], again[389]

    @staticmethod
    def drawn(draw, groups):
        return middle_mean([r for g in draw.choices(groups, k=len(groups)) for r in draw.choices(g, k=len(g))])

    def __str__(self):
        return "%.3f (%.3f to %.3f, %d pairs)" % (self.value, *self.within, self.n)


def steps_of(found, kinds, mode, case, ix):
    """All steps of processes of these kinds with the CPU in its state of that number, ms."""
    return [ms for kind in kinds for v in of_kind(found, kind) for turn in found[v][mode][case]
            for ms in steps_in(turn, states(found[v], case)[ix])]


def beside(found, kinds, mode, others, base, case):
    """The median step of some processes over that of others; in the state in which there are more."""
    both = max(((steps_of(found, kinds, mode, case, ix), steps_of(found, others, base, case, ix)) for ix in (0, 1)),
               key=lambda both: min(map(len, both)))
    return statistics.median(both[0]) / statistics.median(both[1])


def off_ms(found, case):
    """The median step that is not recorded."""
    return raw([turn for v in of_kind(found, "default") for turn in found[v]["off"][case]])


def judge_default(case, found):
    """Rows for a loop that launches much."""
    over = Ratio(found, "default", "on", "floor", case)
    yield (case + ": default", "<= 1.05 of the floor", str(over), verdict(over.value <= 1.05))
    yield (case + ": default", "", "%s of not recorded (%.2f ms), floor %s" % (
        Ratio(found, "default", "on", "off", case), off_ms(found, case),
        Ratio(found, "default", "floor", "off", case)), "ok")


def judge_others(case, found):
    """Rows for the same loop, beside torch.profiler and with everything on."""
    ours = Ratio(found, "default", "on", "off", case).value
    # torch.profiler leaves CUPTI in the process, so that its own steps without it are no measure.
    theirs = beside(found, ("profiler",), "on", ("default", "everything"), "off", case)
    part = (ours - 1) / max(theirs - 1, 1e-9)
    yield (case + ": beside torch.profiler", "< 0.5 of what it adds", "%.2f (%.3f and %.3f of not recorded)" % (
        part, ours, theirs), verdict(part < 0.5))
    over = Ratio(found, "everything", "on", "floor", case)
    yield case + ": everything on", "<= 1.25 of the floor", str(over), verdict(over.value <= 1.25)


def judge_busy(case, found):
    """Rows for a loop whose device or data set is the limit."""
    over = Ratio(found, "default", "on", "off", case)
    yield (case + ": default", "<= 1.01 of not recorded", "%s (%.2f ms)" % (over, off_ms(found, case)),
           verdict(over.value <= 1.01))


def bench_pairs(b, copies, cases, judge, modes):
    variants = ["%s#%d" % (v, i) for v, n in copies.items() for i in range(n)]
    found, rounds = turns(b, variants, cases, modes)
    for case in cases:
        for name, expected, measured, good in judge(case, found):
            yield (name, expected, measured + ", n=%d" % rounds, good)


LAUNCHING = ["optimizer_loop", "launch_bound"]


def with_floor(variant):
    return ["off", "on"] if variant.startswith("profiler") else ["off", "floor", "on"]


def bench_planted(b):
    """Each process is compared with itself: recording, at the floor, and neither, by turns."""
    return bench_pairs(b, {"default": 3}, LAUNCHING, judge_default, with_floor)


def bench_others(b):
    return bench_pairs(b, {"default": 1, "everything": 1, "profiler": 1}, LAUNCHING, judge_others, with_floor)


def bench_busy(b):
    return bench_pairs(b, {"default": 2}, ["compute_bound"], judge_busy, lambda v: ["off", "on"])


def bench_data(b):
    """Many processes: the cost of a recording differs by 1 % from one to the next, for as long as they live."""
    return bench_pairs(b, {"default": 8}, ["dataloader_cpu"], judge_busy, lambda v: ["off", "on"])


def show_turns(b, name, variants, cases, modes):
    """Against the floor where it is there, else against nothing."""
    found, rounds = turns(b, variants, cases, modes)
    for v in variants:
        base = "floor" if "floor" in modes(v) else "off"
        for mode in (m for m in modes(v) if m not in ("off", "floor")):
            yield ("%s: %s" % (name, (v if mode == "on" else mode).replace(" ".join(alone("")), "")[:40]), "", "  ".join(
                "%s %.2f (%.3f of %s)" % (c, raw(found[v][mode][c]), statistics.median(
                    pairs(found[v], mode, base, c) or [0]), base) for c in cases) + ", n=%d" % rounds, "ok")


def bench_calls(b):
    """What CUPTI costs for each thing one more, in a framework; twice the same shows the noise."""
    modes = ["off", "on", "kinds", "launch,runtime", "launch", "calls,runtime", "calls", "calls,kinds,graph", "none,launch"]
    return show_turns(b, "calls", ["floor#1", "floor#2"], ["optimizer_loop", "launch_bound"], lambda v: modes)


def bench_kinds(b):
    """What CUPTI costs for each kind of record one more, in a framework."""
    modes = ["off", "on"] + ["k%d" % k for k in (1, 22, 2, 38, 17, 52)] + ["kinds"]
    return show_turns(b, "kinds", ["floor#1", "floor#2"], ["optimizer_loop", "launch_bound"], lambda v: modes)


def bench_sources(b):
    """What each source adds to the steps of loops that the CPU limits."""
    words = ["", "--gpu-metrics=nvml", "-s=process-tree", "--cpuctxsw=process-tree", "--python-sampling=true",
             "-t cuda,osrt " + " ".join(alone("")), "-t cuda,python-gil " + " ".join(alone("")),
             "-t nvtx " + " ".join(alone(""))]
    variants = ["with:" + w for w in words] + ["default"]
    return show_turns(b, "sources", variants, ["optimizer_loop", "launch_bound"], lambda v: ["off", "floor", "on"])


def bench_rates(b):
    """What CPU samples add: the default's, ten times as many, none."""
    variants = ["default"] + ["with:-t cuda,nvtx,osrt " + w for w in ("--sampling-frequency=1000", "-s none")]
    return show_turns(b, "rates", variants, ["optimizer_loop", "launch_bound", "dataloader_cpu"],
                      lambda v: ["off", "floor", "on"])


def bench_data_parts(b):
    """What a data set on the CPU pays for: the default, and without one thing each."""
    words = ["--gpu-metrics=none", "--python-sampling=false", "-s none --cpuctxsw=none"]
    return show_turns(b, "data", ["default"] + ["with:-t cuda,nvtx,osrt,python-gil " + w for w in words],
                      ["dataloader_cpu"], lambda v: ["off", "on"])


ITEMS = [
    ("loop", 220, bench_loop),
    ("planted", 65, bench_planted),
    ("others", 65, bench_others),
    ("busy", 30, bench_busy),
    ("data", 30, bench_data),
    ("after", 140, bench_after),
    ("parts", 20, bench_parts),
    ("calls", 70, bench_calls),
    ("kinds", 70, bench_kinds),
    ("sources", 70, bench_sources),
    ("rates", 70, bench_rates),
    ("data_parts", 70, bench_data_parts),
]

if __name__ == "__main__":
    sys.exit(gpu.main(gpu.parse(__doc__.split("\n")[0], [
        (("--rounds",), dict(type=int, default=7, help="processes of loops of launches (default: 7)")),
        (("--seconds",), dict(type=float, default=60, help="for the turns of training loops (default: 60)")),
        (("--steps",), dict(type=int, default=6, help="of a turn (default: 6)")),
        (("--keep",), dict(metavar="FILE", help="append the times of all steps to FILE")),
    ], 600), ITEMS) and 1)
