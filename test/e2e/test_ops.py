#!/usr/bin/env python3
"""The report `ops` of imported traces against what PyTorch says of them.

Usage: test_ops.py LULL TRACE TABLE [NAME...]

Every row of the table that PyTorch printed for the trace has to be there, in its order, with its times,
counts and bytes as far as the table prints their digits. Pairs of forward and backward, and memory, are
compared with what the trace says of them. Then random traces, and the trace itself, are
compared to the nanosecond with a slow, plain form of PyTorch's own arithmetic (torch/autograd/profiler.py):
kernels belong to the operator whose External id they carry, where ours goes through correlation and time.
"""
import collections
import csv
import gzip
import io
import json
import os
import random
import re
import sys

import runner
from runner import expect

LULL, TRACE, TABLE = map(os.path.abspath, sys.argv[1:4])
UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "%": 1}
COLUMNS = {
    "Self CPU %": "Self CPU (%)", "Self CPU": "Self CPU (ns)", "CPU total %": "CPU total (%)",
    "CPU total": "CPU total (ns)", "CPU time avg": "CPU time avg (ns)", "Self CUDA": "Self CUDA (ns)",
    "Self CUDA %": "Self CUDA (%)", "CUDA total": "CUDA total (ns)", "CUDA time avg": "CUDA time avg (ns)",
    "CPU Mem": "CPU Mem (bytes)", "Self CPU Mem": "Self CPU Mem (bytes)", "CUDA Mem": "CUDA Mem (bytes)",
    "Self CUDA Mem": "Self CUDA Mem (bytes)", "# of Calls": "# of Calls",
}


def printed(cell):
    """The value of a cell of PyTorch's table, and how far off it may be for its digits."""
    match = re.fullmatch(r"(-?[\d.]+)\s*([A-Za-z%]*)", cell)
    scale = UNITS[match[2]] if match[2] else 1
    digits = len(match[1].partition(".")[2])
    return float(match[1]) * scale, 0.51 * scale * 10.0**-digits


def table_rows(path):
    lines = [line for line in open(path) if line.strip() and not line.startswith("---")]
    header = [cell.strip() for cell in re.split(r"\s{2,}", lines[0].strip())]
    for line in lines[1:]:
        cells = [cell.strip() for cell in re.split(r"\s{2,}", line.strip())]
        if len(cells) == len(header):
            yield dict(zip(header, cells))


def report(trace, name="ops"):
    out = runner.run([LULL, "stats", "-q", "-r", name, "-f", "csv", trace], check=True).stdout
    return list(csv.DictReader(io.StringIO(out)))


HIDDEN = {"profiler::_record_function_enter", "profiler::_record_function_enter_new",
          "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"}
ON_CPU = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


def tree_of(events):
    """The events of threads with their children, those that are one with their parent left out."""
    threads = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e.get("cat") in ON_CPU and e["name"] not in HIDDEN:
            start = round(e["ts"] * 1000)
            node = {"name": e["name"], "cat": e["cat"], "start": start, "end": start + round(e["dur"] * 1000),
                    "children": [], "kernels": 0, "id": e["args"].get("External id"), "parent": None}
            threads[e["tid"]].append(node)
    nodes = []
    for thread in threads.values():
        thread.sort(key=lambda n: (n["start"], -n["end"], ON_CPU.index(n["cat"])))
        stack = []
        for node in thread:
            while stack and (node["start"] >= stack[-1]["end"] or node["end"] > stack[-1]["end"]):
                stack.pop()
            if stack:
                node["parent"] = stack[-1]
                stack[-1]["children"].append(node)
            stack.append(node)
        nodes += thread
    return nodes


def merged(nodes):
    kept = []
    for node in nodes:
        parent = node["parent"]
        if parent and parent["name"] == node["name"] and len(parent["children"]) == 1:
            parent["children"] = node["children"]
            parent["kernels"] += node["kernels"]
            for child in node["children"]:
                child["parent"] = parent
        else:
            kept.append(node)
    return kept


def device_total(node):
    return node["kernels"] + sum(device_total(child) for child in node["children"])


def expected(events):
    """Rows as (name, self CPU, CPU total, self CUDA, CUDA total, calls), counted."""
    nodes = tree_of(events)
    by_id = {n["id"]: n for n in nodes if n["cat"] in ("cpu_op", "user_annotation")}
    rows = collections.defaultdict(lambda: [0] * 5)
    for e in events:
        if e["ph"] != "X" or e.get("cat") not in ON_GPU:
            continue
        dur = round(e["dur"] * 1000)
        row = rows[(e["name"], "device", e["cat"] == "gpu_user_annotation")]
        row[2] += dur
        row[3] += dur
        row[4] += 1
        if e["cat"] != "gpu_user_annotation" and e["args"].get("External id") in by_id:
            by_id[e["args"]["External id"]]["kernels"] += dur
    for node in merged(nodes):
        name = "ProfilerStep*" if node["name"].startswith("ProfilerStep#") else node["name"]
        row = rows[(name, "host", node["cat"] == "user_annotation")]
        dur = node["end"] - node["start"]
        row[0] += dur - sum(c["end"] - c["start"] for c in node["children"])
        row[1] += dur
        row[2] += node["kernels"]
        row[3] += device_total(node)
        row[4] += 1
    return collections.Counter((key[0], *row) for key, row in rows.items())


def random_trace(seed):
    """Threads of nested operators, annotations and calls; kernels of the calls; times to the nanosecond."""
    rng = random.Random(seed)
    events, next_id, correlation = [], [0], [0]

    def put(cat, name, tid, start, end, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if cat in ON_GPU else 500, "tid": tid,
                       "ts": start / 1000, "dur": (end - start) / 1000, "args": args})

    def grow(tid, start, end, depth, owner):
        at = start
        while at < end and rng.random() < 0.85:
            begin = at + rng.randrange(0, 50)
            stop = begin + rng.randrange(0, max(1, end - begin + 1))
            if begin >= end or stop > end:
                return
            kind = rng.random()
            if kind < 0.25 and owner:
                correlation[0] += 1
                put("cuda_runtime", rng.choice(["cudaLaunchKernel", "cudaMemcpyAsync"]), tid, begin, stop,
                    correlation=correlation[0], **{"External id": owner})
                kernel = stop + rng.randrange(0, 9000)
                if rng.random() < 0.9:
                    put(*rng.choice([("kernel", "gemm"), ("kernel", "add"), ("gpu_memset", "Memset (Device)"),
                                     ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)")]), 7, kernel,
                        kernel + rng.randrange(1, 5000), device=0, context=1, stream=7,
                        correlation=correlation[0], **{"External id": owner})
            elif depth < 6:
                next_id[0] += 1
                owner_here = next_id[0]
                annotation = kind > 0.9
                put("user_annotation" if annotation else "cpu_op",
                    rng.choice(["ProfilerStep#%d" % owner_here, "forward"] if annotation else
                               ["aten::mm", "aten::add", "aten::to", "aten::is_leaf"]),
                    tid, begin, stop, **{"External id": owner_here})
                if events[-1]["name"] != "aten::is_leaf":
                    grow(tid, begin, stop, depth + 1, owner_here)
            at = stop + rng.randrange(1, 100)

    for tid in (500, 501):
        for step in range(30):
            grow(tid, step * 200000, step * 200000 + 150000, 0, 0)
    if rng.random() < 0.5:
        rng.shuffle(events)
    return events


def check_arithmetic(path, events):
    ours = collections.Counter(
        (o["Name"], *(int(o[c]) for c in ("Self CPU (ns)", "CPU total (ns)", "Self CUDA (ns)",
                                          "CUDA total (ns)", "# of Calls")))
        for o in report(path) if o["Name"] != "[memory]")
    theirs = expected(events)
    expect(f"{path}: the same rows", ours == theirs,
           f"missing {sorted((theirs - ours).elements())}, too many {sorted((ours - theirs).elements())}")


def events_of_the_trace():
    with gzip.open(TRACE) as f:
        return json.load(f)["traceEvents"]


def a_real_trace_is_the_same_to_the_nanosecond():
    check_arithmetic(TRACE, events_of_the_trace())


def random_traces_are_the_same_to_the_nanosecond():
    for seed in range(20):
        events, path = random_trace(seed), f"seed-{seed}.json"
        with open(path, "w", encoding="ascii") as f:
            json.dump({"schemaVersion": 1, "traceEvents": events}, f)
        check_arithmetic(path, events)


def pairs_are_the_arrows_of_the_trace():
    """ops_pairs against the arrows that PyTorch drew from forward operators to backward functions."""
    events = events_of_the_trace()
    names = {(e["tid"], e["ts"]): e["name"] for e in events if e.get("cat") == "cpu_op"}
    arrows = collections.defaultdict(dict)
    for e in events:
        if e.get("cat") == "fwdbwd":
            arrows[e["id"]][e["ph"]] = names[e["tid"], e["ts"]]
    theirs = collections.Counter((a["s"], a["f"]) for a in arrows.values())
    ours = collections.Counter()
    for row in report(TRACE, "ops_pairs"):
        ours[row["Forward"], row["Backward"]] += int(row["Calls"])
    expect("pairs", theirs and ours == theirs, (theirs - ours, ours - theirs))


def allocations_are_the_memory_events():
    """The reports about allocations against a plain sum of PyTorch's memory events."""
    memory = [e for e in events_of_the_trace() if e["name"] == "[memory]"]
    theirs = [e["args"] for e in sorted(memory, key=lambda e: e["ts"])]
    rows, sums, peaks = (report(TRACE, name) for name in ("alloc_trace", "alloc_sum", "alloc_peak"))
    expect("rows", len(rows) == len(theirs), (len(rows), len(theirs)))
    for host, device in ((True, "Host"), (False, "NVIDIA H200 (0)")):
        mine = [a for a in theirs if (a["Device Id"] < 0) == host]
        sizes = sorted(int(r["Size (bytes)"]) for r in rows if r["Memory"] == device)
        expect(f"sizes of {device}", sorted(a["Bytes"] for a in mine) == sizes, sizes)
        peak = max(a["Total Allocated"] for a in mine)
        held = [r for r in peaks if r["Memory"] == device]
        expect(f"peak of {device}", {int(r["Peak (bytes)"]) for r in held} == {peak}, (peak, held))
        expect(f"what is held then by {device}", sum(int(r["Held (bytes)"]) for r in held) == peak, (peak, held))
        allocated = sum(int(r["Allocated (bytes)"]) for r in sums if r["Memory"] == device)
        expect(f"sum of {device}", allocated == sum(max(0, a["Bytes"]) for a in mine), allocated)
    expect("operators", any(not r["Operator"].startswith("aten::empty") for r in rows))


def rows_of_pytorchs_table_are_in_ours():
    ours, theirs, problems = report(TRACE), list(table_rows(TABLE)), []
    expect(f"{TABLE} has rows", theirs)
    for place, row in enumerate(theirs):
        name = row["Name"].removesuffix("...")
        # Rows with equal totals have no order.
        near = [o for o in ours if o["Name"].startswith(name) and
                all(is_near(row[k], o[v]) for k, v in COLUMNS.items())]
        if not near:
            problems.append(f"row {place + 1}, {row['Name']}: not in the report")
            for o in ours:
                if o["Name"].startswith(name):
                    problems.append({k: (row[k], o[v]) for k, v in COLUMNS.items() if not is_near(row[k], o[v])})
        elif abs(ours.index(near[0]) - place) > 2:
            problems.append(f"row {place + 1}, {row['Name']}: at place {ours.index(near[0]) + 1}")
    expect("rows", not problems, problems)


def is_near(theirs, ours):
    value, slack = printed(theirs)
    # Ours has one digit after the point of a percentage. A device annotation's end is rounded on its
    # way into the JSON: up to 3 ns a call.
    return abs(value - float(ours or 0)) <= slack + (0.06 if theirs.endswith("%") else 9)


TESTS = (
    a_real_trace_is_the_same_to_the_nanosecond,
    random_traces_are_the_same_to_the_nanosecond,
    pairs_are_the_arrows_of_the_trace,
    allocations_are_the_memory_events,
    rows_of_pytorchs_table_are_in_ours,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[4:])
