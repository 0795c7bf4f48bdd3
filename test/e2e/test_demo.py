#!/usr/bin/env python3
"""examples/demo.sh: it shows what the recordings hold, and the fix does what it says of it.

Usage: test_demo.py BUILD [NAME...]
"""
import csv
import io
import json
import os
import re
import sys

import runner
from runner import expect

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARTS = {"kernels alone": "Compute Alone (ns)", "copies alone": "Copy Alone (ns)", "both at once": "Compute+Copy (ns)",
         "idle": "Idle (ns)"}


def parts(text):
    """Milliseconds of the device's time by what it did, for each recording that is shown."""
    return [dict(zip(PARTS, found)) for found in zip(*(
        re.findall(rf"^ +{name} +([0-9.]+) ms$", text, re.M) for name in PARTS))]


def report(name, table):
    path = os.path.join(BUILD, "demo", name + ".lull")
    out = runner.run([BUILD + "/lull", "stats", "-q", "-r", table, "-f", "csv", path], check=True).stdout
    return list(csv.DictReader(io.StringIO(out)))


def copies(name):
    """How many copies to the device came from pinned memory on a stream without kernels, and how many otherwise."""
    sql = ("select sum(is_beside) as beside, sum(not is_beside) as others from (select src_kind = 2 and lane not in "
           "(select lane from kernel) as is_beside from memcpy where copy_kind = 1)")
    path = os.path.join(BUILD, "demo", name + ".lull")
    [row] = json.loads(runner.run([BUILD + "/lull", "query", "-f", "json", path, sql], check=True).stdout)
    return row["beside"], row["others"]


def the_fix_does_what_the_demo_says():
    done = runner.run([os.path.join(ROOT, "examples/demo.sh"), BUILD], 300, cwd=ROOT,
                      env={**os.environ, "DEMO_DEVICE": "simulated"})
    expect("status", done.returncode == 0 and not done.stderr, (done.returncode, done.stderr))
    shown = parts(done.stdout)
    expect("two recordings", len(shown) == 2, done.stdout)
    for name, numbers in zip(("before", "after"), shown):
        overlap = report(name, "overlap")[0]
        told = {part: f"{int(overlap[column]) / 1e6:.2f}" for part, column in PARTS.items()}
        expect(f"what is shown of {name}", numbers == told, (numbers, told))
    # Copies of ordinary memory hold up the thread that launches kernels. Those of pinned memory are beside kernels as far
    # as there is a CPU to prepare the next batch meanwhile, on a busy machine not at all.
    expect("copies are in the way before", float(shown[0]["both at once"]) == 0 and copies("before")[0] == 0, shown)
    beside, others = copies("after")
    expect("copies may be beside kernels after", beside >= 200 and others < 10, (beside, others))
    expect("the same work", "The result is the same to the last bit" in done.stdout, done.stdout)
    # On a busy machine the thread that loads may lack a CPU more than it loads.
    expect("cause", re.search(r"^  (input-pipeline|pageable-copy|os-scheduling): [0-9.]+ ms/step|Cannot tell why", done.stdout,
                              re.M), done.stdout)


if __name__ == "__main__":
    runner.main([the_fix_does_what_the_demo_says], sys.argv[2:])
