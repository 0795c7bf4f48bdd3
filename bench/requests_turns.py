#!/usr/bin/env python3
"""What recording costs a request, and how lull's latency compares with that of a client, on the simulated device.

    requests_turns.py cost LULL[,LULL...] SERVE.PY STYLE TURNS WHAT...
    requests_turns.py latency LULL SERVE.PY STYLE REQUESTS

cost: servers side by side, alone and recorded, are asked by turns, three requests in each, one after the other; differences to
the first are the median of those in each turn, with 95 % of what it may be. WHAT is `alone`, or what is recorded: `all`, `bare`
(nothing), `nvtx`, `osrt`, `cuda`, `python-gil`, `python` (its stacks), `perf`; with @1 by the second LULL. CPU time is that of the
server's process, of all its threads.

latency: each request by a client that is never kept from a CPU (as root), less what lull says of it.
"""
import csv
import io
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ASK = b"GET /generate?prompt=32&tokens=4&cause=none HTTP/1.0\r\n\r\n"
PER_TURN = 3


def options_of(what):
    if what == "all":
        return []
    return ["-t", what if what in ("nvtx", "osrt", "cuda", "python-gil") else "none", "--gpu-metrics=none",
            "--python-sampling=" + ("true" if what == "python" else "false"),
            *([] if what == "perf" else ["-s", "none", "--cpuctxsw=none"])]


class Server:
    def __init__(self, what, lulls, serve, style, folder, number, decode_ns=50000):
        kind, _, at = what.partition("@")
        lull = lulls[int(at or 0)]
        self.what, self.report = what, os.path.join(folder, "%d.lull" % number)
        command = [sys.executable, serve, "--style", style, "--cause", "none", "--alone"]
        if kind != "alone":
            command = [lull, "profile", "-q", "-o", self.report, *options_of(kind), *command]
        env = {**os.environ, "LD_LIBRARY_PATH": os.path.join(os.path.dirname(os.path.realpath(lull)), "sim"),
               "LULL_SIM_COST": "prefill:50000,decode:%d" % decode_ns}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env=env)
        self.port = int(self.process.stdout.readline().split()[1])
        self.pid = self.process.pid if kind == "alone" else self.child()
        self.latency, self.cpu = [], []

    def child(self):
        pid = self.process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return next(int(p) for p in f.read().split() if "python" in os.readlink("/proc/%s/exe" % p))

    def cpu_ns(self):
        """Of all threads, also those that ended: the CPU clock of another process."""
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def ask(self):
        with socket.create_connection(("127.0.0.1", self.port)) as c:
            start = time.monotonic_ns()
            c.sendall(ASK)
            while c.recv(4096):
                pass
            return time.monotonic_ns() - start

    def turn(self):
        before = self.cpu_ns()
        self.latency.append(statistics.median(self.ask() for _ in range(PER_TURN)) / 1e3)
        time.sleep(0.003)  # what it does afterwards
        self.cpu.append((self.cpu_ns() - before) / PER_TURN / 1e3)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def difference(mine, others):
    found = sorted(a - b for a, b in zip(mine, others))
    middle, apart = len(found) // 2, round(0.98 * len(found) ** 0.5)
    return found[middle], found[max(0, middle - apart)], found[min(len(found) - 1, middle + apart)]


def cost(lulls, serve, style, turns, *whats):
    with tempfile.TemporaryDirectory() as folder:
        servers = [Server(what, lulls.split(","), serve, style, folder, i) for i, what in enumerate(whats)]
        for _ in range(7):
            for s in servers:
                s.turn()
        for s in servers:
            s.latency, s.cpu = [], []
        rng = random.Random(1)
        for _ in range(int(turns)):
            for s in rng.sample(servers, len(servers)):
                s.turn()
        for s in servers:
            print("%-14s latency %7.0f us %+5.0f [%+.0f, %+.0f]   CPU %6.0f us %+5.0f [%+.0f, %+.0f]" % (
                s.what, statistics.median(s.latency), *difference(s.latency, servers[0].latency),
                statistics.median(s.cpu), *difference(s.cpu, servers[0].cpu)))
            s.end()


def latency(lull, serve, style, n):
    with tempfile.TemporaryDirectory() as folder:
        server = Server("all", [lull], serve, style, folder, 0, 1500000)
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            print("the client waits for CPUs as others do", file=sys.stderr)
        theirs = [(server.ask(), time.sleep(0.004))[0] for _ in range(int(n))]
        server.end()
        text = subprocess.run([lull, "query", "-f", "csv", server.report, "select dur from request order by start"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    mine = [int(row[0]) for row in list(csv.reader(io.StringIO(text)))[1:] if row]
    less = sorted((a - b) / 1e3 for a, b in zip(theirs, mine))
    print("%s: %d requests of %d; client p50 %.0f us; client - lull: median %.0f us (%.2f %%), p99 %.0f us" % (
        style, len(mine), len(theirs), statistics.median(theirs) / 1e3, less[len(less) // 2],
        100e3 * less[len(less) // 2] / statistics.median(theirs), less[int(0.99 * len(less))]))


if __name__ == "__main__":
    if len(sys.argv) < 6 or sys.argv[1] not in ("cost", "latency"):
        sys.exit(__doc__)
    {"cost": cost, "latency": latency}[sys.argv[1]](*sys.argv[2:])
