#!/usr/bin/env python3
"""Attach to programs that know nothing of lull, many times, and see whether they notice. Needs a GPU, nvcc and PyTorch.

    attach.py LULL SERVE.PY OUT [--times 50] [--seconds 5]
    attach.py LULL PLANTED.PY OUT --planted [--seconds 5]
    attach.py LULL - OUT --loops [--times 50] [--seconds 5]
    attach.py LULL - OUT --afterwards [--times 5] [--turns 60] [--turn 0.3]

Three programs run side by side: PyTorch training (attach_train.py), a server with its client (examples/serve.py), CUDA C++
(attach_loop.cu). Each is recorded --times times for --seconds. Then: results and exit code, open files, threads and memory
before and after; how long a thread was stopped; whether a kernel is missing, has no name or no call; step times afterwards
beside before, by turns with a twin to which nobody attaches (the machine's speed varies more than 1 %).

With --loops CUDA C++ alone: one and two threads, with a runtime that is linked statically and a shared one, side by side.
With --afterwards step times alone, of one program at a time, with as many turns as the answer needs.
With --planted each planted loop is recorded by attach, and the first cause that lull names stands beside its label.
"""
import argparse
import array
import collections
import csv
import io
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = 25  # requests a second

# Imports what takes long, and begins when it is told to: it does not use the device before.
WAITER = "import runpy, sys, torch; sys.stdin.readline(); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


class Guest:
    """A program in a process group of its own, with a log of its steps."""

    def __init__(self, out, name, argv, stdin=None):
        self.name, self.log, self.stop = name, os.path.join(out, name + ".steps"), os.path.join(out, name + ".stop")
        self.output = open(os.path.join(out, name + ".txt"), "wb")
        argv = [self.log if a == "LOG" else self.stop if a == "STOP" else a for a in argv]
        self.child = subprocess.Popen(argv, stdin=stdin, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.child.pid

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass  # what became of it is said at the end

    def steps(self):
        numbers = array.array("d")
        with open(self.log, "rb") as f:
            data = f.read()
        numbers.frombytes(data[:len(data) // 16 * 16])
        return list(zip(numbers[::2], numbers[1::2]))

    def end(self):
        open(self.stop, "w").close()
        status = self.child.wait(60)
        with open(self.output.name) as f:
            return status, f.read().strip()

    def state(self):
        """What a stay of ours could leave behind."""
        if self.child.poll() is not None:
            return [], [], 0
        at = "/proc/%d/" % self.pid
        files = sorted(re.sub(r"\d+", "N", os.readlink(at + "fd/" + n)) for n in os.listdir(at + "fd"))
        threads = sorted(open(at + "task/%s/comm" % t).read().strip() for t in os.listdir(at + "task"))
        rss = int(re.search(r"VmRSS:\s*(\d+)", open(at + "status").read()).group(1)) / 1024
        return files, threads, rss


def wait_for(is_true, seconds=120):
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            sys.exit("attach.py: a program does not begin")
        time.sleep(0.1)


def query(lull, report, sql):
    done = subprocess.run([lull, "query", "-f", "csv", report, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = list(csv.reader(io.StringIO(done.stdout)))
    return rows[1:] if rows else []


def has_all_of_loop(lull, report):
    """Whether the kernels of each stream of attach_loop count up without a gap."""
    rows = query(lull, report, "SELECT k.lane, l.grid_x FROM kernel k JOIN launch l ON l.id = k.launch ORDER BY k.lane, k.start_ns")
    gaps, last = 0, {}
    for lane, x in rows:
        gaps += lane in last and (last[lane] % 1000) + 1 != int(x)
        last[lane] = int(x)
    return gaps


def has_all_of_training(lull, report):
    """How many steps of attach_train have another number of kernels than most."""
    rows = query(lull, report, "SELECT l.name FROM kernel k JOIN launch l ON l.id = k.launch ORDER BY k.start_ns")
    at = [i for i, (name,) in enumerate(rows) if "erfinv" in name]
    lengths = collections.Counter(b - a for a, b in zip(at, at[1:]))
    if not lengths:
        return -1
    most = lengths.most_common(1)[0][0]
    # An epoch begins with other work: once in 500 steps.
    return sum(n for length, n in lengths.items() if length < most)


class Record:
    """All recordings of one guest."""

    def __init__(self, options, guest, missing):
        self.o, self.guest, self.missing = options, guest, missing
        self.stopped, self.failed, self.kernels, self.unnamed, self.unlinked, self.gaps, self.causes = [], [], 0, 0, 0, 0, []
        self.thread = threading.Thread(target=self.run)

    def run(self):
        for i in range(self.o.times):
            report = os.path.join(self.o.out, "%s-%d.lull" % (self.guest.name, i))
            done = subprocess.run([self.o.lull, "attach", "-d", "%gs" % self.o.seconds, "-f", "-o", report, str(self.guest.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            found = re.search(r"stopped for ([\d.]+) (us|ms|s)", done.stdout)
            if done.returncode or not found:
                self.failed.append((i, done.returncode, done.stdout.strip()[-400:]))
                continue
            self.stopped.append(float(found.group(1)) * {"us": 1e-3, "ms": 1, "s": 1e3}[found.group(2)])
            self.look(report)
            if i:
                os.remove(report)

    def look(self, report):
        row = query(self.o.lull, report,
                    "SELECT count(*), sum(l.name IS NULL OR l.name = ''),"
                    " sum(k.correlation NOT IN (SELECT correlation FROM cuda_call)) FROM kernel k JOIN launch l ON l.id = k.launch")
        n, unnamed, unlinked = (int(v or 0) for v in row[0])
        self.kernels += n
        self.unnamed += unnamed
        self.unlinked += unlinked
        if self.missing:
            self.gaps += self.missing(self.o.lull, report)
        self.causes.append(first_cause(self.o.lull, report))


def first_cause(lull, report):
    done = subprocess.run([lull, "why", "--format", "json", report], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return "?"
    return answer.get("first") or str(answer.get("cannot_tell") or "nothing")


def by_turns(o, guest, twin, slots):
    """Let each run alone for a while, in turn (A B, B A, ...); when that was goes to slots."""
    for turn in range(o.turns):
        order = ((guest, twin), (twin, guest))
        for who, other in order if turn % 2 == 0 else order[::-1]:
            other.signal(signal.SIGSTOP)
            who.signal(signal.SIGCONT)
            begin = time.monotonic()
            time.sleep(o.turn)
            slots.append((who, begin + 0.2 * o.turn, begin + 0.95 * o.turn))
    twin.signal(signal.SIGCONT)
    guest.signal(signal.SIGCONT)


def ratios(guest, twin, slots):
    """Of each turn: the median step of the guest by that of the twin."""
    steps = {who: who.steps() for who in (guest, twin)}
    medians = [{who: statistics.median([d for t, d in steps[who] if a <= t <= b] or [0]) for who, a, b in pair}
               for pair in zip(slots[::2], slots[1::2])]
    return [m[guest] / m[twin] for m in medians if m[guest] and m[twin]]


def interval(before, after):
    """Median ratio of medians, and 95 % of what it is when turns are drawn again."""
    rng = random.Random(1)
    draw = lambda v: statistics.median(rng.choices(v, k=len(v)))
    drawn = sorted(draw(after) / draw(before) for _ in range(2000))
    return statistics.median(after) / statistics.median(before), drawn[50], drawn[1949]


def say_of(record, before, after, status, text):
    again = sorted(record.stopped[1:]) or [0]
    print("%s: %d of %d attaches; stopped for %.1f ms first, again %.1f (median) to %.1f ms (longest)" % (
        record.guest.name, len(record.stopped), record.o.times, record.stopped[0] if record.stopped else -1,
        statistics.median(again), again[-1]))
    print("  %d kernels, %d without a name, %d without a call, %d gaps; first causes %s" % (
        record.kernels, record.unnamed, record.unlinked, record.gaps, dict(collections.Counter(record.causes))))
    print("  files %d -> %d%s, threads %d -> %d%s, memory %.0f -> %.0f MiB; status %d: %s" % (
        len(before[0]), len(after[0]), "" if before[0] == after[0] else " %s" % sorted(set(after[0]) ^ set(before[0])),
        len(before[1]), len(after[1]), "" if before[1] == after[1] else " %s" % list((collections.Counter(after[1]) - collections.Counter(before[1])).items()),
        before[2], after[2], status, text))
    for i, code, words in record.failed[:5]:
        print("  failed: %d, status %d: %s" % (i, code, words))
    sys.stdout.flush()


def build_loop(o, *more):
    loop = os.path.join(o.out, "-".join(("attach_loop",) + tuple(m.strip("-") for m in more)))
    subprocess.run(["nvcc", "-O2", "-arch=native", *more, "-o", loop, os.path.join(HERE, "attach_loop.cu")], check=True)
    return loop


def run_loops(o):
    """Programs with one and two threads, with a runtime of their own and a shared one, all at a time."""
    guests = []
    for more in ((), ("--cudart=shared",)):
        loop = build_loop(o, *more)
        for threads in ("1", "2"):
            for k in range(2):
                guests.append(Guest(o.out, "-".join((threads, "static" if not more else "shared", str(k))), [loop, "LOG", "STOP", threads]))
    records = [Record(o, g, has_all_of_loop) for g in guests]
    for g in guests:
        wait_for(lambda: os.path.exists(g.log) and os.path.getsize(g.log) > 16000)
    before = [g.state() for g in guests]
    for r in records:
        r.thread.start()
    for r in records:
        r.thread.join()
    after = [g.state() for g in guests]
    for r, b, a in zip(records, before, after):
        status, text = r.guest.end()
        say_of(r, b, a, status, text)


def run_three(o):
    loop = build_loop(o)
    requests = int(RATE * (o.times * (o.seconds + 1.6) + 2 * o.turns * o.turn * 4 + 60))
    latencies = os.path.join(o.out, "latencies.json")
    serve = Guest(o.out, "server", [sys.executable, o.program, "--cause", "none", "--rate", str(RATE), "--requests", str(requests), "--log", latencies])
    pairs = {}
    for name, argv in (("training", [sys.executable, os.path.join(HERE, "attach_train.py"), "LOG", "STOP"]), ("cuda-c++", [loop, "LOG", "STOP"])):
        pairs[name] = Guest(o.out, name, argv), Guest(o.out, name + "-twin", argv)
    for guest, twin in pairs.values():
        for g in (guest, twin):
            wait_for(lambda: os.path.exists(g.log) and os.path.getsize(g.log) > 16000)
    slots = {name: ([], []) for name in pairs}
    everyone = [g for pair in pairs.values() for g in pair]

    def measure(which):
        for g in everyone:
            g.signal(signal.SIGSTOP)
        for name, (guest, twin) in pairs.items():
            by_turns(o, guest, twin, slots[name][which])
            guest.signal(signal.SIGSTOP)
            twin.signal(signal.SIGSTOP)
        for g in everyone:
            g.signal(signal.SIGCONT)

    measure(0)
    for _, twin in pairs.values():
        twin.signal(signal.SIGSTOP)
    records = [Record(o, pairs["training"][0], has_all_of_training), Record(o, pairs["cuda-c++"][0], has_all_of_loop), Record(o, serve, None)]
    before = [r.guest.state() for r in records]
    for r in records:
        r.thread.start()
    for r in records:
        r.thread.join()
    time.sleep(1)
    after = [r.guest.state() for r in records]
    measure(1)
    for r, b, a in zip(records, before, after):
        if r.guest is serve:
            continue
        status, text = r.guest.end()
        twin = pairs[r.guest.name][1]
        say_of(r, b, a, status, text)
        print("  the twin: status %d: %s" % twin.end())
        first, last = (ratios(r.guest, twin, s) for s in slots[r.guest.name])
        print("  steps afterwards / before: %.4f [%.4f, %.4f]" % interval(first, last), flush=True)
    print("waiting for the server's client", flush=True)
    status = serve.child.wait(400)
    with open(serve.output.name) as f:
        say_of(records[2], before[2], after[2], status, f.read().strip())
    with open(latencies) as f:
        taken = json.load(f)
    ten = RATE * 10
    first, last = taken[ten:2 * ten], taken[-ten:]
    print("  %d of %d answered; p50 first %.2f ms, last %.2f ms; slowest %.1f ms" % (
        len(taken), requests, statistics.median(first) * 1e3, statistics.median(last) * 1e3, max(taken) * 1e3))


def run_afterwards(o):
    """One program after the other, with its twin and nothing else on the device."""
    loop = build_loop(o)
    for name, argv in (("cuda-c++", [loop, "LOG", "STOP", "1"]), ("training", [sys.executable, os.path.join(HERE, "attach_train.py"), "LOG", "STOP"])):
        guest, twin = Guest(o.out, name, argv), Guest(o.out, name + "-twin", argv)
        for g in (guest, twin):
            wait_for(lambda: os.path.exists(g.log) and os.path.getsize(g.log) > 16000)
        slots = [], [], []
        by_turns(o, guest, twin, slots[0])
        by_turns(o, guest, twin, slots[1])
        twin.signal(signal.SIGSTOP)
        record = Record(o, guest, None)
        before = guest.state()
        record.run()
        time.sleep(1)
        after = guest.state()
        by_turns(o, guest, twin, slots[2])
        say_of(record, before, after, *guest.end())
        print("  the twin: status %d: %s" % twin.end())
        first, second, last = (ratios(guest, twin, s) for s in slots)
        print("  steps before / before:     %.4f [%.4f, %.4f]" % interval(first, second))
        print("  steps afterwards / before: %.4f [%.4f, %.4f]" % interval(first + second, last), flush=True)


def run_planted(o):
    """One after the other: only the loop that is recorded uses the device."""
    listed = subprocess.run([sys.executable, o.program, "--list"], stdout=subprocess.PIPE, text=True).stdout
    cases = [line.split()[:2] for line in listed.splitlines() if not o.only or line.split()[0] in o.only.split(",")]
    right = 0

    def start(case):
        return Guest(o.out, case, [sys.executable, "-c", WAITER, o.program, case, "--steps", "200000"], stdin=subprocess.PIPE)

    guests = [start(case) for case, _ in cases[:3]]
    for i, (case, label) in enumerate(cases):
        g = guests[i]
        if i + 3 < len(cases):
            guests.append(start(cases[i + 3][0]))
        g.child.stdin.write(b"\n")
        g.child.stdin.flush()
        time.sleep(12 if i < 3 else 6)  # its warm-up; the first ones import beside each other
        report = os.path.join(o.out, case + "-attached.lull")
        done = subprocess.run([o.lull, "attach", "-d", "%gs" % o.seconds, "-f", "-o", report, str(g.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cause = first_cause(o.lull, report)
        right += cause == label
        print("%-18s %-22s %-22s %s" % (case, label, cause, "" if cause == label else "DIFFERS " + done.stdout[-300:]), flush=True)
        g.signal(signal.SIGKILL)
        g.child.wait()
    print("%d of %d by attach" % (right, len(cases)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull")
    parser.add_argument("program", metavar="SERVE.PY|PLANTED.PY")
    parser.add_argument("out")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--turns", type=int, default=8, help="how often each of two twins runs alone, before and after")
    parser.add_argument("--turn", type=float, default=1.0, help="seconds of a turn")
    parser.add_argument("--afterwards", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--only", metavar="CASE,...", help="of the planted set")
    parser.add_argument("--loops", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    (run_planted if o.planted else run_loops if o.loops else run_afterwards if o.afterwards else run_three)(o)


if __name__ == "__main__":
    main()
