#!/usr/bin/env python3
"""What recording costs a server at half of its capacity, by its client, and how lull's latencies compare. Needs a GPU.

    requests.py LULL SERVE.PY OUT [--turns N] [--seconds S] [--style threads,asyncio] [--scale X] [--part cost|switched|causes]

cost: runs examples/serve.py alone and recorded, by turns (alone, recorded, recorded, alone, ...). The client is not recorded.
Its requests come at the same random times in each run, so that a request is compared with itself. A request takes 2 ms times X.

switched: the same for a server that is ready to be recorded, in half of the turns of which a recording begins and ends
meanwhile.

causes: records each planted cause of slow requests, looks whether it is the one named first, whether the parts of each request
add up, and what the client measured.
"""
import argparse
import csv
import io
import json
import os
import random
import statistics
import subprocess
import sys
import time

# What the answer is to say of a planted cause; compile needs PyTorch.
PARTS = {"gc": "gc", "prompt": "gpu", "read": "wait", "code": "host", "lock": "lock", "burst": "queue", "copy": "copy", "alloc": "alloc",
         "load": "load", "crowd": "cpu", "job": "others", "compile": "compile"}


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def serve(o, style, rate, requests, words=(), cause="none", meanwhile=None):
    """The client's latencies, in order; `words` come before the program."""
    log = os.path.join(o.out, "log.json")
    server = subprocess.Popen([*words, sys.executable, o.serve, "--style", style, "--cause", cause, "--scale", str(o.scale), "--alone"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().split()[1]
    client = subprocess.Popen([sys.executable, o.serve, "--client", port, "--requests", str(requests), "--cause", cause, "--log", log]
                              + (["--rate", "%g" % rate] if rate else []), stdout=subprocess.DEVNULL)
    if meanwhile:
        meanwhile()
    if client.wait():
        sys.exit("requests.py: the client ended with status %d" % client.returncode)
    server.communicate()
    if server.returncode:
        sys.exit("requests.py: the server ended with status %d" % server.returncode)
    with open(log, encoding="utf-8") as f:
        return json.load(f)


def half(o, style):
    """Requests a second, half of what it answers if they come one after the other; and how many that is."""
    rate = 0.5 / statistics.median(serve(o, style, 0, 60))
    return rate, int(rate * o.seconds)


def interval(pairs, p):
    """The ratio of quantiles over all runs, and 95 % of what it is when pairs of runs are drawn again."""
    rng = random.Random(1)

    def ratio(chosen):
        return quantile([v for _, on in chosen for v in on], p) / quantile([v for off, _ in chosen for v in off], p)

    drawn = sorted(ratio(rng.choices(pairs, k=len(pairs))) for _ in range(1000))
    return ratio(pairs), drawn[25], drawn[974]


def cost(o, style):
    rate, requests = half(o, style)
    report = os.path.join(o.out, style + ".lull")
    recorded = [o.lull, "profile", "-q", "-f", "true", "-o", report]
    pairs, beside = [], []
    for turn in range(o.turns):
        runs = {}
        for is_on in (False, True) if turn % 2 == 0 else (True, False):
            runs[is_on] = serve(o, style, rate, requests, recorded if is_on else ())
        pairs.append((runs[False], runs[True]))
        rows = json.loads(subprocess.run([o.lull, "requests", "--format", "json", report], stdout=subprocess.PIPE, text=True).stdout)
        mine = rows.get("latency") or rows
        beside.append((mine, quantile(runs[True], 0.5), quantile(runs[True], 0.99)))
    print("%s: %d pairs of %d requests at %.0f a second; p50 %.2f ms alone" % (
        style, o.turns, requests, rate, 1e3 * statistics.median(quantile(off, 0.5) for off, _ in pairs)))
    for p in (0.5, 0.99):
        print("  p%-4g recorded / alone %.4f [%.4f, %.4f]" % (100 * p, *interval(pairs, p)))
    each = sorted(b / a for off, on in pairs for a, b in zip(off, on))
    print("  each request beside itself: median %.4f" % statistics.median(each))
    a, b = (max(v for r in pairs for v in r[i]) for i in (0, 1))
    print("  slowest: alone %.1f ms, recorded %.1f ms" % (1e3 * a, 1e3 * b))
    for mine, p50, p99 in beside:
        print("  lull / client: p50 %.4f, p99 %.4f" % (mine["p50_ns"] / p50 / 1e9, mine["p99_ns"] / p99 / 1e9), flush=True)


def switched(o, style):
    rate, requests = half(o, style)
    found = {False: [], True: []}

    def switch():
        time.sleep(o.seconds / 4)
        subprocess.run([o.lull, "start", "--session", "bench", "-o", os.path.join(o.out, "part%d" % time.time_ns())], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(o.seconds / 4)
        subprocess.run([o.lull, "stop", "--session", "bench"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    launched = [o.lull, "launch", "--session-new=bench"]
    for turn in range(o.turns):
        for is_on in (False, True) if turn % 2 == 0 else (True, False):
            found[is_on].append(max(serve(o, style, rate, requests, launched, meanwhile=switch if is_on else None)))
    for is_on, what in ((False, "never recorded"), (True, "recording begins and ends")):
        print("%s: slowest of %d requests, %s: %s ms" % (style, requests, what, " ".join("%.1f" % (1e3 * v) for v in found[is_on])),
              flush=True)


def causes(o, style):
    n_right = 0
    for cause, part in PARTS.items():
        report = os.path.join(o.out, "cause.lull")
        taken = serve(o, style, 0, 64, [o.lull, "profile", "-q", "-f", "true", "-o", report], cause)
        said = json.loads(subprocess.run([o.lull, "requests", "-f", "json", report], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        text = subprocess.run([o.lull, "requests", "-f", "csv", report], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        parts = list(rows[0])[list(rows[0]).index("queue (ns)"):]
        n_off = sum(sum(int(r[p]) for p in parts) != int(r["Latency (ns)"]) for r in rows)
        named = [c["part"] for c in said["tail"]["causes"]]
        n_right += named[:1] == [part] and not n_off and len(rows) == len(taken)
        print("%-8s %-8s named %-24s %d requests of %d, %d do not add up; lull / client: p50 %.4f, p99 %.4f" % (
            style, cause, ", ".join(named) or "nothing", len(rows), len(taken), n_off, said["latency"]["p50_ns"] / quantile(taken, 0.5) / 1e9,
            said["latency"]["p99_ns"] / quantile(taken, 0.99) / 1e9), flush=True)
    print("%s: %d of %d" % (style, n_right, len(PARTS)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull")
    parser.add_argument("serve", metavar="SERVE.PY")
    parser.add_argument("out")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=9)
    parser.add_argument("--style", default="threads,asyncio")
    parser.add_argument("--scale", type=float, default=4)
    parser.add_argument("--part", choices=("cost", "switched", "causes"), default="cost")
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    for style in o.style.split(","):
        {"cost": cost, "switched": switched, "causes": causes}[o.part](o, style)


main()
