#!/usr/bin/env python3
"""The hooks of PyTorch on a real GPU: phases, causes, operators, cost, and that nothing changes.

    test/gpu/torch_hooks.py --lull build/lull --planted planted.py [--only planted,ops,...] [--out FOLDER]

planted.py are training loops with a bottleneck each; every NVTX call is taken out of them first. Exit status 1:
something did not hold.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

SELF = os.path.abspath(__file__)

# ---- the programs that are recorded ----


def load_planted(path):
    """planted.py without a single call of NVTX."""
    import types
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"torch\.cuda\.nvtx\.range_(push|pop)\([^)]*\)", "pass", text)
    assert "nvtx" not in text.split('"""', 2)[2]
    module = types.ModuleType("planted")
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def guest_planted(path, cases):
    """One recording of 15 steps for each case."""
    import torch
    planted = load_planted(path)
    for name in cases.split(","):
        torch.manual_seed(0)
        n = 15
        step = planted.CASES[name][0](False, n + 8)
        for i in range(8):
            step(i)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        for i in range(n):
            step(8 + i)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        time.sleep(0.5)  # the recorder closes its report
        print("case=%s" % name, flush=True)


def seeded_step():
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[m for _ in range(4) for m in (
        torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))]).cuda()
    opt = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = torch.randn(512, 256, device="cuda"), torch.randn(512, 256, device="cuda")

    def step():
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        torch.cat([x, y]).sum()
        return loss
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    return step, model


def guest_profiler(out):
    """A step as torch.profiler sees it."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    step, _ = seeded_step()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as prof:
        step()
        torch.cuda.synchronize()
    rows = [{"name": e.key, "shapes": e.input_shapes, "calls": e.count,
             "cuda_us": getattr(e, "self_device_time_total", 0)}
            for e in prof.key_averages(group_by_input_shape=True)
            if e.device_type == torch.autograd.DeviceType.CPU]
    with open(out, "w", encoding="utf-8") as f:
        json.dump(rows, f)


def guest_ops(path):
    """The same step for lull, and beside it what must not break: torch.profiler, a CUDA graph."""
    import torch
    step, _ = seeded_step()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.profiler.start()
    step()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    print("peak=%d" % torch.cuda.max_memory_allocated())
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as prof:
        step()
        torch.cuda.synchronize()
    print("profiled=%d" % sum(e.count for e in prof.key_averages()))
    replay = load_planted(path).CASES["launch_bound"][0](True, 5)
    for i in range(5):
        replay(i)
    torch.cuda.synchronize()
    print("graph=ok")


def timed(step, n):
    import torch
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(n):
        step(i)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3 / n


def middle(ratios):
    """The median, and how far it may be off: twice its standard error."""
    mid = statistics.median(ratios)
    mad = statistics.median(abs(r - mid) for r in ratios)
    return mid, 2 * 1.2533 * 1.4826 * mad / len(ratios) ** 0.5


def guest_cost_hooks(path, pairs):
    """Steps with and without hooks, by turns, in one recording; and the same with hooks never on, which is the noise.

    The machine drifts within tenths of a second, so steps are compared with their neighbours: off, on, on, off, each
    behind one that is not timed, because changing a class empties Python's caches.
    """
    hooks = sys.modules["_lull_hooks"]
    step = load_planted(path).CASES["launch_bound"][0](False, 20000)
    for i in range(30):
        step(i)

    def one(is_on):
        hooks.switch(is_on)
        step(0)
        return timed(step, 1)
    ratios = {True: [], False: []}
    for _ in range(int(pairs)):
        for is_on in (True, False):
            a, b, c, d = one(False), one(is_on), one(is_on), one(False)
            ratios[is_on].append((b + c) / (a + d))
    # The median of nine parts, as asked for, and of all.
    parts = [statistics.median(ratios[True][i::9]) for i in range(9)]
    print("pairs=%s ratio=%.5f within=%.5f nine=%.5f none=%.5f none_within=%.5f" % (
        pairs, *middle(ratios[True]), statistics.median(parts), *middle(ratios[False])))


def guest_cost_rounds(path, rounds):
    """Steps inside and outside of the recorded rounds of --steps."""
    import lull
    step = load_planted(path).CASES["launch_bound"][0](False, 1000)
    for i in range(10):
        step(i)
    on, off = [], []
    for _ in range(int(rounds)):
        times = []
        for i in range(34):
            lull.step()
            was = lull.is_recording()
            times.append((was, timed(step, 1)))
        on.append(statistics.median(t for was, t in times if was))
        off.append(statistics.median(t for was, t in times[4:14] if not was))
    print("on=%.4f off=%.4f added=%.4f" % (statistics.median(on), statistics.median(off),
                                           statistics.median(a - b for a, b in zip(on, off))))


def guest_cost_profiler(path, rounds):
    """What torch.profiler adds for the same: operators with shapes, kernels."""
    from torch.profiler import ProfilerActivity, profile
    step = load_planted(path).CASES["launch_bound"][0](False, 1000)
    for i in range(10):
        step(i)
    on, off = [], []
    for _ in range(int(rounds)):
        off.append(statistics.median(timed(step, 1) for _ in range(10)))
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True):
            timed(step, 2)
            on.append(statistics.median(timed(step, 1) for _ in range(15)))
    print("on=%.4f off=%.4f added=%.4f" % (statistics.median(on), statistics.median(off),
                                           statistics.median(a - b for a, b in zip(on, off))))


def guest_compile():
    """Graph breaks, graphs and results of compiled and eager steps."""
    import hashlib

    import torch
    torch.use_deterministic_algorithms(True, warn_only=True)
    step, model = seeded_step()

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)

        def forward(self, x):
            x = self.a(x).relu()
            torch._dynamo.graph_break()
            return self.b(x)
    torch.manual_seed(1)
    block = Block().cuda()
    opt = torch.optim.SGD(block.parameters(), lr=0.1)
    fast = torch.compile(block)
    x = torch.randn(64, 256, device="cuda")
    for _ in range(4):
        fast(x).square().mean().backward()
        opt.step()
        opt.zero_grad()
        step()
    from torch._dynamo.utils import counters
    digest = hashlib.sha256()
    for p in [*model.parameters(), *block.parameters()]:
        digest.update(p.detach().cpu().numpy().tobytes())
    print("breaks=%d graphs=%d digest=%s" % (sum(counters["graph_break"].values()),
                                             counters["stats"]["unique_graphs"], digest.hexdigest()[:16]))


def small_net():
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
                              torch.nn.Conv2d(32, 64, 3, padding=2, dilation=2, groups=2), torch.nn.ReLU(),
                              torch.nn.Conv2d(64, 16, 1), torch.nn.Flatten(), torch.nn.Linear(16 * 32 * 32, 10)).cuda()
    opt = torch.optim.AdamW(net.parameters())
    x = torch.randn(64, 3, 64, 64, device="cuda")

    def step(kept):
        out = net(x)
        loss = out.square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        kept.append(torch.empty(1 << 20, device="cuda"))
    return step


def guest_memory():
    """Convolutions, and a list that grows by 4 MiB a step."""
    import torch
    step, kept = small_net(), []
    for _ in range(6):
        step(kept)
    torch.cuda.synchronize()
    print("peak=%d allocated=%d" % (torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()))


def guest_flops():
    import torch
    from torch.profiler import ProfilerActivity, profile
    step = small_net()
    step([])
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        for _ in range(6):
            step([])
    for e in prof.key_averages():
        if e.key in ("aten::conv2d", "aten::addmm"):
            print("%s=%d" % (e.key.replace("aten::", ""), e.flops))


def guest_rank(steps):
    """A rank of two on one GPU; NCCL takes them for two hosts."""
    rank = os.environ["LOCAL_RANK"]
    os.environ.update(NCCL_HOSTID="host" + rank, NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)]).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(int(steps) * 64, 512))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=64):
        loss = model(x.cuda()).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
    print("rank=%s loss=%.6f" % (rank, loss.item()), flush=True)
    dist.destroy_process_group()


# ---- the checks ----


class Bench:
    def __init__(self, options):
        self.o = options
        self.out = os.path.abspath(options.out)
        os.makedirs(self.out, exist_ok=True)
        self.n_failed = 0
        self.stderr = ""

    def guest(self, name, *args, lull=None, limit=60, env=None, python=None):
        argv = [*(python or [sys.executable]), SELF, "--guest", name, *args]
        if lull is not None:
            argv = [os.path.abspath(self.o.lull), "profile", "-q", "-f", "true", "--discard-environment=true", *lull, *argv]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, check=False,
                                  cwd=self.out, env={**os.environ, **(env or {})})
        except subprocess.TimeoutExpired:
            return "timeout"
        if done.returncode:
            return "status %d: %s" % (done.returncode, (done.stdout + done.stderr).strip()[-300:])
        self.stderr = done.stderr
        return done.stdout

    def lull(self, *args):
        done = subprocess.run([os.path.abspath(self.o.lull), *args], capture_output=True, text=True, timeout=30,
                              check=False, cwd=self.out)
        return done.stdout if done.returncode in (0, 3) else done.stderr

    def note(self, what, expected, measured, is_good):
        self.n_failed += not is_good
        print("%-30s %-28s %-44s %s" % (what, expected, str(measured)[:120], "ok" if is_good else "FAILED"),
              flush=True)


def numbers(text):
    return dict(re.findall(r"(\w+)=(\S+)", text))


def check_planted(b):
    cases = ["dataloader_cpu", "pageable_copy", "sync_item", "launch_bound", "alloc_churn", "exposed_copy",
             "optimizer_loop", "compute_bound", "unfused", "d2h_logging", "gil_thread"]
    with open(b.o.planted, encoding="utf-8") as f:
        wanted = {name: label for label, name in re.findall(r'@case\("([\w-]+)"[^\n]*\ndef (\w+)', f.read())}
    out = b.guest("planted", os.path.abspath(b.o.planted), ",".join(cases), limit=70, lull=[
        "-c", "cudaProfilerApi", "--capture-range-end=repeat", "-o", "planted-%n"])
    if "case=" not in out:
        b.note("planted", "a recording for each", out, False)
        return
    for i, name in enumerate(cases, 1):
        report = "planted-%d.lull" % i
        text = b.lull("why", "--format", "json", report)
        why = json.loads(text) if text.startswith("{") else {"first": text.strip()[:60]}
        said = str(why.get("first") or why.get("cannot_tell"))
        source = why.get("steps", {}).get("source")
        ranges = b.lull("query", "--format", "csv", report,
                        "select distinct l.name from range r join label l on l.id = r.label where l.api = 6")
        phases = {p for p in ("data_load", "forward", "backward", "optimizer") if p in ranges}
        steps = b.lull("query", "--format", "csv", report, "select count(*) from step").split()[-1:]
        expected = {"forward", "backward", "optimizer"} if name != "unfused" else set()
        if name == "dataloader_cpu":
            expected.add("data_load")
        b.note("planted " + name, wanted[name], "%s; %s; %s steps, by %s" % (said, " ".join(sorted(phases)), "".join(steps),
                                                                          source),
               said == wanted[name] and phases >= expected)


def check_ops(b):
    truth = os.path.join(b.out, "profiler.json")
    out = b.guest("profiler", truth, limit=40)
    said = b.guest("ops", os.path.abspath(b.o.planted), limit=40, lull=[
        "--pytorch=ops", "-c", "cudaProfilerApi", "--capture-range-end=stop", "-s", "none", "--cpuctxsw", "none",
        "-o", "ops"])
    b.note("ops: profiler and graph live", "both", said.strip().replace("\n", " "),
           "profiled=" in said and "graph=ok" in said)
    peak = b.lull("query", "--format", "csv", "ops.lull", "select max(allocated_bytes) from alloc").split()[-1:]
    b.note("ops: peak of the allocator", numbers(said).get("peak"), "".join(peak), [numbers(said).get("peak")] == peak)
    if not os.path.exists(truth):
        b.note("ops: torch.profiler", "its counts", out, False)
        return
    with open(truth, encoding="utf-8") as f:
        rows = json.load(f)
    theirs, theirs_us = {}, {}
    for r in rows:
        theirs[r["name"]] = theirs.get(r["name"], 0) + r["calls"]
        theirs_us[r["name"]] = theirs_us.get(r["name"], 0) + r["cuda_us"]
    table = json.loads(b.lull("stats", "-q", "--format", "json", "-r", "ops", "ops.lull") or "[]")
    table = table[0]["rows"] if table and "rows" in table[0] else table
    ours, ours_us = {}, {}
    for r in table:
        name = r.get("Name")
        ours[name] = ours.get(name, 0) + int(r.get("# of Calls", 0))
        ours_us[name] = ours_us.get(name, 0) + float(r.get("Self CUDA (ns)", r.get("Self CUDA", 0)) or 0) / 1e3
    differ = {n: (ours.get(n, 0), theirs.get(n, 0)) for n in sorted({*ours, *theirs}, key=str)
              if str(n).startswith(("aten::", "autograd::")) or str(n).endswith("Backward0")
              if ours.get(n, 0) != theirs.get(n, 0)}
    b.note("ops: counts", "%d operators" % len(theirs), "%d differ %s" % (len(differ), differ), not differ and theirs)
    # The table also has a row for each kernel, the profiler's one for its own buffers: operators only.
    both = [name for name in theirs if name in ours]
    a, c = sum(ours_us[name] for name in both), sum(theirs_us[name] for name in both)
    b.note("ops: CUDA total", "%.1f us +- 2 %%" % c, "%.1f us" % a, c and abs(a - c) <= 0.02 * c)
    with open(os.path.join(b.out, "ops-ours.json"), "w", encoding="utf-8") as f:
        json.dump({"calls": ours, "us": ours_us, "raw": table[:3], "theirs": theirs}, f)


def check_hooks_cost(b):
    out = b.guest("cost_hooks", os.path.abspath(b.o.planted), "63", limit=60, lull=["-o", "cost", "-s", "none",
                                                                                 "--cpuctxsw", "none"])
    n = numbers(out)
    b.note("cost: steps", "<= 1.005", out.strip(), float(n.get("ratio", 9)) <= 1.005)


def check_ops_cost(b):
    theirs = numbers(b.guest("cost_profiler", os.path.abspath(b.o.planted), "7", limit=40))
    out = b.guest("cost_rounds", os.path.abspath(b.o.planted), "7", limit=40, lull=[
        "--pytorch=ops", "-s", "none", "--cpuctxsw", "none", "-o", "rounds-%n",
        "--steps", "wait=17,warmup=2,active=15,repeat=7"])
    ours = numbers(out)
    half = float(theirs.get("added", 0)) / 2
    b.note("cost: ops", "<= half of %s ms" % theirs.get("added"), "%s, profiler %s" % (out.strip(), theirs),
           float(ours.get("added", 99)) <= half)


def check_compile(b):
    """Without hooks, with hooks, and with hooks where the second has left its results in the cache."""
    def run(cache, **more):
        out = b.guest("compile", limit=60, env={"TORCHINDUCTOR_CACHE_DIR": os.path.join(b.out, cache),
                                                "TORCH_LOGS": "graph_breaks"}, **more)
        return out.strip() + " logged=%d" % b.stderr.count("Graph break")
    plain = run("cache-a")
    for cache, report in (("cache-b", "compile"), ("cache-b", "compile-again")):
        ours = run(cache, lull=["-o", report, "-s", "none", "--cpuctxsw", "none"])
        b.note("compile: the same", plain, ours, "digest" in plain and plain == ours)
        ranges = b.lull("query", "--format", "csv", report + ".lull",
                        "select l.name, count(*), sum(r.dur_ns) / 1000000 from range r join label l on l.id = r.label "
                        "where l.api = 6 and l.name not like 'gc%' group by 1")
        wanted = ("forward", "compile,", "compile.backend", "compile.cache",
                  *(("compile.inductor", "compile.kernels") if report == "compile" else ()))
        b.note(report + ": phases", " ".join(wanted), ranges.replace("\n", " "), all(w in ranges for w in wanted))
        with open(os.path.join(b.out, report + ".txt"), "w", encoding="utf-8") as f:
            f.write(ranges)


def table(b, report, file):
    rows = json.loads(b.lull("stats", "-q", "--format", "json", "-r", report, file) or "[]")
    return rows[0]["rows"] if rows and "rows" in rows[0] else rows


def number(row, name):
    return float(next((v for k, v in row.items() if k.split(" (")[0] == name), 0) or 0)


def check_memory(b):
    """Allocations by operator and line, what grows, and FLOPs of convolutions."""
    said = b.guest("memory", lull=["--pytorch=ops", "-s", "none", "--cpuctxsw", "none", "-o", "memory"], limit=40)
    rows = table(b, "alloc_sum", "memory.lull")
    all_bytes = sum(number(r, "Allocated") for r in rows)
    with_line = sum(number(r, "Allocated") for r in rows if "torch_hooks.py:" in str(r.get("Line")))
    b.note("memory: with a line", ">= 95 %", "%.1f %% of %d bytes" % (100 * with_line / max(1, all_bytes), all_bytes),
           with_line >= 0.95 * all_bytes > 0)
    peak = b.lull("query", "--format", "csv", "memory.lull", "select max(allocated_bytes) from alloc").split()[-1:]
    b.note("memory: peak", numbers(said).get("peak"), "".join(peak), [numbers(said).get("peak")] == peak)
    grown = table(b, "alloc_leaks", "memory.lull")
    first = str(grown[:1])
    b.note("memory: what grows", "kept.append", first, "torch_hooks.py:" in first and "step" in first)
    theirs = numbers(b.guest("flops", limit=40))
    ours = {r["Name"].replace("aten::", ""): number(r, "FLOPs") for r in table(b, "ops", "memory.lull")
            if str(r.get("Name")) in ("aten::conv2d", "aten::addmm")}
    b.note("memory: FLOPs", str(theirs), str(ours), ours and all(ours.get(k) == float(v) for k, v in theirs.items()))
    for name in ("alloc_sum", "alloc_peak", "alloc_growth", "alloc_leaks", "alloc_backward", "memory", "ops"):
        with open(os.path.join(b.out, "memory.txt"), "a", encoding="utf-8") as f:
            f.write("== %s\n%s" % (name, b.lull("stats", "-q", "-r", name, "memory.lull")[:6000]))


def check_torchrun(b):
    """lull around torchrun: both ranks have the steps of each round."""
    out = b.guest("rank", "24", limit=60, python=["torchrun", "--nproc_per_node=2", "--master_port=29633"], lull=[
        "-o", "run-%n", "--steps", "skip=5,wait=1,warmup=1,active=3,repeat=2"])
    b.note("torchrun: it ran", "two ranks", out.strip().replace("\n", " "), out.count("rank=") == 2)
    for i, steps in ((1, "7 8 9"), (2, "12 13 14")):
        rows = json.loads(b.lull("query", "--format", "json", "run-%d.lull" % i,
                                 "select p.rank, s.number, (select count(*) from range r join label l on l.id = r.label "
                                 "where r.lane = s.lane and l.name = 'backward' and r.start_ns between s.start_ns and "
                                 "s.start_ns + s.dur_ns) n from step s join lane l on l.id = s.lane join process p "
                                 "on p.id = l.process order by 1, 2"))
        found = {rank: " ".join(str(r["number"]) for r in rows if r["rank"] == rank) for rank in (0, 1)}
        b.note("torchrun: round %d" % i, steps, "%s backward %s" % (found, sorted({r["n"] for r in rows})),
               found == {0: steps, 1: steps} and {r["n"] for r in rows} == {1})


CHECKS = {"planted": check_planted, "ops": check_ops, "hooks_cost": check_hooks_cost, "ops_cost": check_ops_cost,
          "compile": check_compile, "torchrun": check_torchrun, "memory": check_memory}


def main():
    if sys.argv[1:2] == ["--guest"]:
        globals()["guest_" + sys.argv[2]](*sys.argv[3:])
        return 0
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--lull", default="build/lull")
    ap.add_argument("--planted", required=True)
    ap.add_argument("--only", default=",".join(CHECKS))
    ap.add_argument("--out", default="torch-out")
    b = Bench(ap.parse_args())
    for name in b.o.only.split(","):
        begin = time.monotonic()
        try:
            CHECKS[name](b)
        except Exception as e:
            b.note(name, "", "%s: %s" % (type(e).__name__, e), False)
        print("  %s: %.1f s" % (name, time.monotonic() - begin), flush=True)
    return 1 if b.n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
