#!/usr/bin/env python3
"""Verdicts of `lull gate` on traces whose answer is known, in every format that CI reads.

Usage: test_gate.py BUILD [NAME...]
"""
import json
import os
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def trace(name, n=40, step_us=10000, noise=0.02, kernels=5, kernel_us=600, memory=1 << 20, exe="train",
          device="H200", lost=0, seed=1, calls=True, cmdline="", before="", watts=0):
    """A report of n steps, each with a data_load range and some kernels."""
    rng = random.Random(seed)
    # A line `before` is a program that started this one, in another process or, with pid=10, in this one.
    who = 2 if before else 1
    lines = [*filter(None, [before]), f'process pid=10 name=train exe=/usr/bin/{exe} cmdline="{cmdline}" '
             f"image={int('pid=10' in before)}", f"lane process={who} tid=10 name=main kind=1",
             f"device process={who} device_id=0 name={device}",
             f"lane process={who} kind=2 device=1 stream_id=7 context_id=1", "launch name=gemm", "label name=data_load",
             "metric name=power unit=W source=nvml"]
    if lost:
        lines.append(f"issue issue=1 name=buffer_full severity=2 count={lost}")
    at = 1000.0
    for i in range(n):
        long = step_us * (1 + noise * rng.gauss(0, 1))
        lines.append(f"step start={at * 1000:.0f}ns dur={long * 1000:.0f}ns lane=1 number={i}")
        lines.append(f"range start={at * 1000:.0f}ns dur={long * 300:.0f}ns depth=0 lane=1 label=1")
        lines.append(f"cuda_memory start={at * 1000 + 10:.0f}ns device=1 operation=1 memory_kind=3 address=4096 "
                     f"size_bytes={memory} process={who}")
        if watts:
            lines.append(f"counter start={at * 1000:.0f}ns metric=1 device=1 value={watts}")
        for k in range(kernels):
            begin = at + long * 0.4 + k * kernel_us
            number = i * kernels + k + 1 if calls else 0
            lines.append(f"kernel start={begin * 1000:.0f}ns dur={kernel_us * 1000:.0f}ns lane=2 launch=1 process={who} "
                         f"correlation={number}")
            if calls:
                lines.append(f"cuda_call start={(at + long * 0.3 + k * 10) * 1000:.0f}ns dur=5000ns lane=1 "
                             f"name=cudaLaunchKernel correlation={number} api=2")
        lines.append(f"cuda_memory start={(at + long) * 1000 - 10:.0f}ns device=1 operation=2 memory_kind=3 "
                     f"address=4096 size_bytes={memory} process={who}")
        at += long
    with open(name + ".txt", "w") as f:
        f.write("\n".join(lines) + "\n")
    runner.run([LULL, "text", name + ".txt", name + ".lull"], check=True)
    return name + ".lull"


def gate(*words):
    done = runner.run([LULL, "gate", *words])
    return done.returncode, done.stdout, done.stderr


def verdicts(*words):
    status, out, err = gate("--format", "json", *words)
    answer = json.loads(out) if out else {}
    return status, answer.get("verdict"), {c["metric"]: c["verdict"] for c in answer.get("checks", [])}, answer, err


def expect(what, got, wanted):
    runner.expect(what, got == wanted, f"got {got!r}, expected {wanted!r}")


ALL = "step_time,idle_share,launches,peak_memory,kernel:gemm,range:data_load"


def the_same_passes():
    a, b = trace("a", seed=1), trace("b", seed=2)
    status, whole, each, _, _ = verdicts("-b", a, "-m", ALL, b)
    expect("status", status, 0)
    expect("verdict", whole, "pass")
    expect("metrics", set(each.values()), {"pass"})


def each_metric_finds_what_it_watches():
    base = trace("base")
    for change, metric in (({"step_us": 10700}, "step_time"), ({"kernels": 6}, "launches"),
                           ({"memory": 1200000}, "peak_memory"), ({"kernel_us": 700}, "kernel:gemm"),
                           ({"step_us": 11000}, "range:data_load"), ({"kernel_us": 400}, "idle_share")):
        new = trace("new", seed=3, **change)
        status, _, each, _, _ = verdicts("-b", base, "-m", metric, new)
        expect(f"{metric} after {change}", (status, each[metric]), (1, "regressed"))
        # Getting better is no regression.
        status, _, each, _, _ = verdicts("-b", new, "-m", metric, base)
        expect(f"{metric} back", (status, each[metric]), (0, "pass"))


def steps_are_compared_without_calls_too():
    base, slower = trace("base", calls=False), trace("new", calls=False, step_us=10700, seed=3)
    expect("same", verdicts("-b", base, "-m", ALL, base)[:2], (0, "pass"))
    status, _, each, _, _ = verdicts("-b", base, "-m", "step_time", slower)
    expect("slower", (status, each["step_time"]), (1, "regressed"))


def noise_is_inconclusive_and_says_how_many():
    a, b = trace("a", n=12, noise=0.25, seed=4), trace("b", n=12, noise=0.25, seed=9)
    status, whole, _, answer, _ = verdicts("-b", a, "-m", "step_time", b)
    expect("noisy", (status, whole), (2, "inconclusive"))
    n = answer["checks"][0]["n_needed"]
    runner.expect("needed", 100 < n < 5000, n)


def what_proves_nothing_never_passes():
    base, empty, few = trace("base"), trace("empty", n=0), trace("few", n=3)
    for new, part in ((empty, "no steps"), (trace("other", exe="serve"), "any-program"),
                      (trace("device", device="A100"), "any-device"), (trace("lost", lost=17), "lost 17 events")):
        status, whole, each, answer, _ = verdicts("-b", base, new)
        expect(new, (status, whole, each), (2, "not comparable", {}))
        runner.expect(new, part in answer["why"], answer["why"])
    expect("few", verdicts("-b", base, few)[:2], (2, "inconclusive"))
    expect("allowed", verdicts("-b", base, "--any-program", "other.lull")[:2], (0, "pass"))
    expect("allowed losses", verdicts("-b", base, "--allow-losses", "lost.lull")[:2], (0, "pass"))
    expect("kernel", verdicts("-b", base, "-m", "kernel:nope", base)[:2], (2, "not comparable"))
    with open(base, "rb") as whole, open("cut.lull", "wb") as cut:
        cut.write(whole.read()[:-600])
    expect("cut off", verdicts("-b", base, "cut.lull")[:2], (2, "not comparable"))
    for words in (["-b", base, "nowhere.lull"], ["-b", "nowhere", base], ["-b", base, "-m", "speed", base],
                  [base], ["-b", base], ["-b", base, "--threshold", "0", base], ["-b", base, "base.txt"]):
        status, out, err = gate(*words)
        expect(str(words), (status, out, err.count("\n")), (2, "", 1))


def a_store_keeps_baselines():
    runs = [trace(f"r{i}", seed=10 + i) for i in range(5)]
    expect("save", gate("--store", "kept", "--save", "main", *runs)[0], 0)
    expect("files", sorted(os.listdir("kept/main")), [f"{i}.lull" for i in range(1, 6)])
    slower = [trace(f"s{i}", seed=20 + i, step_us=10600) for i in range(5)]
    status, whole, _, answer, _ = verdicts("--store", "kept", "-b", "main", "-m", "step_time", *slower)
    expect("by name", (status, whole), (1, "regressed"))
    expect("compared", answer["checks"][0]["compared"], "runs")
    # Saved again, the old reports are gone.
    expect("save again", gate("--store", "kept", "--save", "main", slower[0])[0], 0)
    expect("files", os.listdir("kept/main"), ["1.lull"])
    expect("bad name", gate("--store", "kept", "--save", "../x", runs[0])[0], 2)
    # What is no report leaves the old baseline as it was.
    expect("no report", gate("--store", "kept", "--save", "main", "r0.txt")[0], 2)
    expect("files", os.listdir("kept"), ["main"])


def ci_systems_can_read_it():
    base, new = trace("base"), trace("new", step_us=11000, seed=3)
    status, out, _ = gate("-b", base, "-m", "step_time,launches,kernel:<b>&", new, "--junit", "j.xml", "--sarif",
                          "s.json", "--markdown", "m.md", "--github")
    expect("status", status, 1)
    suite = ElementTree.parse("j.xml").getroot()
    expect("junit", (suite.get("tests"), suite.get("failures"), suite.get("errors")), ("3", "1", "1"))
    expect("junit name", suite.find(".//testcase[3]").get("name"), "kernel:<b>&")
    sarif = json.load(open("s.json"))
    results = sarif["runs"][0]["results"]
    expect("sarif", [(r["ruleId"], r["level"]) for r in results], [("step_time", "error"), ("kernel", "warning")])
    rules = {r["id"] for r in sarif["runs"][0]["tool"]["driver"]["rules"]}
    expect("rules", all(r["ruleId"] in rules for r in results), True)
    text = open("m.md").read()
    expect("markdown rows", text.count("\n| "), 1 + 3)
    runner.expect("markdown", "**regressed**" in text and "\\<b>" in text, text)
    expect("github", [line.split(" ")[0] for line in out.splitlines() if line.startswith("::")],
           ["::error", "::notice", "::warning"])
    # A place that cannot be written is said, and is not a pass; nor is it the 1 of a regression.
    for words in (["gate", "-b", base, base], ["gate", "--max", "step<1s", base], ["schema"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([LULL, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        expect(f"{words} to a full disk", done.returncode, 2 if words[0] == "gate" else 1)
        runner.expect("reason", "No space left on device" in done.stderr, done.stderr)
    expect("unwritable", gate("-b", base, base, "--junit", "no/such/folder/j.xml")[0], 2)


def bounds_need_no_baseline():
    new = trace("new", watts=300)
    status, whole, each, answer, _ = verdicts("--max", "step < 20 ms", "--max", "kernel:em<=3ms", "--max",
                                              "kernel:regex:^g.*m$ < 4 ms", "--max", "launches < 6", "--max",
                                              "memory < 2 MiB", "--max", "idle < 90%", "--max", "energy < 9 J", new)
    expect("kept", (status, whole, set(each.values())), (0, "pass", {"pass"}))
    expect("limits", [c["limit"] for c in answer["checks"]], [2e7, 3e6, 4e6, 6, 2 << 20, 0.9, 9])
    # 300 W for about 10 ms.
    [energy] = [c["after"] for c in answer["checks"] if c["metric"].startswith("energy")]
    runner.expect("joules", 2.7 < energy < 3.3, energy)
    for bound in ("step < 9 ms", "kernel:gemm < 3 ms", "launches < 5", "memory < 1 MiB", "idle < 50 %", "energy < 2 J"):
        status, whole, each, _, _ = verdicts("--max", bound, new)
        expect(bound, (status, whole, each), (1, "failed", {bound: "failed"}))
    expect("reached", verdicts("--max", "launches <= 5", new)[:2], (0, "pass"))
    expect("a query", verdicts("--sql", "n=SELECT count(*) FROM kernel", "--max", "n < 201", new)[:2], (0, "pass"))
    expect("a query", verdicts("--sql", "n=SELECT count(*) FROM kernel", "--max", "n < 200", new)[:2], (1, "failed"))
    expect("no kernel", verdicts("--max", "kernel:attn < 5 ms", new)[:2], (2, "not comparable"))
    expect("few steps", verdicts("--max", "step < 20 ms", trace("few", n=3))[:2], (2, "inconclusive"))
    status, out, _ = gate("--max", "step < 9 ms", "--junit", "j.xml", "--sarif", "s.json", "--markdown", "m.md", "--github",
                          new)
    expect("status", status, 1)
    runner.expect("text", out.startswith("new: 1 report, 39 steps\nfailed          step < 9 ms: "), out)
    runner.expect("github", "::error title=lull gate failed::step < 9 ms: " in out, out)
    expect("junit", ElementTree.parse("j.xml").getroot().get("failures"), "1")
    expect("sarif", json.load(open("s.json"))["runs"][0]["results"][0]["level"], "error")
    runner.expect("markdown", "**failed**" in open("m.md").read(), "")


def bad_bounds_are_said_in_a_sentence():
    new = trace("new")
    for words, part in ((["--max", "step"], "--max: 'step': there is no <"),
                        (["--max", "step < 40"], "(character 10); step_time takes ns, us, ms or s"),
                        (["--max", "sped < 40 ms"], "'sped < 40 ms': unknown metric 'sped'"),
                        (["--max", "kernel < 40 ms"], "metric 'kernel' needs a name"),
                        (["--max", "launches < 4 ms"], "'ms' (character 14) is not a unit here"),
                        (["--max", "kernel:regex:( < 4 ms"], "'(' is not a regular expression"),
                        (["--min-speedup", "2"], "--min-speedup compares with a baseline"),
                        (["--warn", "launches"], "--warn METRIC compares with a baseline"),
                        (["-b", new, "--min-speedup", "0.5"], "--min-speedup is how many times as fast"),
                        (["-b", new, "--threshold", "3x"], "such as 3%, not '3x'"),
                        (["-b", new, "--html", "x.html"], "--html draws a history"),
                        (["-b", new, "--commit", "x"], "give --history")):
        status, out, err = gate(*words, new)
        expect(str(words), (status, out, err.count("\n")), (2, "", 1))
        runner.expect(str(words), part in err, err)


def a_speedup_can_be_demanded():
    base, fast = trace("base"), trace("fast", step_us=8000, kernel_us=500, seed=3)
    for factor, status, word in (("1.1", 0, "pass"), ("1.4", 1, "failed")):
        got = verdicts("-b", base, "-m", "step_time", "--min-speedup", factor, fast)
        expect(factor, (got[0], got[2][f"speedup >= {factor}"]), (status, word))
    # In the middle of the noise nobody knows, and it says how many steps would tell.
    factor = f"{1 / (1 + got[3]['checks'][0]['change']):.6g}"
    status, _, each, answer, _ = verdicts("-b", base, "-m", "step_time", "--min-speedup", factor, fast)
    expect(factor, (status, each[f"speedup >= {factor}"]), (2, "inconclusive"))
    runner.expect("needed", answer["checks"][1]["n_needed"] > 40, answer["checks"][1]["n_needed"])
    runner.expect("text", "speedup >= 1.1: 1.2" in gate("-b", base, "--min-speedup", "1.1", fast)[1], "")


def a_faster_step_with_more_launches_is_no_regression():
    base, more = trace("base"), trace("more", step_us=9000, kernels=8, kernel_us=350, seed=3)
    status, whole, each, answer, _ = verdicts("-b", base, more)
    expect("verdict", (status, whole, each["launches"]), (0, "pass", "regressed"))
    expect("weights", {c["metric"]: c["weight"] for c in answer["checks"]},
           {"step_time": "decides", "idle_share": "decides", "launches": "remark"})
    runner.expect("text", "\nremark          launches: 8, was 5" in gate("-b", base, more)[1], gate("-b", base, more)[1])
    # Also where nobody asked for the step time; not for what counts by itself, such as memory.
    expect("alone", verdicts("-b", base, "-m", "launches", more)[:2], (0, "pass"))
    expect("memory", verdicts("-b", base, "-m", "memory", trace("big", step_us=9000, memory=3 << 20, seed=3))[:2],
           (1, "regressed"))
    expect("as slow as before", verdicts("-b", base, trace("same", kernels=8, kernel_us=375, seed=3))[0], 1)


def metrics_may_only_warn():
    base, more = trace("base"), trace("more", kernels=8, kernel_us=375, seed=3)
    expect("decides", verdicts("-b", base, "-m", "step_time,launches", more)[:2], (1, "regressed"))
    status, out, _ = gate("-b", base, "-m", "step_time,launches", "--warn", "launches", "--junit", "j.xml", "--github", more)
    expect("warns", status, 0)
    runner.expect("text", "\nwarning         launches: 8, was 5" in out and "\nverdict: pass\n" in out, out)
    runner.expect("github", "::warning title=lull gate warning::launches" in out, out)
    expect("junit", ElementTree.parse("j.xml").getroot().get("failures"), "0")
    # One that is not watched yet is watched, and so is a bound; what is not there does not matter.
    status, _, each, _, _ = verdicts("-b", base, "-m", "step_time", "--warn", "launches,kernel:nope", "--warn",
                                     "step < 1 ms", more)
    expect("all", (status, each), (0, {"step_time": "pass", "launches": "regressed", "kernel:nope": "not comparable",
                                       "step < 1 ms": "failed"}))


def thresholds_may_have_a_sign():
    base, new = trace("base", noise=0.002), trace("new", noise=0.002, step_us=10250, seed=3)
    for threshold, status in (("3%", 1), ("3 %", 1), ("3", 1), ("8%", 0)):
        expect(threshold, verdicts("-b", base, "-m", "step_time", "--threshold", threshold, new)[0], status)


def a_program_is_its_script_however_it_was_started():
    base = trace("base", exe="python3.11", cmdline="python3.11 train.py --lr 3")
    env = 'process pid=10 name=env exe=/usr/bin/env cmdline="env -u X python3 train.py --lr 3" exit_kind=3'
    shell = 'process pid=9 name=sh exe=/bin/sh cmdline="sh run.sh"'
    fork = 'process pid=7 name=python exe=/usr/bin/python3 cmdline="python3 train.py --lr 3"'
    for name, how in (("env", dict(before=env, exe="python3", cmdline="python3 train.py --lr 3")),
                      ("shim", dict(exe="python3.12", cmdline="/opt/pyenv/shims/python /srv/ci/train.py --lr 3")),
                      ("shell", dict(before=shell, exe="python3", cmdline="python3 -u ./train.py --lr 3"))):
        status, whole, _, answer, _ = verdicts("-b", base, trace(name, seed=3, **how))
        expect(name, (status, whole, answer["note"]), (0, "pass", None))
    # A child of multiprocessing has a command line of its own in every run.
    child = dict(before=fork, exe="python3", cmdline="python3 -c from multiprocessing.spawn --multiprocessing-fork")
    trace("child", seed=3, **child)
    with open("child.txt") as f:
        text = f.read().replace("process pid=10", "process parent_pid=7 pid=10")
    with open("child.txt", "w") as f:
        f.write(text)
    runner.run([LULL, "text", "child.txt", "child.lull"], check=True)
    expect("child", verdicts("-b", base, "child.lull")[:2], (0, "pass"))
    # Another script is another program; other arguments are said.
    status, whole, _, answer, _ = verdicts("-b", base, trace("other", exe="python3", cmdline="python3 serve.py"))
    expect("another", (status, whole), (2, "not comparable"))
    runner.expect("another", "base.lull ran 'train.py', other.lull ran 'serve.py'" in answer["why"], answer["why"])
    status, _, _, answer, _ = verdicts("-b", base, trace("args", seed=3, exe="python3", cmdline="python3 train.py --lr 4"))
    expect("arguments", (status, answer["note"]),
           (0, "the arguments differ: '--lr 3' in the baseline, '--lr 4' now"))


def history(*words):
    done = runner.run([LULL, "gate", "--history", "h", *words])
    return done.returncode, done.stdout, done.stderr


def a_history_is_appended_and_read():
    new = trace("new")
    runner.run(["git", "init", "-q", "."], check=True)
    status, _, err = history(new)
    expect("no commit", (status, "--commit" in err), (2, True))
    who = {**os.environ, **{f"GIT_{p}_{k}": "x" for p in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}}
    runner.run(["git", "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=who)
    head = runner.run(["git", "rev-parse", "HEAD"], check=True).stdout.strip()
    expect("of git", history(new)[0], 0)
    expect("by hand", history("--commit", "v2", "-m", "step,kernel:gemm", new)[0], 0)
    expect("and compared", history("--commit", "v3", "-b", new, new)[:2], (0, gate("-b", new, new)[1]))
    lines = [json.loads(line) for line in open("h/history.jsonl")]
    expect("commits", [line["commit"] for line in lines], [head, "v2", "v3"])
    expect("metrics", [sorted(line["metrics"]) for line in lines],
           [["idle_share", "launches", "step_time"], ["kernel:gemm", "step_time"], ["idle_share", "launches", "step_time"]])
    step = lines[0]["metrics"]["step_time"]
    expect("kept", (lines[0]["program"], lines[0]["device"], lines[0]["steps"], step["unit"], step["n"]),
           ("train", "H200", 39, "ns", 39))
    runner.expect("summary", step["low"] < step["median"] < step["high"] and 9e6 < step["mean"] < 11e6, step)
    # A run that proves nothing is not kept, and neither is one of a report that is none.
    expect("lost", history("--commit", "v4", trace("lost", lost=3))[0], 2)
    expect("no report", history("--commit", "v4", "new.txt")[0], 2)
    expect("lines", len(open("h/history.jsonl").readlines()), 3)
    status, out, _ = history()
    expect("few", (status, "3 commits: too few to look for changes, which takes 8" in out), (0, True))


def simulate_history(changes, n=60, seed=1, noise=0.01):
    """h/history.jsonl with a step of 10 ms that changes by a factor at some commits."""
    rng = random.Random(seed)
    level = 1e7
    os.makedirs("h", exist_ok=True)
    with open("h/history.jsonl", "w") as f:
        for i in range(n):
            level *= changes.get(i, 1)
            value = {"unit": "ns", "n": 100, "median": level * (1 + noise * rng.gauss(0, 1))}
            f.write(json.dumps({"commit": f"{i:040x}", "date": f"2026-10-{1 + i % 28:02}T00:00:00Z", "program": "train.py",
                                "device": "H200", "metrics": {"step_time": value}}) + "\n")


def a_history_shows_where_it_changed():
    simulate_history({20: 1.05, 45: 0.9})
    status, out, _ = history("--format", "json")
    expect("status", status, 0)
    [series] = json.loads(out)["metrics"]
    expect("changes", [c["index"] for c in series["changes"]], [20, 45])
    runner.expect("sizes", [round(c["change"], 2) for c in series["changes"]] == [0.05, -0.1], series["changes"])
    status, out, _ = history("--html", "page.html")
    expect("status", status, 0)
    runner.expect("text", "\n1  changed at 000000000 (2026-10-21): " in out and "-10" in out, out)
    runner.expect("plot", out.count("o") > 40 and "10." in out.splitlines()[1], out)
    page = open("page.html").read()
    expect("drawn", (page.count("<circle"), page.count('class="change"')), (60, 2))
    runner.expect("alone", "http" not in page and "<script" not in page, page[:500])
    ElementTree.fromstring(page[page.index("<svg"):page.index("</svg>") + 6])
    # Lines that are none, and other programs, are left out and counted.
    with open("h/history.jsonl") as f:
        lines = f.read().splitlines()
    with open("h/history.jsonl", "w") as f:
        f.write("\n".join(["{nonsense", lines[0].replace("train.py", "serve.py"), *lines]) + "\n")
    status, out, _ = history()
    runner.expect("others", "left out: 1 run of other programs" in out and "left out: 1 line that" in out, out)
    simulate_history({})
    runner.expect("none", "no change found; noise" in history()[1], history()[1])
    expect("no history", runner.run([LULL, "gate", "--history", "nowhere"]).returncode, 2)


def scripts_of(path):
    """The script lines of a CI file: those of `run: |` of GitHub, or the items of `script:` of GitLab."""
    lines = open(os.path.join(ROOT, "examples/ci", path)).read().split("\n")
    found, i = [], 0
    while i < len(lines):
        text = lines[i].strip()
        indent = len(lines[i]) - len(lines[i].lstrip())
        if text in ("run: |", "- |"):
            block = []
            while i + 1 < len(lines) and (not lines[i + 1].strip() or
                                          len(lines[i + 1]) - len(lines[i + 1].lstrip()) > indent):
                block.append(lines[i + 1])
                i += 1
            found.append("\n".join(block))
        elif path.startswith("gitlab") and text.startswith(("- for", "- lull")):
            found.append(text[2:])
        i += 1
    return found


def run_ci(path, shell, **env):
    """Run the script of a CI file in this folder; the status of the first part that fails, and all output."""
    env = {**os.environ, "PATH": f"{os.getcwd()}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"),
           **env}
    out, status = "", 0
    for script in scripts_of(path):
        done = runner.run([*shell, script], env=env)
        out += done.stdout + done.stderr
        status = status or done.returncode
    return status, out


def examples_of_ci_run_as_they_are():
    os.mkdir("bin")
    os.symlink(LULL, "bin/lull")
    # Their `python train.py`.
    os.symlink(sys.executable, "bin/python")
    with open("train.py", "w") as f:
        f.write(f"import os\nos.execv('{BUILD}/examples/train_cuda', ['train_cuda', '--steps=30'])\n")
    runner.run(["git", "init", "-q", "."], check=True)
    who = {**os.environ, **{f"GIT_{p}_{k}": "x" for p in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}}
    runner.run(["git", "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=who)
    for path, shell, main, change in (
            ("github.yml", ["bash", "-e", "-c"], {"GITHUB_REF": "refs/heads/main"}, {"GITHUB_REF": "refs/pull/1/merge"}),
            ("gitlab-ci.yml", ["sh", "-e", "-c"], {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"},
             {"CI_DEFAULT_BRANCH": "main"})):
        expect(f"parts of {path}", len(scripts_of(path)), 3)
        status, out = run_ci(path, shell, GITHUB_STEP_SUMMARY="summary.md", **main)
        runner.expect(f"{path} on main", status == 0 and "step_time, 1 commit" in out, (status, out))
        expect("baseline", sorted(os.listdir(".lull-gate/main")), [f"{i}.lull" for i in range(1, 5)])
        runner.expect("page", "<svg" in open("history.html").read(), "")
        status, out = run_ci(path, shell, GITHUB_STEP_SUMMARY="summary.md", **change)
        # The simulated device is as noisy as this machine, so any verdict may come; but there is one.
        verdict = out.split("\nverdict: ")[1].split("\n")[0]
        expect(f"{path}: {verdict}", status, {"pass": 0, "regressed": 1, "failed": 1, "inconclusive": 2}[verdict])
        expect("junit", ElementTree.parse("gate.xml").getroot().get("tests"), "4")
        runner.expect("markdown", f"### lull gate: {verdict}" in open("gate.md").read(), open("gate.md").read())
        for name in ("gate.xml", "gate.md", "history.html"):
            os.remove(name)
    runner.expect("summary", "### lull gate: " in open("summary.md").read(), "")


TESTS = (
    the_same_passes,
    each_metric_finds_what_it_watches,
    steps_are_compared_without_calls_too,
    noise_is_inconclusive_and_says_how_many,
    what_proves_nothing_never_passes,
    a_store_keeps_baselines,
    ci_systems_can_read_it,
    bounds_need_no_baseline,
    bad_bounds_are_said_in_a_sentence,
    a_speedup_can_be_demanded,
    a_faster_step_with_more_launches_is_no_regression,
    metrics_may_only_warn,
    thresholds_may_have_a_sign,
    a_program_is_its_script_however_it_was_started,
    a_history_is_appended_and_read,
    a_history_shows_where_it_changed,
    examples_of_ci_run_as_they_are,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
