"""What an empty launch takes: recorded, at the floor, after a recording, and without lull; by turns (turns.c)."""
import itertools
import os
import random
import select
import statistics
import subprocess

import runner
from cpus import FAST, SLOW, apart, pinned, quiet_cpus
from gpu import Failed, Skipped, verdict

ROUNDS = 5  # of all modes in one process
BLOCKS = 400  # of launches in a turn of them
SHORT = 80  # in a turn of processes that take turns with each other
MIN_BLOCKS = 20  # of a turn, to compare it
MIN_PAIRS = 5  # of turns, to say something about a couple
COUPLES = 8  # of a process with lull and one without


def size(b, usual, short, tried):
    """How much of something: usually, with --short, and where the script is only tried, on the simulated device."""
    return tried if b.options.sim else short if b.options.short else usual


def apis(b):
    """What turns.c can launch by here; the library that has a table is built."""
    if not os.path.exists(b.cudart()):
        return ["driver"]
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", b.path("libturns_table.so"),
                    os.path.join(os.path.dirname(os.path.abspath(__file__)), "turns_table.c"), b.cudart()], check=True)
    return ["driver", "table", "runtime"]


_numbers = itertools.count()


class Loop:
    """A process that launches when it is asked to."""

    def __init__(self, b, api, n_blocks, cpus, before=(), env=None):
        cudart = {"TURNS_CUDART": b.cudart(), "TURNS_TABLE": b.path("libturns_table.so")} if api != "driver" else {}
        # As the real one: it takes time as long as it is there. Who does not leave it is seen.
        self.state = b.path("state-%d" % next(_numbers))
        sim = {"LULL_SIM_CUPTI_NS": "500", "LULL_SIM_STATE": self.state} if b.options.sim else {}
        # What is before it runs elsewhere.
        argv = (pinned(cpus[-8:]) + list(before) if before else []) + pinned(cpus[:8]) + [b.turns, api, str(n_blocks)]
        self.process = subprocess.Popen(argv, env={**b.env, **b.cupti(), **cudart, **sim, **(env or {})}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.answer()

    def answer(self):
        """The next line, in words."""
        line = self.process.stdout.readline() if select.select([self.process.stdout], [], [], runner.limit())[0] else ""
        if not line.endswith("\n"):
            self.process.kill()
            status = self.process.wait()
            # It gives up where the recorder is too slow, or something is not there.
            raise (Skipped if status == 77 else Failed)("turns.c ended early, status %d" % status)
        return line.split()

    def turn(self, mode, cpu):
        """(nanoseconds of a launch, of a piece of work) by blocks, and the CPU at the end."""
        self.process.stdin.write("%s %d\n" % (mode, cpu))
        self.process.stdin.flush()
        *blocks, cpu = self.answer()
        return [tuple(map(float, block.split("/"))) for block in blocks], int(cpu)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(runner.limit())
        except subprocess.TimeoutExpired:
            self.process.kill()

    def n_finalized(self):
        """How often CUPTI was sent away, on the simulated device, once it has ended."""
        with open(self.state, encoding="ascii") as f:
            return int(dict(word.split("=") for word in f.read().split())["finalized"])


def recorded(b, end, ix=0):
    """What comes before a program that begins and ends its recording itself: one ("stop"), or many ("repeat")."""
    return [b.lull, "profile", "-q", "-f", "true", "-o", b.path("bench-%d" % ix), "-c", "lull", "--capture-range-end", end]


def too_busy(b):
    """What to raise; tests run the benchmarks on the simulated device, whatever else the machine does."""
    return (Skipped if b.options.sim else Failed)("the neighbours change too often; take another machine")


def quickest(b, turns):
    """What a piece of work takes on a quiet CPU; where the script is only tried every CPU is quiet."""
    if b.options.sim:
        return float("inf")
    pieces = sorted(piece for blocks in turns for _, piece in blocks)
    return pieces[len(pieces) // 10]


def both(one, other, quick):
    """The median launches of two turns in one state of the CPU, its own or shared; None if they had none in common."""
    for least, most in ((0, FAST * quick), (SLOW * quick, float("inf"))):
        a, b = ([ns for ns, piece in blocks if least <= piece <= most] for blocks in (one, other))
        if min(len(a), len(b)) >= MIN_BLOCKS:
            return statistics.median(a), statistics.median(b)
    return None


def pairs(ones, others, quick):
    return [pair for pair in (both(one, other, quick) for one, other in zip(ones, others)) if pair]


def take_rounds(b, api, cpus):
    """All blocks of one process by modes and rounds, and how much a launch takes above the floor in each round."""
    # CUPTI has to go after each recording, not only after the last.
    env = {"LULL_CUPTI_LEAVE": "always", "FLOOR_AGENT": b.floor}
    loop = Loop(b, api, size(b, BLOCKS, BLOCKS, MIN_BLOCKS), cpus, recorded(b, "repeat"), env)
    found, cpu = {"floor": [], "on": [], "off": []}, -1
    try:
        for _ in range(size(b, ROUNDS, 3, 1)):
            for mode, turns in found.items():
                blocks, cpu = loop.turn(mode, cpu)
                turns.append(blocks)
    finally:
        loop.end()
    quick = quickest(b, (turn for turns in found.values() for turn in turns))
    return found, [on - floor for on, floor in pairs(found["on"], found["floor"], quick)]


def typical(turns):
    return statistics.median(ns for blocks in turns for ns, _ in blocks)


def bench_loop(b):
    """An empty launch: recorded, at the floor and neither in one process; seven of them, each compared with itself.

    Processes whose core changed all the time are run again, up to seven times.
    """
    cpus = apart(quiet_cpus())
    for api in apis(b):
        tries, found, over = 0, [], []
        while len(over) < b.options.rounds:
            if b.left() < 15:
                raise Skipped("%d of %d processes by the %s, and no time for more" % (len(over), b.options.rounds, api))
            if tries >= 2 * b.options.rounds:
                raise too_busy(b)
            turns, above = take_rounds(b, api, cpus)
            if len(above) * 2 > len(turns["on"]):
                found.append(turns)
                over.append(statistics.median(above))
            tries += 1
        over.sort()
        yield ("loop: %s, default" % api, "<= 350 ns above the floor",
               "%+.0f (%+.0f to %+.0f); %.0f ns, floor %.0f, off %.0f, n=%d of %d" % (
                   statistics.median(over), over[0], over[-1],
                   *(typical(turn for turns in found for turn in turns[mode]) for mode in ("on", "floor", "off")),
                   len(over), tries), b.judge_cost(statistics.median(over) <= 350))


def alternate(couples, n_rounds):
    """Turns of couples of processes, one after the other; by couples, for either process."""
    found, cpu = [([], []) for _ in couples], -1
    for i in range(n_rounds):
        for couple, turns in zip(couples, found):
            for k in (i % 2, 1 - i % 2):
                blocks, cpu = couple[k].turn("stay", cpu)
                turns[k].append(blocks)
    return found


def record(loops):
    for loop in loops:
        for mode in ("on", "off"):
            loop.turn(mode, -1)


def ratios(found, quick):
    """Of each couple the median of what the first takes of the second; None if the neighbours left nothing."""
    by_couple = [[one / other for one, other in pairs(*turns, quick)] for turns in found]
    return [statistics.median(r) if len(r) >= MIN_PAIRS else None for r in by_couple]


def within(values):
    """Their mean, and where nineteen of twenty such means would be."""
    draw = random.Random(1)
    again = sorted(statistics.mean(draw.choices(values, k=len(values))) for _ in range(400))
    return statistics.mean(values), again[9], again[389]


def bench_after(b):
    """A launch before and after a recording, beside processes without lull that are there at the same time.

    Processes differ by some percent for as long as they live: what a recording leaves behind is shown by what a couple
    takes after it and before it.
    """
    cpus, n, n_rounds = apart(quiet_cpus()), size(b, COUPLES, 3, 1), size(b, 24, 8, MIN_PAIRS)
    for api in apis(b):
        couples = []
        try:
            for i in range(n):
                n_blocks = size(b, SHORT, SHORT, MIN_BLOCKS)
                couples.append((Loop(b, api, n_blocks, cpus, recorded(b, "stop", i)), Loop(b, api, n_blocks, cpus)))
            first = alternate(couples, n_rounds)
            record(loop for loop, _ in couples)
            last = alternate(couples, n_rounds)
        finally:
            for loop in (loop for couple in couples for loop in couple):
                loop.end()
        if b.options.sim:
            n_away = [loop.n_finalized() for loop, _ in couples]
            yield "after: %s, CUPTI is sent away" % api, "once or more", str(n_away), verdict(all(n_away))
        quick = quickest(b, (turn for couple in first + last for turns in couple for turn in turns))
        whole = [(a, z) for a, z in zip(ratios(first, quick), ratios(last, quick)) if a and z]
        if len(whole) * 2 <= n:
            raise too_busy(b)
        ns = typical(turn for couple in last for turn in couple[1])
        for name, expected, values in (
                ("after a recording", "of before it", [z / a for a, z in whole]),
                ("after a recording", "of without lull", [z for _, z in whole]),
                ("before a recording", "of without lull", [a for a, _ in whole])):
            value = within(values)
            yield ("after: %s, %s" % (api, name), "<= 1.01 " + expected,
                   "%.3f (%.3f to %.3f); without lull %.0f ns, n=%d" % (*value, ns, len(whole)), b.judge_cost(value[0] <= 1.01))
