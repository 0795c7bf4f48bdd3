#!/usr/bin/env python3
"""Checks of the CUDA source on a real GPU: complete, true, survives, neighbours.

    test/gpu/run.py --lull build/lull --budget 170
    test/gpu/run.py --only count,times --short
    test/gpu/run.py --sim build/sim --short         what can be tried without a GPU

Items come in order of importance; what does not fit into the budget is left out and said so. Exit status 1: something
did not hold. Without a GPU all is skipped, loudly.
"""
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpu
import parts
import runner
from gpu import Failed, Skipped, verdict

CUDA = ["-t", "cuda,nvtx", "-s", "none", "--cpuctxsw", "none", "--python-sampling=false"]
TORCH = os.path.join(gpu.HERE, "torch_probe.py")
PARTS = os.path.join(gpu.HERE, "parts.py")
DRIFT = []  # the recording in the background, if it was begun


def check_count(b):
    """Every kernel, copy, memset and graph, exactly; nothing lost, no work without times."""
    n = 20000 if b.options.short or b.options.sim else 1000000
    said = gpu.numbers(b.record("count", CUDA, [b.probe, "count", str(n)]))
    rows = b.rows_of("count")
    for table, key in (("kernel", "kernels"), ("memcpy", "copies"), ("memset", "sets"), ("graph", "graphs")):
        yield ("count: " + table, "%d" % said[key], "%d" % rows.get(table, 0),
               verdict(rows.get(table, 0) == said[key]))
    copied = sum(row["size_bytes"] for row in b.table("count", "memcpy"))
    yield ("count: bytes copied", "%d" % said["copy_bytes"], "%d" % copied, verdict(copied == said["copy_bytes"]))
    losses = b.losses("count")
    yield ("count: losses", "none", json.dumps(losses) if losses else "none", verdict(not losses))
    meta = b.info("count")["meta"]
    yield ("count: stated clock error", "", "%s ns, lead %s, tail %s" % tuple(
        meta.get("cuda.clock_" + k, "?") for k in ("error_ns", "lead_ns", "tail_ns")), "ok")


def check_times(b):
    """Batches of kernels: from the first begin to the last end, beside CUDA events around them."""
    env = {"LULL_SIM_KERNEL_NS": "200000"} if b.options.sim else None
    said = gpu.numbers(b.record("times", CUDA, [b.probe, "times"], env))
    calls = sorted((r["start_ns"], r["correlation"]) for r in b.table("times", "cuda_call"))
    kernels = {r["correlation"]: r for r in b.table("times", "kernel")}
    labels = {r["id"]: r["name"] for r in b.table("times", "label")}
    for r in sorted(b.table("times", "range"), key=lambda r: r["start_ns"]):
        name = labels[r["label"]]
        cycles = name.split()[-1]
        inside = [kernels[c] for at, c in calls
                  if r["start_ns"] <= at <= r["start_ns"] + r["dur_ns"] and c in kernels]
        if not name.startswith("batch") or not inside:
            continue
        span = max(k["start_ns"] + k["dur_ns"] for k in inside) - min(k["start_ns"] for k in inside)
        event = said["batch_" + cycles]
        each = statistics.median(k["dur_ns"] for k in inside)
        off = 100 * (event - span) / event
        # The events themselves take about 2 us of each batch.
        is_good = abs(event - span) <= 0.01 * event + 2500 and len(inside) == said["n"]
        yield ("times: kernels of %.1f us" % (each / 1e3), "%.1f us by events" % (event / 1e3),
               "%.1f us, %.2f %% off" % (span / 1e3, off), verdict(is_good))


def clock_rows(b, name):
    """Distance of each kernel's end from the moment it was let go, and from when its answer was seen."""
    labels = {r["id"]: r["name"] for r in b.table(name, "label")}
    ranges = sorted((r for r in b.table(name, "range") if labels[r["label"]] == "let go"),
                    key=lambda r: r["start_ns"])
    kernels = sorted(b.table(name, "kernel"), key=lambda r: r["start_ns"])
    if not ranges or len(ranges) != len(kernels):
        raise Failed("%d kernels, %d ranges" % (len(kernels), len(ranges)))
    calls = {r["correlation"]: r["start_ns"] for r in b.table(name, "cuda_call")}
    after = [k["start_ns"] + k["dur_ns"] - r["start_ns"] for k, r in zip(kernels, ranges)]
    late = [k["start_ns"] + k["dur_ns"] - r["start_ns"] - r["dur_ns"] for k, r in zip(kernels, ranges)]
    lead = [k["start_ns"] - calls[k["correlation"]] for k in kernels if k["correlation"] in calls]
    return after, late, lead


def judge_clock(b, name):
    """
    On one clock a kernel ends after it was let go and not much after its answer was seen. So the clock is early by
    at most -min(after), and late by about the median of `late`; half a microsecond is the kernel's own ending.
    """
    after, late, lead = clock_rows(b, name)
    early_us = max(0, -min(after)) / 1e3
    late_us = statistics.median(late) / 1e3
    half = len(late) // 2
    drift_us = (statistics.median(late[half:]) - statistics.median(late[:half])) / 1e3
    is_good = early_us <= 5 and late_us <= 5 and abs(drift_us) <= 5
    yield (name + ": error", "<= 5 us", "early %.2f us, late %.2f us, n=%d" % (early_us, late_us, len(after)),
           verdict(is_good))
    yield (name + ": drift between halves", "<= 5 us", "%.2f us" % drift_us, verdict(abs(drift_us) <= 5))
    yield (name + ": begins after its call", ">= 0", "%.2f us at least" % (min(lead) / 1e3), verdict(min(lead) >= 0))


def check_clock(b):
    if b.options.sim:
        raise Skipped("kernels of the simulated device do not answer")
    if DRIFT:
        raise Skipped("the drift in the background tells the error, too")
    b.record("clock", CUDA, [b.probe, "clock", "2" if b.options.short else "5"])
    yield from judge_clock(b, "clock")


def start_drift(b):
    """Sixty seconds beside everything else; looked at in the end."""
    if b.options.sim:
        raise Skipped("kernels of the simulated device do not answer")
    if b.options.drift + 10 > b.left():
        raise Skipped("%d s do not fit" % b.options.drift)
    DRIFT.append(subprocess.Popen([b.lull, "profile", "-q", "-f", "true", "-o", b.path("drift"), *CUDA, b.probe,
                                   "clock", str(int(b.options.drift))], env=b.env, stdout=subprocess.DEVNULL))
    yield ("drift: begun", "", "%d s in the background" % b.options.drift, "ok")


def check_drift(b):
    if not DRIFT:
        raise Skipped("it was not begun")
    try:
        DRIFT[0].wait(max(1, b.left()))
    except subprocess.TimeoutExpired:
        DRIFT[0].terminate()
        DRIFT[0].wait(5)
        raise Failed("it did not end in time") from None
    yield from judge_clock(b, "drift")


def check_copies(b):
    said = gpu.numbers(b.record("copies", CUDA, [b.probe, "copies"]))
    rows = b.table("copies", "memcpy")
    for kind, number in (("pageable", 1), ("pinned", 2)):
        mine = [r for r in rows if number in (r["src_kind"], r["dst_kind"])]
        size = sum(r["size_bytes"] for r in mine)
        yield ("copies: " + kind, "%d, %d bytes" % (said[kind], said[kind + "_bytes"]),
               "%d, %d bytes" % (len(mine), size),
               verdict(len(mine) == said[kind] and size == said[kind + "_bytes"]))


def check_parts(b):
    """Parts that a program records of itself have their first call, and the work that is queued at their end."""
    env = {"PYTHONPATH": os.path.join(gpu.ROOT, "python"), "LULL_COMMAND": b.lull, "LULL_SIM_KERNEL_NS": "200000"}
    wanted = {"memcpy": parts.COPIES, "kernel": parts.KERNELS, "cuda_call": parts.COPIES + parts.KERNELS}
    for how, before in (("session", [b.lull, "launch", "-q", "-s", "none"]), ("attached", [])):
        if not before and not runner.can(b.lull, "attach"):
            raise Skipped("programs that run must not be traced here")
        b.run([*before, sys.executable, PARTS, b.path(how), "4"], env)
        for i in range(4):
            found = {table: b.rows_of(how + str(i)).get(table, 0) for table in wanted}
            issues = {issue["name"]: issue["count"] for issue in b.info(how + str(i))["issues"]}
            found["kernel"] += issues.get("device_unfinished", 0) if b.options.sim else 0
            yield ("parts: %s, number %d" % (how, i), " ".join(map(str, wanted.values())),
                   " ".join(map(str, found.values())), verdict(found == wanted))


def check_kill(b):
    said = gpu.numbers(b.record("kill", CUDA, [b.probe, "kill", "1500"], expect=137))
    n = b.rows_of("kill").get("kernel", 0)
    issues = {i["name"] for i in b.info("kill")["issues"]}
    yield ("kill: kernels after SIGKILL", "%d to %d" % (said["must_have"], said["launched"]), "%d" % n,
           verdict(said["must_have"] <= n <= said["launched"]))
    yield ("kill: the report says so", "device_tail", ", ".join(sorted(issues)), verdict("device_tail" in issues))


def check_neighbour(b):
    """torch.profiler inside: each gets the same kernels, by name."""
    gpu.need_torch(b)
    text = b.record("neighbour", [*CUDA, "--capture-range=cudaProfilerApi", "--capture-range-end=stop"],
                    [sys.executable, TORCH, "profiler"])
    theirs = json.loads(text[text.index("{"):text.rindex("}") + 1])
    launches = {r["id"]: r["name"] for r in b.table("neighbour", "launch")}
    ours = {}
    for r in b.table("neighbour", "kernel"):
        ours[launches[r["launch"]]] = ours.get(launches[r["launch"]], 0) + 1
    yield ("neighbour: torch.profiler's kernels", "> 0", "%d, %d names" % (sum(theirs.values()), len(theirs)),
           verdict(sum(theirs.values()) > 0))
    missing = {k: (v, ours.get(k, 0)) for k, v in theirs.items() if ours.get(k, 0) != v}
    yield ("neighbour: ours", "the same", "%d, %d names%s" % (sum(ours.values()), len(ours),
           "; differ: " + "; ".join("%s %d/%d" % (k[:30], *v) for k, v in list(missing.items())[:2]) if missing else ""),
           verdict(not missing and sum(ours.values()) == sum(theirs.values())))
    issues = {i["name"] for i in b.info("neighbour")["issues"]}
    yield ("neighbour: the report says so", "cupti_shared", ", ".join(sorted(issues)), verdict("cupti_shared" in issues))


def check_launches(b):
    """Launches of torch, which are timed in the callers' tables: each kernel has its call, and begins after it."""
    gpu.need_torch(b)
    b.record("launches", CUDA, [sys.executable, TORCH, "steps", "50"])
    calls, n_twice = {}, 0
    for r in b.table("launches", "cuda_call"):
        n_twice += r["correlation"] in calls
        calls[r["correlation"]] = r
    kernels = b.table("launches", "kernel")
    found = [(k, calls[k["correlation"]]) for k in kernels if k["correlation"] in calls]
    by_name = {}
    for _, call in found:
        by_name[call["name"]] = by_name.get(call["name"], 0) + 1
    yield ("launches: kernels with one call", "%d, no call twice" % len(kernels), "%d, %d twice" % (len(found), n_twice),
           verdict(len(kernels) > 500 and len(found) == len(kernels) and not n_twice))
    early = sum(k["start_ns"] < call["start_ns"] for k, call in found)
    yield "launches: kernels before their call", "0", "%d" % early, verdict(not early)
    yield ("launches: by name", "cudaLaunchKernel most", ", ".join("%s %d" % n for n in sorted(
        by_name.items(), key=lambda n: -n[1])[:3]), verdict(by_name.get("cudaLaunchKernel", 0) * 2 > len(kernels)))


def check_runtime(b):
    """The ways to launch that libcudart has, timed in the caller's table and by callbacks: the same calls."""
    library, guest = b.cudart(), b.path("cudart_guest")
    if not os.path.exists(library):
        raise Skipped("there is no libcudart.so.13 beside the libcupti that is used")
    subprocess.run([os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-iquote", gpu.ROOT, "-iquote", os.path.join(gpu.ROOT, "test"),
                    "-o", guest, os.path.join(gpu.ROOT, "test", "e2e", "guests", "cudart_guest.c"), library,
                    "-Wl,-z,now,-rpath," + os.path.dirname(library), "-Wl,--allow-shlib-undefined", "-ldl", "-lpthread"],
                   check=True)
    for how, options in (("table", []), ("callbacks", ["--cudabacktrace=all:0"])):
        b.record("runtime", [*CUDA, *options], [guest])
        by_name, calls = {}, set()
        for r in b.table("runtime", "cuda_call"):
            calls.add(r["correlation"])
            if "Launch" in r["name"]:
                by_name[r["name"]] = by_name.get(r["name"], 0) + 1
        yield ("runtime: launches by " + how, "60, Ex 10, driver 5", ", ".join("%s %d" % n for n in sorted(by_name.items())),
               verdict(by_name == {"cudaLaunchKernel": 60, "cudaLaunchKernelExC": 10, "cuLaunchKernel": 5}))
        kernels = b.table("runtime", "kernel")
        yield ("runtime: kernels by " + how, "74 of 74 with a call", "%d of %d" % (
            sum(k["correlation"] in calls for k in kernels), len(kernels)),
            verdict(len(kernels) == 74 and all(k["correlation"] in calls for k in kernels)))


def check_memory(b):
    gpu.need_torch(b)
    said = gpu.numbers(b.record("memory", [*CUDA, "--cuda-memory-usage=true"], [sys.executable, TORCH, "memory"]))
    live, most = {}, 0
    for r in sorted(b.table("memory", "cuda_memory"), key=lambda r: r["start_ns"]):
        if r["memory_kind"] != 3:
            continue
        if r["operation"] == 1:
            live[r["address"]] = r["size_bytes"]
        else:
            live.pop(r["address"], None)
        most = max(most, sum(live.values()))
    off = 100 * abs(most - said["reserved_bytes"]) / said["reserved_bytes"]
    yield ("memory: most at a time", "%d bytes reserved by torch" % said["reserved_bytes"],
           "%d bytes, %.2f %% off" % (most, off), verdict(off <= 1))


def check_behind(b):
    """A recording that ends while work is queued up has what was done by then."""
    gpu.need_torch(b)
    b.record("behind", [*CUDA, "-c", "cudaProfilerApi"], [sys.executable, TORCH, "behind"])
    kernels, info = b.table("behind", "kernel"), b.info("behind")
    issues = {i["name"]: i["count"] for i in info["issues"]}
    span = max(k["start_ns"] for k in kernels) - min(k["start_ns"] for k in kernels) if kernels else 0
    yield ("behind: kernels of 0.3 s", ">= 0.25 s of them", "%d, %.2f s" % (len(kernels), span / 1e9),
           verdict(span >= 0.25e9))
    yield ("behind: what is missing is said", "device_unfinished", json.dumps(issues), verdict(
        issues.get("device_unfinished", 0) > 0))
    b.record("behind", [*CUDA, "-c", "cudaProfilerApi"], [sys.executable, TORCH, "behind", "kill"], expect=137)
    kernels, info = b.table("behind", "kernel"), b.info("behind")
    span = max(k["start_ns"] for k in kernels) - min(k["start_ns"] for k in kernels) if kernels else 0
    yield ("behind: killed after 0.9 s", ">= 0.65 s of them", "%d, %.2f s" % (len(kernels), span / 1e9),
           verdict(span >= 0.64e9))  # the last one has lasted for some ms
    yield ("behind: the report says so", "device_tail", ", ".join(i["name"] for i in info["issues"]), verdict(
        any(i["name"] == "device_tail" for i in info["issues"])))


def check_endings(b):
    gpu.need_torch(b)
    for how, status in (("fork", 0), ("spawn", 0), ("_exit", 6)):
        begin = time.monotonic()
        b.record("end", CUDA, [sys.executable, TORCH, "workers", how], expect=status, limit=60)
        n = b.rows_of("end").get("kernel", 0)
        yield ("endings: " + how, "status %d" % status, "%d kernels, %.1f s" % (n, time.monotonic() - begin),
               verdict(n > 0))


def check_leaving(b):
    """CUPTI leaves and comes while the program goes on; what it frees is poisoned."""
    gpu.need_torch(b)
    poison = b.path("poison.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", poison,
                    os.path.join(gpu.HERE, "poison.c"), "-ldl"], check=True)
    said = b.record("turns", [*CUDA, "-c", "lull", "--capture-range-end=repeat"],
                    ["sh", "-c", 'LD_PRELOAD=$LD_PRELOAD:%s exec "$@" 2>&1' % poison, "sh", sys.executable, TORCH, "turns",
                     "20", b.floor], {**b.cupti(), "LULL_CUPTI_LEAVE": "always"})
    n = gpu.numbers(said)
    yield ("leaving CUPTI while it runs", "away 20 times, memory poisoned", said.strip()[-60:],
           verdict(n.get("away") == 20 and n.get("poisoned", 0) > 0))


def check_ranks(b):
    gpu.need_torch(b)
    b.record("ranks", ["-t", "cuda,nvtx,nccl", "-s", "none", "--cpuctxsw", "none"],
             [sys.executable, TORCH, "ranks"], limit=90)
    launches = {r["id"]: r["name"] for r in b.table("ranks", "launch")}
    by_process = {}
    for r in b.table("ranks", "kernel"):
        if launches[r["launch"]].startswith("nccl"):
            by_process[r["process"]] = by_process.get(r["process"], 0) + 1
    yield ("ranks: NCCL kernels", "5 in each of two", " ".join(map(str, by_process.values())),
           verdict(sorted(by_process.values()) == [5, 5]))
    labels = {r["id"]: r["name"] for r in b.table("ranks", "label")}
    calls = sum(labels[r["label"]] == "ncclAllReduce" for r in b.table("ranks", "range"))
    yield ("ranks: ncclAllReduce ranges", "10", "%d" % calls, verdict(calls == 10))
    for source, name in ((1, "call"), (2, "plugin")):
        found = [(r["in_bytes"], r["n_ranks"]) for r in b.table("ranks", "collective") if r["source"] == source]
        yield ("ranks: collectives by the " + name, "10 of 4194304 bytes, 2 ranks", "%d of %s" % (
            len(found), " ".join("%d, %d" % f for f in sorted(set(found)))), verdict(found == [(4 << 20, 2)] * 10))


def grown(said):
    """Bytes that the second half added, bytes a kernel, and the kernels of the second half."""
    added = (said["kb_7"] - said["kb_3"]) * 1024
    return added, added / (said["kernels"] / 2), said["kernels"] / 2


def check_soak(b):
    seconds = 5 if b.options.short or b.options.sim else b.options.soak
    said = gpu.numbers(b.record("soak", CUDA, [b.probe, "soak", "%d" % seconds], limit=seconds * 3 + 60))
    n = b.rows_of("soak").get("kernel", 0)
    lost = sum(b.losses("soak").values())
    yield ("soak: %d s, four threads" % seconds, "%d kernels" % said["kernels"], "%d, %d counted as lost" % (n, lost),
           verdict(n + lost >= said["kernels"]))
    # CUPTI itself keeps about 32 bytes of each kernel. What it keeps beside an agent that drops all records is known.
    floor = gpu.numbers(b.run([b.probe, "soak", "8"], {"CUDA_INJECTION64_PATH": b.floor, **b.cupti()}))
    ours, theirs = grown(said), grown(floor)
    yield ("soak: memory of the program", "<= 16 MiB above CUPTI's own", "%.0f MiB more in half the time; CUPTI's own %.0f" % (
        ours[0] / 2**20, theirs[1] * ours[2] / 2**20), verdict(ours[0] <= theirs[1] * ours[2] + (16 << 20)))


ITEMS = [
    ("drift_begin", 1, start_drift),
    ("count", 25, check_count),
    ("neighbour", 25, check_neighbour),
    ("launches", 12, check_launches),
    ("runtime", 4, check_runtime),
    ("times", 6, check_times),
    ("clock", 9, check_clock),
    ("copies", 4, check_copies),
    ("parts", 12, check_parts),
    ("kill", 5, check_kill),
    ("memory", 15, check_memory),
    ("ranks", 30, check_ranks),
    ("behind", 16, check_behind),
    ("leaving", 20, check_leaving),
    ("endings", 45, check_endings),
    ("drift", 2, check_drift),
    ("soak", 85, check_soak),
]

if __name__ == "__main__":
    sys.exit(gpu.main(gpu.parse(__doc__.split("\n")[0], [
        (("--drift",), dict(type=float, default=60, help="seconds of the clock's drift (default: 60)")),
        (("--soak",), dict(type=float, default=60, help="seconds of the soak (default: 60)")),
    ]), ITEMS) and 1)
