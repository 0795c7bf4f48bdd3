#!/usr/bin/env python3
"""Does `lull why` keep to its answer when it sees less of the same run?

    test/corpus/stability.py LULL [--set tune|check|all] [--each] [--folder FOLDER] [--write FILE]
                              [--every N] [--most SHARE]

Each recording of the corpus is asked again with half of its steps, with every second sample, and without one of its sources.
An answer is kept if the first cause is the same; it is "less sure" if another is named with a lower confidence, or none.
What is left is "other": as sure as before of something else.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from accuracy import HERE, answer, lines_of, read, set_of, with_table

BEGIN, END = "<!-- table: stability -->", "<!-- end of stability -->"
FACTS = "range mark oscall gil_wait sample sched pysample usage step checkpoint open_range kernel memcpy memset cuda_call cuda_sync " \
        "graph overhead cuda_memory um_event cuda_module counter mpi_call lib_call collective op alloc pycall".split()
# A source and the tables that it fills. Kernels, copies and calls are what an answer is about.
SOURCES = {
    "CPU samples": ["sample"],
    "Python samples": ["pysample"],
    "scheduling": ["sched"],
    "C library calls": ["oscall"],
    "interpreter lock": ["gil_wait"],
    "ranges": ["range", "mark", "pycall"],
    "steps": ["step"],
    "metrics": ["counter", "usage"],
}


def variants(base):
    """(name, options of export) of each."""
    steps = base["steps"]["each"]
    if len(steps) > 1:
        middle = steps[len(steps) // 2]["from_ns"]
        yield "first half of the steps", ["--filter-time", "/%dns" % middle]
        yield "second half of the steps", ["--filter-time", "%dns/" % middle]
    yield "every second sample", ["--thin", "2"]
    for name, tables in SOURCES.items():
        yield "no " + name, ["--tables", ",".join(t for t in FACTS if t not in tables)]


def sure(got):
    finding = next((f for f in got.get("findings", []) if f["cause"] == got["first"]), {})
    return finding.get("confidence") or 0


def try_one(lull, data, name):
    """[(program, variant, verdict, first cause before and after)]"""
    path, found = os.path.join(data, name + ".lull"), []
    base = answer(lull, path)
    with tempfile.TemporaryDirectory() as folder:
        for variant, options in variants(base):
            part = os.path.join(folder, "part.lull")
            subprocess.run([lull, "export", "-t", "lull", "-f", "-o", part, *options, path], check=True, stderr=subprocess.DEVNULL)
            got = answer(lull, part)
            if got["first"] == base["first"]:
                verdict = "kept"
            else:
                verdict = "less sure" if not got["first"] or got.get("is_probable") or sure(got) < sure(base) else "other"
            found.append((name, variant, verdict, base["first"], got["first"], sure(base), sure(got)))
    return found


def table_of(found, sets):
    head = ["seen", "n", "kept", "less sure", "other"]
    rows = [head]
    names = list(dict.fromkeys(f[1] for f in found))
    for title, part in [(s, [f for f in found if set_of(f[0]) == s]) for s in sets] + \
                       [("  " + n, [f for f in found if f[1] == n]) for n in names]:
        if part:
            rows.append([title, len(part)] + [sum(f[2] == v for f in part) for v in head[2:]])
    return rows


def main():
    options = argparse.ArgumentParser()
    options.add_argument("lull")
    options.add_argument("--set", default="all")
    options.add_argument("--each", action="store_true", help="a line for each answer that changed (of tune alone)")
    options.add_argument("--folder", default=HERE)
    options.add_argument("--write", metavar="FILE", help="put the table between the marks of this Markdown file, too")
    options.add_argument("--every", type=int, default=1, metavar="N", help="look at every N-th program alone")
    options.add_argument("--most", type=float, metavar="SHARE", help="fail if more answers than this are other ones")
    o = options.parse_args()
    with open(os.path.join(o.folder, "labels.tsv")) as f:
        names = [r["name"] for r in csv.DictReader(f, delimiter="\t")]
    data = os.path.join(o.folder, "data")
    names = [n for n in names if o.set in ("all", set_of(n)) and os.path.exists(os.path.join(data, n + ".lull"))][::o.every]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = [f for part in pool.map(lambda n: try_one(o.lull, data, n), names) for f in part]
    if o.each:
        for f in found:
            if f[2] != "kept" and set_of(f[0]) == "tune":
                print("%-20s %-20s %-10s %s %.2f -> %s %.2f" % (f[0], f[1], f[2], f[3], f[5], f[4], f[6]))
        print()
    table = table_of(found, ("tune", "check"))
    print("\n".join(lines_of(table)))
    if o.write:
        text = with_table(read(o.write), table, BEGIN, END)
        with open(o.write, "w") as f:
            f.write(text)
    n_other, n = sum(f[2] == "other" for f in found), len(found)
    if o.most is not None and n_other > o.most * n:
        print("%d of %d answers are other ones, and as sure: more than %.0f %%" % (n_other, n, 100 * o.most))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
