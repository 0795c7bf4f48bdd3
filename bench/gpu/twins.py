#!/usr/bin/env python3
"""What lull costs a program to within parts of a per cent: two of the program take turns, and exactly one runs at any time.

    twins.py LULL OUT afterwards [--programs cuda,training,server] [--pairs 2] [--phase 5] [--times 2]
    twins.py LULL OUT budget [--programs digits,chat] [--share 5%] [--phase 10] [--during 40]
    twins.py LULL OUT hour [--programs sim] [--share 0.5%] [--phase 180] [--during 3300]

A turn is a fixed number of steps, some 40 ms; who is not asked waits for its standard input. Both run on the same CPU, one
after the other, so that a neighbour on this core, a clock, a cooler GPU meet both. Turns go A B B A; each pair of neighbours
gives a ratio. Two processes of one program differ by a per cent for as long as they live, so that ratios are compared with
those of the same two before. Intervals: pairs drawn again, ten neighbours at a time.

afterwards: steps before; then lull attaches to A (--times times) and leaves, steps; then the same with B, steps. One number
  is what A got slower by, and B after it; beside it what two halves of the time before differ by, in which nothing happened.
budget: steps before; lull attaches to A with --budget and stays for --during seconds; steps after it. A has four turns of
  five then, as a program that is recorded is not idle for half of its time. All steps count, those in windows and beside.
hour: A runs under `lull profile --budget --flight` from its start. A minute of it is slow, and has to be in a report. When
  the recording has ended, A and B tell what the two differ by themselves.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

from attach import first_cause

HERE = os.path.dirname(os.path.abspath(__file__))
TURN_S = 0.04
BLOCK = 10  # neighbouring pairs that are drawn together
STEPS_PY = os.path.join(HERE, "twin_steps.py")


def program(o, name):
    """The command line of a program, and whether requests are sent to it one by one."""
    if name == "cuda":
        loop = os.path.join(o.out, "attach_loop")
        if not os.path.exists(loop):
            subprocess.run(["nvcc", "-O2", "-arch=native", "-o", loop, os.path.join(HERE, "attach_loop.cu")], check=True)
        return [loop, "-", "-", "1"], False
    if name.startswith("sim"):
        return [o.sim_loop] + name.split(":")[1:], False
    return [sys.executable, STEPS_PY, name], name.startswith("server")


class Twin:
    """A program that makes steps when it is told to: "WARM N [SLOW_US]", and answers with the nanoseconds of the N."""

    def __init__(self, o, name, before=()):
        argv, self.is_server = program(o, name)
        env = {**os.environ, "TWIN_CPU": str(o.cpus[0]), "TWIN_OTHERS": ",".join(map(str, o.cpus[1:]))} if o.cpus else None
        self.child = subprocess.Popen([*before, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=env)
        self.pid, self.slow_us, self.answers, self.warm, self.n = self.child.pid, 0, self.child.stdout, 2, 1

    def line(self):
        text = b""
        while not text.endswith(b"\n"):
            more = self.answers.read(200)
            if not more:
                sys.exit("twins.py: a program ended with status %d" % self.child.wait())
            text += more
        return text.split(b"\n")[-2].decode()

    def wait_for_pid(self):
        """What follows "ready" is its number: under `lull profile` it is a child of ours."""
        while True:
            word, _, pid = self.line().partition(" ")
            if word == "ready":
                self.pid = int(pid)
                return

    def ask(self, warm, n):
        self.child.stdin.write(b"%d %d %d\n" % (warm, n, self.slow_us))
        return int(self.line())

    def turn(self):
        """Nanoseconds of a step. Of a server its client says what it took."""
        if not self.is_server:
            return self.ask(self.warm, self.n) / self.n
        for _ in range(self.warm):
            self.ask(0, 1)
        begin = time.perf_counter_ns()
        for _ in range(self.n):
            self.ask(0, 1)
        return (time.perf_counter_ns() - begin) / self.n

    def end(self):
        self.child.stdin.close()
        return self.child.wait(120)


def settle(a, b):
    """The same number of steps for both, so that a turn takes about TURN_S."""
    for _ in range(2):
        for t in (a, b):
            t.n = max(1, int(0.3e9 / t.turn())) if t.n == 1 else t.n
            t.turn()
    ns = min(statistics.median(t.turn() for _ in range(3)) for t in (a, b))
    for t in (a, b):
        t.n = max(3, int(TURN_S * 1e9 / ns))
        t.warm = max(2, t.n // 10)


def compare(a, b, seconds, more_of_a=0):
    """(ns of a step of A, of B, when) for each pair of neighbouring turns; A has more turns in between, None with them."""
    pairs, end, i = [], time.monotonic() + seconds, 0
    while time.monotonic() < end:
        took = {}
        for t in ((a, b), (b, a))[i % 2]:
            took[t] = t.turn()
        pairs.append((took[a], took[b], time.monotonic()))
        for _ in range(more_of_a):
            pairs.append((a.turn(), None, time.monotonic()))
        i += 1
    return pairs


def ratios(pairs):
    return [x / y for x, y, _ in pairs if y]


def blocks_of(values):
    return [values[i:i + BLOCK] for i in range(0, len(values), BLOCK)]


def drawn(rng, blocks):
    return [v for block in rng.choices(blocks, k=len(blocks)) for v in block]


def interval(estimate, *samples):
    """The estimate of these samples, and where nineteen of twenty are when blocks of them are drawn again."""
    rng, blocks = random.Random(1), [blocks_of(s) for s in samples]
    again = sorted(estimate(*(drawn(rng, b) for b in blocks)) for _ in range(1000))
    return estimate(*samples), again[25], again[974]


def of(after, before):
    return statistics.median(after) / statistics.median(before)


def keep(o, name, phases):
    with open(os.path.join(o.out, "twins.jsonl"), "a", encoding="utf-8") as f:
        f.write(json.dumps([name, phases]) + "\n")


def say(words, found):
    print("  %-46s %.4f [%.4f, %.4f]" % (words, *found), flush=True)


class Attach:
    """lull attach to a twin, which makes steps meanwhile."""

    def __init__(self, o, twin, report, *words):
        self.report = os.path.join(o.out, report + ".lull")
        self.lull = subprocess.Popen([o.lull, "attach", "-f", "-o", self.report, *words, str(twin.pid)],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        self.said = self.lull.communicate()[0]

    def is_over(self):
        return self.lull.poll() is not None

    def finish(self, twin):
        while not self.is_over():
            twin.turn()
        self.reader.join()
        if self.lull.returncode:
            sys.exit("twins.py: lull attach: %s" % self.said[-600:])
        found = re.search(r"stopped for ([\d.]+ \w+)", self.said)
        return found.group(1) if found else "?"


def start_pair(o, name):
    return Twin(o, name), Twin(o, name)


def effect(first, second, with_a, with_both):
    """What A is slower by after lull left it, and B: both see it once, and a drift of the machine cancels out."""
    a, both = of(with_a, first + second), of(with_a, with_both)
    return (a * both) ** 0.5


def run_afterwards(o):
    names = o.programs.split(",")
    all_pairs = {name: [start_pair(o, name) for _ in range(o.pairs)] for name in names}
    for name in names:
        sums = [[], [], [], []]
        for a, b in all_pairs[name]:
            for t in (a, b):
                t.wait_for_pid()
            settle(a, b)
            stops = []
            phases = [compare(a, b, o.phase) for _ in range(2)]
            for k, t in enumerate((a, b)):
                for i in range(o.times):
                    stops.append(Attach(o, t, "%s-%d" % (name, i), "-d", "1s").finish(t))
                time.sleep(0.5)
                phases.append(compare(a, b, o.phase))
            keep(o, name, phases)
            found = [ratios(p) for p in phases]
            print("%s, a pair: a step of %.3f ms, %d a turn, %d pairs of turns in a phase; stopped for %s; status %d, %d" % (
                name, statistics.median(p[0] for p in phases[0]) / 1e6, a.n, len(found[0]), ", ".join(stops), a.end(), b.end()))
            say("before / before", interval(of, found[1], found[0]))
            say("afterwards / before, A and B", interval(effect, *found))
            # Pairs of twins are joined as deviations from their own time before.
            base = statistics.median(found[0] + found[1])
            for all_of, values in zip(sums, found):
                all_of.extend(v / base for v in values)
        print("%s, all %d pairs:" % (name, o.pairs))
        say("before / before", interval(of, sums[1], sums[0]))
        say("afterwards / before, A and B", interval(effect, *sums))


def mean_of(pairs):
    """All of A's time over what B would have taken for it, B's being the mean of its turns."""
    b = [y for _, y, _ in pairs if y]
    return statistics.mean(x for x, _, _ in pairs) / statistics.mean(b)


def ask(o, report, sql):
    done = subprocess.run([o.lull, "query", "-f", "json", report, sql], stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else []


def say_windows(o, report):
    for row in ask(o, report, "SELECT key, value FROM meta WHERE key IN ('duty.recorded', 'duty.cost')"):
        print("  %s: %s" % (row["key"], row["value"]))
    rows = ask(o, report, "SELECT real_ns, dur_ns, n_steps, steps_ns, n_outside, outside_ns FROM window ORDER BY real_ns")
    print("  windows (at s, ms, steps, ms of one, steps outside, ms of one):", "; ".join(
        "%.1f %.0f %d %.2f %d %.2f" % (w["real_ns"] / 1e9, w["dur_ns"] / 1e6, w["n_steps"], w["steps_ns"] / 1e6 / max(w["n_steps"], 1),
                                       w["n_outside"], w["outside_ns"] / 1e6 / max(w["n_outside"], 1)) for w in rows[:12]))
    launches = ask(o, report, "SELECT count(*) AS n FROM kernel")
    print("  kernels in windows: %s" % launches)


def say_turns(during):
    """How turns of A are spread, over its usual one."""
    usual = statistics.median(x for x, _, _ in during)
    over = [x / usual for x, _, _ in during]
    print("  A's turns over its median: " + ", ".join("%d%% <= %.3f" % (p, sorted(over)[int(len(over) * p / 100)])
                                                     for p in (10, 25, 75, 80, 85, 90, 95, 98, 99)) + "; longest %.2f" % max(over))


def run_budget(o):
    started = [(name, start_pair(o, name)) for name in o.programs.split(",")]
    for name, (a, b) in started:
        for t in (a, b):
            t.wait_for_pid()
        settle(a, b)
        before = compare(a, b, o.phase)
        full = Attach(o, a, name + "-full", "-d", "2s")
        full.finish(a)
        before += compare(a, b, o.phase)
        attach = Attach(o, a, name + "-budget", "-d", "%gs" % o.during, "--budget", o.share, *o.words)
        during = []
        while not attach.is_over():
            during += compare(a, b, 0.5, more_of_a=3)
        attach.finish(a)
        after = compare(a, b, o.phase)
        # B uses the device in between, which is a cause of its own.
        alone = Attach(o, a, name + "-alone", "-d", "%gs" % o.alone, "--budget", o.share, *o.words)
        alone.finish(a)
        keep(o, name, [before, during, after])
        still = before + after
        print("%s with %s: a step of %.3f ms, %d a turn; status %d, %d" % (
            name, o.share, statistics.median(p[0] for p in before) / 1e6, a.n, a.end(), b.end()))
        say("before / before, two halves", interval(of, ratios(before[len(before) // 2:]), ratios(before[:len(before) // 2])))
        say("after / before", interval(of, ratios(after), ratios(before)))
        say("during / before and after, the median turn", interval(of, ratios(during), ratios(still)))
        say("during / before and after, all time", interval(lambda d, s: mean_of(d) / mean_of(s), during, still))
        say("the same for before and after, all time", interval(lambda d, s: mean_of(d) / mean_of(s), after, before))
        print("  first cause %s, without B %s, of a full recording %s" % tuple(
            first_cause(o.lull, r.report)[:60] for r in (attach, alone, full)))
        say_turns(during)
        say_windows(o, attach.report)


def flight_reports(o):
    """Reports of the flight recorder: name, why, how many windows, steps of the last ones."""
    found = []
    for name in sorted(os.listdir(o.out)):
        if not name.startswith("hour") or not name.endswith(".lull"):
            continue
        report = os.path.join(o.out, name)
        meta = {row["key"]: row["value"] for row in ask(o, report, "SELECT key, value FROM meta")}
        windows = ask(o, report, "SELECT n_steps, steps_ns FROM window ORDER BY start_ns")
        found.append((name, meta.get("flight.reason", "")[:100], len(windows),
                      [round(w["steps_ns"] / 1e6 / w["n_steps"], 2) for w in windows if w["n_steps"]][-5:]))
    return found


def run_hour(o):
    """Phases: the minute in which A is slow is left out of what is compared, but not of the recording."""
    name, session = o.programs.split(",")[0], "twins-%d" % os.getpid()
    b = Twin(o, name)
    a = Twin(o, name, [o.lull, "profile", "-q", "-f", "true", "--session-new", session, "--budget", o.share, "--flight", "60",
                       "--trigger", "step>1.5x", "--flight-limit", "4", *o.words, "-o", os.path.join(o.out, "hour")])
    for t in (a, b):
        t.wait_for_pid()
    settle(a, b)
    during = compare(a, b, o.during / 2, more_of_a=3)
    a.slow_us, until = 1000, time.monotonic() + 60
    while time.monotonic() < until:
        a.turn()
    a.slow_us = 0
    during += compare(a, b, o.during / 2, more_of_a=3)
    stopped = subprocess.run([o.lull, "stop", "--session", session], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(5)
    still = compare(a, b, o.phase)
    keep(o, name, [during, still])
    print("%s with %s for %.0f s: a step of %.3f ms, %d a turn; lull stop: %d %s" % (
        name, o.share, o.during, statistics.median(p[0] for p in still) / 1e6, a.n, stopped.returncode, stopped.stdout[-200:]))
    say("without a recording, two halves", interval(of, ratios(still[len(still) // 2:]), ratios(still[:len(still) // 2])))
    say("recorded / without, the median turn", interval(of, ratios(during), ratios(still)))
    say("recorded / without, all time", interval(lambda d, s: mean_of(d) / mean_of(s), during, still))
    say_turns(during)
    print("  status %d, %d" % (a.end(), b.end()))
    for row in flight_reports(o):
        print("  %s: %s; %d windows, ms of a step in the last ones %s" % row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull")
    parser.add_argument("out")
    parser.add_argument("what", choices=("afterwards", "budget", "hour"))
    parser.add_argument("--programs", default="")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--phase", type=float, default=5, help="seconds of a phase")
    parser.add_argument("--during", type=float, default=40, help="seconds of a recording with a budget")
    parser.add_argument("--alone", type=float, default=8, help="seconds of one without the other twin, for the first cause")
    parser.add_argument("--times", type=int, default=2, help="how often lull attaches to each of the two")
    parser.add_argument("--share", default="5%")
    parser.add_argument("--words", nargs="*", default=[], help="more options of lull attach")
    parser.add_argument("--cpus", help="as it printed them the last time: it takes seconds to find quiet ones")
    parser.add_argument("--sim-loop", help="twin_loop, for programs sim and sim:nosteps")
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    sys.path.insert(0, HERE)
    from cpus import apart, quiet_cpus
    cpus = sorted(os.sched_getaffinity(0), reverse=True)
    o.cpus = json.loads(o.cpus) if o.cpus else apart(quiet_cpus()) or (cpus if len(cpus) > 1 else [])
    print("CPUs, the twins' first: %s" % json.dumps(o.cpus, separators=(",", ":")), flush=True)
    if o.cpus:
        os.sched_setaffinity(0, o.cpus[1:])
    o.programs = o.programs or {"afterwards": "cuda,training,server", "budget": "digits,chat", "hour": "sim"}[o.what]
    {"afterwards": run_afterwards, "budget": run_budget, "hour": run_hour}[o.what](o)


if __name__ == "__main__":
    main()
