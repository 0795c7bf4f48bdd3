#!/usr/bin/env python3
"""Every screen gives the same answer: `stats`, `why`, `query`, the page of `lull view` and the page as one file.

Usage: test_agree.py BUILD [NAME...]

One case for each recording of test/data and examples. What a screen says is compared with what SQL says about the rows, which
are summed here once more, the slow way.
"""
import base64
import contextlib
import csv
import glob
import gzip
import io
import json
import os
import re
import struct
import subprocess
import sys
import urllib.parse
import urllib.request

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Colours of the timeline, by the class that SQL gives: src/timeline/name.h has eight.
COLOURS = {"matmul": 0, "attention": 1, "convolution": 2, "elementwise": 3, "optimizer": 3, "reductions": 4,
           "collectives": 5, "copy kernels": 6, "other kernels": 7}
# The bits of what a device does, and the columns of `overlap` with the time in which it does exactly that.
COMPUTE, COPY, COLLECTIVE = 1, 2, 4
STATES = {"Compute Alone": 1, "Copy Alone": 2, "Collective Alone": 4, "Compute+Copy": 3, "Compute+Collective": 5,
          "Copy+Collective": 6, "All Three": 7, "Idle": 0}
# What answers of the two pages may have different: the file has no server, and says so.
META_OF_ITSELF = {"editor", "is_offline", "index_bytes", "notice", "name", "reports"}
PLAIN = ["verdict", "steps", "memory", "health", "flame", "profiled"]


def lull(*words):
    return runner.run([LULL, *words], check=True).stdout


def sql(path, text):
    return list(csv.DictReader(io.StringIO(lull("query", "--format", "csv", path, text))))


def stats(path, report):
    """Rows of a report with the names of its columns; units are cut off. None if it has no data."""
    got = runner.run([LULL, "stats", "-q", "-r", report, "-f", "json", path])
    rows = json.loads(got.stdout) if got.stdout.strip().startswith("[") else []
    return [{k.split(" (")[0]: v for k, v in row.items()} for row in rows]


@contextlib.contextmanager
def page_of(path):
    """Ask the server of `lull view`."""
    p = runner.start([LULL, "view", "--no-browser", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = (line for line in p.stdout if "http:" in line)
    url = re.search(r"http:\S+", next(lines)).group(0)

    def ask(question, /, **args):
        with urllib.request.urlopen(f"{url.split('#')[0]}{question}?{urllib.parse.urlencode(args)}", timeout=runner.limit()) as f:
            return json.load(f)

    try:
        yield ask
    finally:
        p.terminate()
        p.wait()


def one_file(path):
    """What is packed into the page as one file, and the bytes of its lanes."""
    lull("export", "-t", "html", "-f", "-o", "page.html", path)
    with open("page.html", encoding="utf-8") as f:
        text = re.search(r'id="data">([^<]*)<', f.read()).group(1)
    data = gzip.decompress(base64.b64decode(text))
    (n,) = struct.unpack("<I", data[:4])
    return json.loads(data[4:4 + n]), data[4 + n:]


def varints(data, at, n):
    """n numbers, and where the next one is."""
    values = []
    for _ in range(n):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        values.append(value)
    return values, at


def events_in(file, data, lane):
    """(name, class) of the events of a lane of the file; None if they are folded."""
    n, at, is_folded = file["pack"]["lanes"][lane]
    if is_folded:
        return None
    for _ in ["start", "length"]:
        _, at = varints(data, at, n)
    names, at = varints(data, at, n)
    return list(zip([file["pack"]["names"][i][1] for i in names], data[at:at + n]))


# ---- what the rows say ----

def work_of(path):
    """(start, end, bit, device, class) of all work on devices."""
    lanes = {row["id"]: row["device"] for row in sql(path, "SELECT id, device FROM lane")}
    uuids = {row["id"]: row["uuid"] or row["id"] for row in sql(path, "SELECT id, uuid FROM device")}
    classes = [row["class"] for row in sql(path, "SELECT class FROM kernels")]
    work = []
    for table, bit in [("kernel", COMPUTE), ("memset", COMPUTE), ("graph", COMPUTE), ("memcpy", COPY)]:
        for i, row in enumerate(sql(path, f"SELECT start_ns, dur_ns, lane FROM {table}")):
            start, kind = int(row["start_ns"]), None
            if table == "kernel":
                kind = classes[i]
            elif table == "graph":
                kind = "other kernels"  # what it consists of was not recorded
            work.append((start, start + int(row["dur_ns"]), COLLECTIVE if kind == "collectives" else bit,
                         uuids.get(lanes[row["lane"]]), kind))
    return work


def states_of(work, window=None):
    """ns by the bits of what ran, from the first work to the end of the last, or in a window."""
    edges = []
    for start, end, bit, *_ in work:
        if window:
            start, end = max(start, window[0]), min(end, window[1])
        if end > start or (end == start and not window):
            edges += [(start, 1, bit), (end, -1, bit)]
    if window:
        edges += [(window[0], 0, 1), (window[1], 0, 1)]
    edges.sort()
    n, ns, last = {COMPUTE: 0, COPY: 0, COLLECTIVE: 0}, [0] * 8, None
    for at, change, bit in edges:
        if last is not None:
            ns[sum(b for b, k in n.items() if k)] += at - last
        n[bit] += change
        last = at
    return ns


def same(what, *values):
    """Values of several screens, each with the name of its screen."""
    runner.expect(what, len({json.dumps(v, sort_keys=True) for _, v in values}) == 1, values)


# ---- what has to agree ----

def counts_agree(path, ask, packed):
    meta = ask("meta")
    for what, table, report, column, kind in [("kernels", "kernels", "cuda_gpu_kern_sum", "Instances", "kernel"),
                                              ("copies", "copies", None, None, "copy"),
                                              ("memory operations", None, "cuda_gpu_mem_time_sum", "Count", None),
                                              ("CUDA calls", "calls", "cuda_api_sum", "Num Calls", "call")]:
        values = []
        if table:
            values.append(("query", int(sql(path, f"SELECT count(*) n FROM {table}")[0]["n"])))
        else:
            values.append(("query", sum(int(sql(path, f"SELECT count(*) n FROM {t}")[0]["n"]) for t in ["memcpy", "memset"])))
        if report:
            values.append(("stats", sum(row[column] for row in stats(path, report))))
        if kind:
            for name, m in [("page", meta), ("file", packed["meta"])]:
                values.append((name, sum(row["n"] for row in m["rows"] if row["kind"] == kind)))
        same(f"number of {what}", *values)


def devices_agree(path, ask, packed):
    told = stats(path, "overlap")
    tables = [ask("table", name="overlap"), packed["table:overlap"]]
    for where, table in zip(["page", "file"], tables):
        names = [c["name"] for c in table["columns"]]
        rows = [dict(zip(names, row)) for row in table["rows"]]
        same(f"devices of the {where}", ("stats", [r["Device"] for r in told]), (where, [r["Device"] for r in rows]))
        for a, b in zip(told, rows):
            same(f"time of {a['Device']}", *[(w, {k: r[k] for k in ["Span", *STATES] if k in a}) for w, r in [("stats", a), (where, b)]])
    work = work_of(path)
    by_device = {}
    for w in work:
        if w[3]:
            by_device.setdefault(w[3], []).append(w)
    summed = sorted(tuple(states_of(w)) for w in by_device.values() if any(states_of(w)))
    same("time of devices", ("stats", sorted([[r.get(c, 0) for c in STATES] for r in told])),
         ("query", sorted([[ns[bits] for bits in STATES.values()] for ns in summed])))
    return by_device


def gaps_of(work, least_ns):
    """ns in which nothing runs, in pieces of at least so many."""
    ns, last = 0, None
    for start, end, *_ in sorted(work):
        if last is not None and start - last >= least_ns:
            ns += start - last
        last = end if last is None else max(last, end)
    return ns


def busy_agrees(path, ask, packed, why, by_device):
    """Busy and idle time of devices, wherever a screen says it."""
    told = stats(path, "overlap")
    meta = ask("meta")
    whole = ask("receipt", **{"from": meta["from"], "to": meta["to"]})["devices"]
    rows = [(w, sorted(r["busy"] for r in m["rows"] if r["kind"] == "device" and r["busy"]))
            for w, m in [("rows of the page", meta), ("rows of the file", packed["meta"])]]
    same("busy time", ("stats", sorted(r["Span"] - r["Idle"] for r in told)), *rows, ("page", sorted(d["busy_ns"] for d in whole if d["ns"])))
    same("span of devices", ("stats", sorted(r["Span"] for r in told)), ("page", sorted(d["ns"] for d in whole if d["ns"])))
    idle = [int(r["dur"]) for r in sql(path, "SELECT dur FROM idle")]
    same("idle time", ("stats", sum(r["Idle"] for r in told)), ("rows", sum(gaps_of(w, 1) for w in by_device.values())))
    same("idle times of 1 us and more", ("query", sum(idle)), ("rows", sum(gaps_of(w, 1000) for w in by_device.values())))
    if why and len(told) == 1 and why["device"]:
        # Where `why` looked for causes, the row has those of copies and collectives that run alone, too.
        alone = sum(why["device"][k] for k in ["exposed_collective_ns", "exposed_copy_ns"])
        same("idle time with causes", ("stats and why", told[0]["Idle"] + alone), ("page", sum(c[2] for d in whole for c in d["causes"])),
             ("file", sum(r["busy"] for r in packed["meta"]["rows"] if r["kind"] == "idle")))


def steps_agree(path, ask, packed, why, work):
    columns = {"number": "Step", "start": "Start", "dur": "Duration", "busy": "GPU Busy"}
    listed = sql(path, "SELECT number, start, dur, busy, source FROM steps")
    rows = sorted([int(row[c] or 0) for c in columns] for row in listed)
    same("steps", ("query", rows), ("stats", sorted([row.get(c, 0) for c in columns.values()] for row in stats(path, "steps"))))
    shown = sorted([number, start, end - start, busy] for number, start, end, busy, *_ in ask("steps")["steps"])
    same("steps of the page", ("page", shown), ("file", sorted([s[0], s[1], s[2] - s[1], s[3]] for s in packed["steps"]["steps"])))
    same("number of steps", ("query", len(rows)), ("page", len(shown)))
    same("steps", ("query", rows), ("page", shown))
    if not {row["source"] for row in listed} <= {"program", "torch", "ranges"}:
        found_steps_agree(shown, why, work)
    if why and rows:
        same("number of steps", ("query", len(rows)), ("why", why["steps"]["steady"] + why["steps"]["warm_up"]))


def found_steps_agree(shown, why, work):
    """They are shown as the device has them: those of `why`, and how long it was busy in each."""
    each = [[s["from_ns"], s["to_ns"] - s["from_ns"]] for s in why["steps"]["each"]]
    same("steady steps", ("why", each), ("page", [s[1:3] for s in sorted(shown, key=lambda s: s[1])][-len(each):]))
    if len({w[3] for w in work}) == 1:
        summed = [sum(states_of(work, (start, start + dur))[1:]) for _, start, dur, _ in shown]
        same("busy time of steps", ("page", [s[3] for s in shown]), ("query", summed))


def classes_agree(path, why, by_device):
    """The steady steps of `why`, summed from the rows."""
    each = why["steps"]["each"] if why else []
    if not each or len(by_device) != 1:
        return
    device = why["device"]
    spans = [(s["from_ns"], s["to_ns"]) for s in each][-why["steps"]["steady"]:]
    same("time of the steady steps", ("why", device["window_ns"]), ("its steps", sum(b - a for a, b in spans)))
    ns = [0] * 8
    for span in spans:
        ns = [x + y for x, y in zip(ns, states_of(next(iter(by_device.values())), span))]
    said = [device[k] for k in ["compute_ns", "exposed_collective_ns", "exposed_copy_ns", "idle_ns"]]
    summed = [ns[1] + ns[3] + ns[5] + ns[7], ns[4] + ns[6], ns[2], ns[0]]
    same("compute, collective, copy and idle time of the steady steps", ("why", said), ("query", summed))
    classes = dict.fromkeys(COLOURS, 0)
    for start, end, _, _, kind in next(iter(by_device.values())):
        if kind and any(a <= start < b for a, b in spans):
            classes[kind] += end - start
    same("time of kernels by class in the steady steps", ("why", device["kernels_ns"]), ("query", classes))


def colours_agree(path, ask):
    lanes = {row["lane"] + i for row in ask("meta")["rows"] if row["kind"] == "kernel" for i in range(row["n_lanes"])}
    for row in sql(path, "SELECT DISTINCT name, class FROM kernels"):
        hits = ask("search", q=row["name"][:256], exact=1) if len(row["name"]) <= 256 else None
        if not hits or not hits["hits"]:
            continue
        lane, start, end = next(h for h in hits["hits"] if h[0] in lanes)
        event = ask("event", lane=lane, t=(start + end) // 2)
        same(f"class of {row['name'][:60]}", ("query", COLOURS[row["class"]]), ("page", event["class"]))


def packed_colours_agree(path, file, data):
    """How many kernels of each colour the file has, and each name its own."""
    lanes = [row["lane"] + i for row in file["answers"]["meta"]["rows"] if row["kind"] == "kernel" for i in range(row["n_lanes"])]
    events = [events_in(file, data, lane) for lane in lanes]
    if None in events:
        return
    counts, told = {}, {}
    for name, colour in (event for lane in events for event in lane):
        counts[(name, colour)] = counts.get((name, colour), 0) + 1
    for row in sql(path, "SELECT name, class, count(*) n FROM kernels GROUP BY name, class"):
        key = (row["name"].encode()[:1024].decode(errors="ignore"), COLOURS[row["class"]])
        told[key] = told.get(key, 0) + int(row["n"])
    same("kernels by name and class", ("query", sorted([*k, n] for k, n in told.items())), ("file", sorted([*k, n] for k, n in counts.items())))


def the_file_is_the_page(ask, packed):
    meta = ask("meta")
    same("meta", *[(w, {k: v for k, v in m.items() if k not in META_OF_ITSELF}) for w, m in [("page", meta), ("file", packed["meta"])]])
    for name in PLAIN:
        if name in packed:
            same(name, ("page", ask(name)), ("file", packed[name]))
    for key, value in packed.items():
        if key.startswith("table:"):
            same(key, ("page", ask("table", name=key[6:], n=300)), ("file", value))
        elif key.startswith("gaps:"):
            lane, *between = key[5:].split(":")
            same(key, ("page", ask("gaps", lane=lane, **({"n": 12, "between": 1} if between else {"n": 500}))), ("file", value))


def verdicts_agree(ask, why):
    verdict = ask("verdict")
    runner.expect("a verdict where there is one", (verdict["state"] == "known") == bool(why and not why["cannot_tell"]),
                  (verdict["state"], why and why["cannot_tell"]))
    if verdict["state"] != "known":
        return
    first, device = verdict["first"], why["device"]
    same("the first cause", ("why", why["first"]), ("page", verdict["findings"][first]["id"] if first >= 0 else None))
    same("what would make it faster", ("why", {o["opportunity"]: (o["text"], o["fix"], o["gain_ns"]) for o in why["opportunities"]}),
         ("page", {o["id"]: (o["text"], o["fix"], round(o["gain_ns"])) for o in verdict["opportunities"]}))
    same("utilisation", ("why", why["utilization"]), ("page", verdict.get("utilization")))
    same("number of steady steps", ("why", why["steps"]["steady"]), ("page", verdict["n_steps"]))
    same("length of a step", ("why", why["steps"]["mean_ns"]), ("page", round(verdict["step_ns"])))
    same("share in which the device does not compute", ("why", round(1 - device["compute_ns"] / device["window_ns"], 9)),
         ("page", round(verdict["waiting_share"], 9)))
    same("costs of causes", ("why", {f["cause"]: round(f["cost_ns"]) for f in why["findings"]}),
         ("page", {f["id"]: round(f["cost_ns"]) for f in verdict["findings"]}))


def agree(path):
    if not path.endswith(".lull"):
        lull("import", "-o", "imported.lull", path)
        path = "imported.lull"
    got = runner.run([LULL, "why", "--format", "json", path])
    why = json.loads(got.stdout) if got.stdout.strip().startswith("{") else None
    file, data = one_file(path)
    packed = file["answers"]
    packed_colours_agree(path, file, data)
    with page_of(path) as ask:
        the_file_is_the_page(ask, packed)
        counts_agree(path, ask, packed)
        by_device = devices_agree(path, ask, packed)
        busy_agrees(path, ask, packed, why, by_device)
        steps_agree(path, ask, packed, why, [w for of in by_device.values() for w in of])
        classes_agree(path, why, by_device)
        colours_agree(path, ask)
        verdicts_agree(ask, why)


# The second device of a machine, the first that its program sees; the driver is asked about both. The one that works
# has a row in `device` for the driver and one for the program, in either order.
TWO_ROWS = """process pid=10 name=rank0
{}
lane kind=1 process=1 tid=10 name=main
lane kind=2 process=1 device={} context_id=1 stream_id=7
launch name=gemm
metric name=power_w unit=W source=nvml
counter start=10us metric=1 device={} value=100
counter start=10us metric=1 device={} value=300
cuda_call start=0us dur=1us lane=1 name=cudaLaunchKernel correlation=1
kernel start=1us dur=20us lane=2 launch=1 correlation=1 process=1
kernel start=50us dur=20us lane=2 launch=1 correlation=2 process=1
"""
DRIVER = ['device process=0 device_id=0 name="Test GPU" uuid=aa', 'device process=0 device_id=1 name="Test GPU" uuid=bb']
PROGRAM = ['device process=1 device_id=0 name="Test GPU" uuid=bb']


def a_device_has_one_number(rows, of_lane, of_counters):
    with open("two.txt", "w", encoding="utf-8") as f:
        f.write(TWO_ROWS.format("\n".join(rows), of_lane, *of_counters))
    lull("text", "two.txt", "two.lull")
    packed = one_file("two.lull")[0]["answers"]
    lull("export", "-t", "chrome", "-f", "-o", "two.json", "two.lull")
    with open("two.json", encoding="utf-8") as f:
        groups = re.findall(r'"name":"(GPU \d)', f.read())
    same("devices", ("machine", ["0", "1"]), ("file", sorted(str(d["id"]) for d in packed["meta"]["devices"])),
         ("rows", sorted(r["key"][3:] for r in packed["meta"]["rows"] if r["kind"] == "device")),
         ("metrics", sorted(re.search(r"\((\d)\)", r["Device"]).group(1) for r in stats("two.lull", "gpu_metrics"))),
         ("trace viewers", sorted(set(g[4:] for g in groups))))
    keys = {r["kind"]: r["key"].split("/")[0] for r in packed["meta"]["rows"]}
    same("the device that works", ("query", {sql("two.lull", f"SELECT device d FROM {t}")[0]["d"] for t in ["kernels", "idle"]} == {"1"}),
         ("stats", [r["Device"] for r in stats("two.lull", "overlap")] == ["Test GPU (1)"]),
         ("trace", {r["Device"] for r in stats("two.lull", "cuda_gpu_trace")} == {"Test GPU (1)"}),
         ("rows", keys["kernel"] == keys["idle"] == "gpu1"), ("as it is", True))
    runner.expect("power is that of the device that works", [r["Busy Avg"] for r in stats("two.lull", "gpu_metrics")] == ["", 300.0],
                  stats("two.lull", "gpu_metrics"))
    agree("two.lull")


LINKS = """process pid=10 name=rank0
process pid=20 name=rank1
device process=1 device_id=0 name="Test GPU" uuid=aa
lane kind=1 process=1 tid=10 name=main
lane kind=1 process=2 tid=20 name=main
lane kind=2 process=1 device=1 context_id=1 stream_id=7
launch name=gemm
cuda_call start=0us dur=2us lane=1 name=cudaLaunchKernel correlation=1
cuda_call start=1us dur=2us lane=2 name=cudaLaunchKernel correlation=1
kernel start=5us dur=20us lane=3 launch=1 correlation=1
"""


def work_without_a_process_finds_its_call():
    """Numbers of calls begin anew in each process; the stream says which it was."""
    with open("links.txt", "w", encoding="utf-8") as f:
        f.write(LINKS)
    lull("text", "links.txt", "links.lull")
    lull("export", "-t", "chrome", "-f", "-o", "links.json", "links.lull")
    with open("links.json", encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    arrows = [(e["pid"], e["ts"]) for e in events if e["ph"] == "s"]
    told = stats("links.lull", "cuda_kern_exec_trace")
    with page_of("links.lull") as ask:
        lane = next(r["lane"] for r in ask("meta")["rows"] if r["kind"] == "kernel")
        links = ask("event", lane=lane, t=10000)["links"]
    same("start of the call", ("stats", [r["API Start"] / 1000 for r in told]), ("page", [x["start"] / 1000 for x in links if x["rel"] == "call"]),
         ("trace viewers", [ts for _, ts in arrows]), ("as it is", [0.0]))
    same("process of the call", ("stats", [r["PID"] for r in told]), ("trace viewers", [pid for pid, _ in arrows]), ("as it is", [10]))


def cases():
    yield work_without_a_process_finds_its_call
    yield runner.named("the_driver_s_row_comes_first", a_device_has_one_number, DRIVER + PROGRAM, 3, (1, 2))
    yield runner.named("the_program_s_row_comes_first", a_device_has_one_number, PROGRAM + DRIVER, 1, (2, 3))
    paths = [p for where in ["test/data/**/*.lull", "test/data/**/*.json.gz", "examples/**/*.lull"]
             for p in glob.glob(f"{TOP}/{where}", recursive=True)]
    for path in sorted(paths):
        yield runner.named(re.sub(r"\W+", "_", os.path.relpath(path, TOP)), agree, path)


if __name__ == "__main__":
    sys.exit(runner.main(list(cases()), sys.argv[2:]))
