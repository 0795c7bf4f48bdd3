#!/usr/bin/env python3
"""What recording costs a server at half of its capacity, by its client, and how lull's latencies compare. Needs a GPU.

    requests.py LULL SERVE.PY OUT [--turns N] [--seconds S] [--style threads,asyncio]

Runs examples/serve.py alone and recorded, by turns (alone, recorded, recorded, alone, ...). The client is not recorded. Its
requests come at the same random times in each run, so that a request is compared with itself.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys

SCALE = 4


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def serve(o, style, rate, requests, report=None, cause="none"):
    log = os.path.join(o.out, "log.json")
    command = [sys.executable, o.serve, "--style", style, "--cause", cause, "--scale", str(SCALE), "--alone"]
    if report:
        command = [o.lull, "profile", "-q", "-f", "true", "-o", report] + command
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().split()[1]
    subprocess.run([sys.executable, o.serve, "--client", port, "--requests", str(requests), "--cause", cause, "--log", log]
                   + (["--rate", "%g" % rate] if rate else []), stdout=subprocess.DEVNULL, check=True)
    server.communicate()
    if server.returncode:
        sys.exit("requests.py: the server ended with status %d" % server.returncode)
    with open(log, encoding="utf-8") as f:
        return json.load(f)


def interval(pairs, p):
    """The ratio of quantiles over all runs, and 95 % of what it is when pairs of runs are drawn again."""
    rng = random.Random(1)

    def ratio(chosen):
        return quantile([v for _, on in chosen for v in on], p) / quantile([v for off, _ in chosen for v in off], p)

    drawn = sorted(ratio(rng.choices(pairs, k=len(pairs))) for _ in range(1000))
    return ratio(pairs), drawn[25], drawn[974]


def measure(o, style):
    alone = serve(o, style, 0, 60)
    rate = 0.5 / statistics.median(alone)
    requests = int(rate * o.seconds)
    report = os.path.join(o.out, style + ".lull")
    pairs, beside = [], []
    for turn in range(o.turns):
        runs = {}
        for is_on in (False, True) if turn % 2 == 0 else (True, False):
            runs[is_on] = serve(o, style, rate, requests, report if is_on else None)
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
    for mine, p50, p99 in beside[:3]:
        print("  client p50 %.3f ms, p99 %.3f ms; lull: %s" % (1e3 * p50, 1e3 * p99, json.dumps(mine)[:200]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull")
    parser.add_argument("serve", metavar="SERVE.PY")
    parser.add_argument("out")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=9)
    parser.add_argument("--style", default="threads,asyncio")
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    for style in o.style.split(","):
        measure(o, style)


main()
