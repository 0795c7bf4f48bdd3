#!/usr/bin/env python3
"""Checks of `lull kernel` on a real GPU: counters by physics, safety, verdicts.

    test/gpu/kernel.py --lull build/lull --budget 170
    test/gpu/kernel.py --only physics,verdicts

What a kernel must move and compute is counted from its code (kernels.cu, kernel_probe.cu); no other profiler is asked.
Needs nvcc. Items come in order of importance; what does not fit into the budget is left out and said so.
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpu
from gpu import Failed, Skipped, verdict

LABELS = {}  # kernel -> label, from the program itself
STALLS = {"pointer_chase": "long_scoreboard", "lone_warp": "barrier", "stream_copy": "long_scoreboard",
          "bank_conflict": "mio_throttle", "fat_block": "long_scoreboard", "strided_read": "long_scoreboard"}


def compile_cuda(b, name):
    out = b.path(name)
    if os.path.exists(out):
        return out
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise Skipped("no nvcc")
    b.run([nvcc, "-O3", "-lineinfo", "-arch=native", "-o", out, os.path.join(gpu.HERE, name + ".cu")])
    return out


def measure(b, name, options, argv, limit=60, expect=0):
    """Run a program under lull kernel; its output. The report is b.path(name) + ".lull"."""
    return b.run([b.lull, "kernel", "-f", "true", "--discard-environment", "-o", b.path(name), *options, *argv],
                 limit=limit, expect=expect)


def keep(b, name):
    if b.options.keep:
        shutil.copy(b.path(name + ".lull"), b.options.keep)


def counters(b, name):
    """Metrics by key of each measured launch, in order."""
    values = {}
    for row in b.table(name, "kmetric"):
        values.setdefault(row["profiled_id"], {})[row["key"] or row["name"]] = row["value"]
    return [values.get(row["profiled_id"], {}) for row in b.table(name, "profiled")]


def flops(m):
    return m["op_fadd"] + m["op_fmul"] + 2 * m["op_ffma"]


def all_ten(b):
    """The ten kernels, measured once with the full set; their counters by name."""
    program = compile_cuda(b, "kernels")
    if not LABELS:
        for line in b.run([program, "--list"]).split("\n"):
            words = line.split()
            if len(words) == 2:
                LABELS[words[0]] = words[1]
    for name in LABELS:
        if not os.path.exists(b.path(name + ".lull")):
            measure(b, name, ["--set", "full", "-s", "1", "-c", "1"], [program, name, "2"])
            keep(b, name)
    return {name: counters(b, name)[0] for name in LABELS}


def check_physics(b):
    """Bytes and operations are those of the code."""
    ten = all_ten(b)
    said = gpu.numbers(b.run([b.path("kernels"), "stream_copy", "1"]))
    off = 100 * (ten["stream_copy"]["dram_bytes"] / said["dram_bytes"] - 1)
    yield ("physics: DRAM bytes of stream_copy", "%.0f +- 2 %%" % said["dram_bytes"],
           "%.0f, %+.2f %%" % (ten["stream_copy"]["dram_bytes"], off), verdict(abs(off) <= 2))
    for name in ("divergent", "lone_warp", "fma_fp32", "small_grid"):
        want = gpu.numbers(b.run([b.path("kernels"), name, "1"]))["flops"]
        # Around its loop fma_fp32 makes four numbers of one and adds them up: six additions a thread.
        extra = {"fma_fp32": 6 * 132 * 16 * 512, "small_grid": 6 * 256}.get(name, 0)
        got = flops(ten[name])
        yield ("physics: flops of " + name, "%.0f%s" % (want, " + %d" % extra if extra else ""), "%.0f" % got,
               verdict(got == want + extra and 2 * ten[name]["op_ffma"] == want))


def check_product(b):
    """A bf16 matrix product of 8192 x 8192 x 8192 takes 2 * 8192^3 tensor operations."""
    probe = compile_cuda(b, "kernel_probe")
    said = gpu.numbers(measure(b, "product", ["--metrics", "tensor_bf16", "-s", "1", "-c", "1"], [probe, "product"]))
    got = counters(b, "product")[0]["tensor_bf16"]
    yield ("product: our own kernel", "%.0f +- 1 %%" % said["operations"], "%.0f" % got,
           verdict(abs(got / said["operations"] - 1) <= 0.01))
    gpu.need_torch(b)
    code = ("import torch; a=torch.randn(8192,8192,device='cuda',dtype=torch.bfloat16); b=torch.randn_like(a)\n"
            "for i in range(3): c=a@b\ntorch.cuda.synchronize()")
    measure(b, "torch", ["--metrics", "tensor_bf16", "-k", "regex:nvjet|gemm|cutlass", "-s", "1", "-c", "1"],
            [sys.executable, "-c", code])
    launches = {r["id"]: r["name"] for r in b.table("torch", "launch")}
    name = launches[b.table("torch", "profiled")[0]["launch"]]
    got = counters(b, "torch")[0]["tensor_bf16"]
    tile = re.search(r"_(\d+)x(\d+)_", name)
    # A tile that does not divide 8192 is computed whole: that is what the hardware does, and counts.
    rows, cols = (-(-8192 // int(t)) * int(t) for t in (tile.groups() if tile else (8192, 8192)))
    want = 2.0 * rows * cols * 8192
    yield ("product: torch, with its tiles", "%.0f +- 1 %%" % want,
           "%.0f, %.4f of 2 * 8192^3" % (got, got / (2.0 * 8192 ** 3)), verdict(abs(got / want - 1) <= 0.01))


def check_verdicts(b):
    """The verdict is the label, the leading stall the expected one."""
    all_ten(b)
    right = 0
    for name, label in LABELS.items():
        text = b.run([b.lull, "kernel", "--import", b.path(name + ".lull"), "--format", "json"])
        launch = json.loads(text[:text.rindex("}") + 1])["launches"][0]
        found = launch["verdict"]["id"] if launch["verdict"] else "unknown"
        found = launch["verdict"]["detail"] + "-bound" if found == "pipe-bound" else found
        right += found == label
        stall = launch["stalls"][0]["reason"] if launch["stalls"] else "none"
        want = STALLS.get(name)
        yield ("verdict: " + name, label + (", " + want if want else ""), "%s, %s" % (found, stall),
               verdict(found == label and want in (None, stall)))
    yield ("verdict: all", "10 of 10", "%d of %d" % (right, len(LABELS)), verdict(right == len(LABELS) == 10))


def check_safety(b):
    """Results stay what they were; much live memory survives."""
    probe = compile_cuda(b, "kernel_probe")
    for what, args in (("sums", []), ("live", ["40"])):
        plain = gpu.numbers(b.run([probe, what, *args]))
        said = gpu.numbers(measure(b, what, ["--set", "basic"], [probe, what, *args]))
        rows = b.table(what, "profiled")
        yield ("safety: " + " ".join([what, *args]), "checksum %.0f" % plain["checksum"],
               "%.0f, %d launches measured" % (said["checksum"], len(rows)),
               verdict(said["checksum"] == plain["checksum"] and said["counted"] == plain["counted"] and
                       all(r["status"] == 0 for r in rows) and len(rows) > 4))


def check_hang(b):
    """A kernel that never ends when it is run again is ended, with a sentence; kernels of NCCL run once."""
    probe = compile_cuda(b, "kernel_probe")
    text = measure(b, "hang", ["--set", "basic", "--timeout", "5"], [probe, "handshake"], expect=1)
    yield ("hang: handshake", "ended after 5 s, and said", "said" if "did not end within 5 s" in text else text[-60:],
           verdict("did not end within 5 s" in text))
    said = gpu.numbers(measure(b, "nccl", ["--set", "basic"], [probe, "nccl"]))
    status = [r["status"] for r in b.table("nccl", "profiled")]
    yield ("hang: NCCL's names", "status 4, 0; 64 counted", "status %s; %d" % (status, said["counted"]),
           verdict(status == [4, 0] and said["counted"] == 64))


def check_occupancy(b):
    """500 random shapes as cudaOccupancyMaxActiveBlocksPerMultiprocessor has them."""
    probe = compile_cuda(b, "kernel_probe")
    capability = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
                                capture_output=True, text=True).stdout.split("\n")[0].strip() or "9.0"
    wrong, n = [], 0
    for line in b.run([probe, "shapes", "500"]).split("\n"):
        if not line.startswith("SHAPE"):
            continue
        s = gpu.numbers(line)
        text = b.run([b.lull, "occupancy", "-c", capability, "-t", "%d" % s["threads"], "-r", "%d" % s["registers"],
                      "-s", "%d" % s["shared"]])
        found = re.search(r"^(\d+) blocks?,", text, re.M)
        n += 1
        if not found or int(found.group(1)) != s["blocks"]:
            wrong.append("%s: %s" % (line, found.group(1) if found else "nothing"))
    yield ("occupancy: as CUDA has it", "500 of 500", "%d of %d %s" % (n - len(wrong), n, "; ".join(wrong[:2])),
           verdict(n == 500 and not wrong))


def check_replay(b):
    """The program once for each pass gives the same counters as CUPTI's own replay."""
    program = compile_cuda(b, "kernels")
    for name, how in (("by_kernel", "kernel"), ("by_program", "application")):
        measure(b, name, ["--section", "compute", "--replay", how, "-s", "1", "-c", "1"], [program, "lone_warp", "2"])
    one, other = counters(b, "by_kernel")[0], counters(b, "by_program")[0]
    yield ("replay: application", "%.0f flops, %.0f instructions" % (flops(one), one["inst_executed"]),
           "%.0f, %.0f" % (flops(other), other["inst_executed"]),
           verdict(flops(one) == flops(other) and one["inst_executed"] == other["inst_executed"]))


def check_source(b):
    """Samples lead to the line that waits."""
    program = compile_cuda(b, "kernels")
    measure(b, "lines", ["--set", "basic", "--section", "source", "-s", "1", "-c", "1"],
            [program, "pointer_chase", "3"])
    keep(b, "lines")
    with open(os.path.join(gpu.HERE, "kernels.cu"), encoding="utf-8") as source:
        line = [i for i, text in enumerate(source, 1) if "p = next[p]" in text][0]
    lines, total = {}, 0
    for row in b.table("lines", "pcsample"):
        lines[row["line"]] = lines.get(row["line"], 0) + row["n_samples"]
        total += row["n_samples"]
    hottest = max(lines, key=lines.get, default=0)
    yield ("source: hottest line of pointer_chase", "%d or the loop before it" % line,
           "%d, %.0f %% of %d samples" % (hottest, 100 * lines.get(hottest, 0) / max(total, 1), total),
           verdict(hottest in (line, line - 1) and total > 1000))
    measure(b, "only", ["--section", "source", "-s", "1", "-c", "1"], [program, "pointer_chase", "3"])
    row = b.table("only", "profiled")[0]
    yield ("source: alone", "samples and a duration", "%d rows, %d ns" % (len(b.table("only", "pcsample")), row["dur_ns"]),
           verdict(b.table("only", "pcsample") and row["dur_ns"] > 0))


def check_cost(b):
    """Time a launch and a pass take; the basic set has 12 passes at most."""
    program = compile_cuda(b, "kernels")
    for name in ("basic", "full"):
        measure(b, "cost_" + name, ["--set", name, "-s", "1", "-c", "5"], [program, "lone_warp", "8"])
        rows = b.table("cost_" + name, "profiled")[1:]
        each = sum(r["cost_ns"] for r in rows) / len(rows) / 1e6
        passes = rows[0]["n_passes"]
        yield ("cost: " + name, "12 passes at most" if name == "basic" else "",
               "%d passes, %.0f ms a launch, %.1f ms a pass" % (passes, each, each / passes),
               verdict(name != "basic" or passes <= 12))
    plain = gpu.numbers(b.run([program, "lone_warp", "200"]))["us"]
    after = gpu.numbers(measure(b, "after", ["-c", "1"], [program, "lone_warp", "200"]))["us"]
    yield ("cost: launches that are not measured", "%.1f us" % plain, "%.1f us" % after, verdict(after < 1.2 * plain))


def shown(b, name):
    """Each launch of a report as `lull kernel --format json` tells it."""
    text = b.run([b.lull, "kernel", "--import", b.path(name + ".lull"), "--format", "json"])
    return json.loads(text[:text.rindex("}") + 1])["launches"]


def fits(launch, label):
    """Whether the verdict is one of the label's, NAME or NAME:DETAIL with | between."""
    found = launch["verdict"] or {"id": "unknown", "detail": ""}
    return any(found["id"] == name and (not detail or found["detail"] == detail)
               for name, _, detail in (one.partition(":") for one in label.split("|")))


def named(launch):
    found = launch["verdict"] or {"id": "unknown", "detail": ""}
    stall = launch["stalls"][0]["reason"] if launch["stalls"] else "none"
    return "%s%s, %s" % (found["id"], ":" + found["detail"] if found["detail"] else "", stall)


def check_unseen(b):
    """Kernels whose limiter was written down before they were measured."""
    program = compile_cuda(b, "unseen_kernels")
    labels = [line.split(None, 1) for line in b.run([program, "--list"]).split("\n") if line.strip()]
    measure(b, "unseen", ["--set", "full", "-s", str(len(labels))], [program, "all", "2"], limit=120)
    keep(b, "unseen")
    launches = shown(b, "unseen")
    right = 0
    for (name, label), launch in zip(labels, launches):
        good = launch["kernel"].startswith(name + "(") and fits(launch, label)
        right += good
        yield ("unseen: " + name, label, named(launch), verdict(good))
    measure(b, "unseen_basic", ["-s", str(len(labels))], [program, "all", "2"], limit=90)
    keep(b, "unseen_basic")
    also = [named(launch) for (_, label), launch in zip(labels, shown(b, "unseen_basic")) if not fits(launch, label)]
    yield ("unseen: basic set", "all but a few", "%d of %d; not %s" % (len(labels) - len(also), len(labels), "; ".join(also)),
           verdict(len(also) <= len(labels) // 10))
    yield ("unseen: all", "%d of %d" % (len(labels), len(labels)), "%d of %d" % (right, len(launches)),
           verdict(right == len(labels) == len(launches)))


def check_operators(b):
    """What torch's kernels are said to be; a person reads whether that makes sense."""
    gpu.need_torch(b)
    program = [sys.executable, os.path.join(gpu.HERE, "unseen_torch.py")]
    b.run(program, limit=60)  # kernels that are compiled on first use are then there
    said = measure(b, "operators", ["--set", "full", "--nvtx-include", "regex:^op:"], program, limit=150)
    keep(b, "operators")
    for line in said.split("\n"):
        if line.startswith("FAILED"):
            yield ("operators: failed", "", line[:100], "BAD")
    for launch in shown(b, "operators"):
        yield ("operators: " + (launch["range"] or "none"), launch["kernel"][:32], named(launch), "")


def check_refused(b):
    """Without the right to read counters: why, how to allow it, and the launches all the same."""
    program = compile_cuda(b, "kernels")
    os.chmod(b.dir, 0o777)
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    text = b.run([*drop, b.lull, "kernel", "-f", "true", "--discard-environment", "-o", b.path("refused"), "-s", "1",
                  "-c", "2", program, "lone_warp", "4"], limit=30, expect=None)
    if b.options.keep:
        with open(os.path.join(b.options.keep, "refused.txt"), "w", encoding="utf-8") as out:
            out.write(text)
    keep(b, "refused")
    rows = b.table("refused", "profiled")
    status = [r["status"] for r in rows]
    if status and not any(status):
        raise Skipped("every user may read counters here")
    launches = shown(b, "refused")
    yield ("refused: as another user", "status 1, time, occupancy, how to allow it",
           "status %s, %d ns, %s" % (status, rows[0]["dur_ns"], launches[0].get("limited_by")),
           verdict(status == [1, 1] and all(r["dur_ns"] > 0 for r in rows) and "limited_by" in launches[0] and
                   "NVreg_RestrictProfilingToAdminUsers" in text))


def check_range(b):
    """A range as one piece of work: its kernels meet, none is run twice, the program runs once for each pass."""
    probe = compile_cuda(b, "kernel_probe")
    options = ["--replay", "range", "--timeout", "15", "-s", "1", "-c", "1"]
    said = measure(b, "one_pass", [*options, "--metrics", "warps_launched"], [probe, "meet"])
    want, got, row = gpu.numbers(said), counters(b, "one_pass")[0], b.table("one_pass", "profiled")[0]
    # 3 launches of 1056 blocks of 8 warps, and two of one.
    yield ("range: warps, one pass", "25346, 5 launches, 8 met, 1 run", "%d, %d launches, %d met, %d run" % (
        got["warps_launched"], row["n_launches"], want["met"], said.count("RESULT")),
           verdict(got["warps_launched"] == 25346 and row["n_launches"] == 5 and want["met"] == 8 and
                   said.count("RESULT") == 1))
    said = measure(b, "span", [*options, "--set", "basic"], [probe, "meet"], limit=100)
    keep(b, "span")
    row, launch = b.table("span", "profiled")[0], shown(b, "span")[0]
    n_runs, n_met = said.count("RESULT"), said.count("met=8")
    yield ("range: basic set", "5 launches and 8 met in each run", "%d, %d passes, %d runs, %d met, %s, %d ns" % (
        row["n_launches"], row["n_passes"], n_runs, n_met, named(launch), row["dur_ns"]),
           verdict(row["n_launches"] == row["n_launches_least"] == 5 and n_met == n_runs == row["n_passes"]))
    said = measure(b, "operations", [*options, "--metrics", "op_ffma"], [probe, "meet"])
    got = counters(b, "operations")[0]
    yield ("range: operations, one kernel at a time", "%.0f" % want["flops"], "%.0f, %s" % (
        2 * got["op_ffma"], "said" if "do not overlap" in said else "not said"),
           verdict(2 * got["op_ffma"] == want["flops"] and "do not overlap" in said))
    said = measure(b, "varies", [*options, "--section", "speed"], [probe, "meet", b.path("turn")], limit=60)
    row = b.table("varies", "profiled")[0]
    yield ("range: runs that differ", "6 in one run and 5 in another", "%d and %d, %s" % (
        row["n_launches"], row["n_launches_least"], "said" if "of different work" in " ".join(said.split()) else "not said"),
           verdict((row["n_launches"], row["n_launches_least"]) == (6, 5) and
                   "of different work" in " ".join(said.split())))
    gpu.need_torch(b)
    code = ("import torch; a=torch.randn(2048,2048,device='cuda'); n=torch.cuda.nvtx\n"
            "for i in range(6):\n n.range_push('step'); b=a@a; c=torch.relu(b)+1; n.range_pop()\n"
            "torch.cuda.synchronize()")
    measure(b, "step", ["--replay", "range", "--nvtx-include", "step", "-s", "3", "-c", "1", "--metrics", "op_ffma"],
            [sys.executable, "-c", code])
    row, got = b.table("step", "profiled")[0], counters(b, "step")[0]
    yield ("range: torch, a step", "3 launches, %.0f +- 1 %%" % (2 * 2048.0 ** 3),
           "%d, %.0f" % (row["n_launches"], 2 * got["op_ffma"]),
           verdict(row["n_launches"] == 3 and abs(got["op_ffma"] / 2048.0 ** 3 - 1) < 0.01))


def check_choice(b):
    """Names, ranges, and the kernels that a timeline shows to matter."""
    gpu.need_torch(b)
    code = ("import torch; a=torch.randn(2048,2048,device='cuda'); n=torch.cuda.nvtx\n"
            "for i in range(6):\n n.range_push('step'); b=a@a; n.range_pop(); n.range_push('other'); c=torch.relu(b)+1; n.range_pop()\n"
            "torch.cuda.synchronize()")
    argv = [sys.executable, "-c", code]
    measure(b, "range", ["--metrics", "duration", "--nvtx-include", "step/"], argv)
    labels = {r["id"]: r["name"] for r in b.table("range", "label")}
    ranges = {labels.get(r["range"], "none") for r in b.table("range", "profiled")}
    yield ("choice: --nvtx-include step", "step alone", ", ".join(sorted(ranges)), verdict(ranges == {"step"}))
    b.record("timeline", ["-t", "cuda", "-s", "none", "--cpuctxsw", "none"], argv)
    measure(b, "from", ["--metrics", "duration", "--from", b.path("timeline.lull"), "--top", "2"], argv)
    rows = b.table("from", "profiled")
    yield ("choice: --from --top 2", "2 launches, not the first", "%d, ordinals %s" % (
        len(rows), [r["ordinal"] for r in rows]), verdict(len(rows) == 2 and all(r["ordinal"] > 1 for r in rows)))


ITEMS = [
    ("physics", 25, check_physics),
    ("verdicts", 5, check_verdicts),
    ("safety", 20, check_safety),
    ("hang", 12, check_hang),
    ("product", 15, check_product),
    ("occupancy", 10, check_occupancy),
    ("source", 8, check_source),
    ("replay", 20, check_replay),
    ("cost", 10, check_cost),
    ("choice", 25, check_choice),
    ("range", 40, check_range),
    ("unseen", 40, check_unseen),
    ("refused", 5, check_refused),
    ("operators", 40, check_operators),
]

if __name__ == "__main__":
    extra = (["--keep"], {"default": "", "metavar": "FOLDER", "help": "copy reports there"})
    sys.exit(1 if gpu.main(gpu.parse(__doc__.split("\n")[0], [extra]), ITEMS) else 0)
