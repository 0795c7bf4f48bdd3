#!/usr/bin/env python3
"""Verdicts of `lull gate` on traces whose answer is known, in every format that CI reads.

Usage: test_gate.py BUILD [NAME...]
"""
import json
import os
import random
import sys
import xml.etree.ElementTree as ElementTree

import runner

LULL = os.path.abspath(os.path.join(sys.argv[1], "lull"))


def trace(name, n=40, step_us=10000, noise=0.02, kernels=5, kernel_us=600, memory=1 << 20, exe="train",
          device="H200", lost=0, seed=1, calls=True):
    """A report of n steps, each with a data_load range and some kernels."""
    rng = random.Random(seed)
    lines = [f"process pid=10 name=train exe=/usr/bin/{exe}", "lane process=1 tid=10 name=main kind=1",
             f"device process=1 device_id=0 name={device}",
             "lane process=1 kind=2 device=1 stream_id=7 context_id=1", "launch name=gemm", "label name=data_load"]
    if lost:
        lines.append(f"issue issue=1 name=buffer_full severity=2 count={lost}")
    at = 1000.0
    for i in range(n):
        long = step_us * (1 + noise * rng.gauss(0, 1))
        lines.append(f"step start={at * 1000:.0f}ns dur={long * 1000:.0f}ns lane=1 number={i}")
        lines.append(f"range start={at * 1000:.0f}ns dur={long * 300:.0f}ns depth=0 lane=1 label=1")
        lines.append(f"cuda_memory start={at * 1000 + 10:.0f}ns device=1 operation=1 memory_kind=3 address=4096 "
                     f"size_bytes={memory} process=1")
        for k in range(kernels):
            begin = at + long * 0.4 + k * kernel_us
            number = i * kernels + k + 1 if calls else 0
            lines.append(f"kernel start={begin * 1000:.0f}ns dur={kernel_us * 1000:.0f}ns lane=2 launch=1 process=1 "
                         f"correlation={number}")
            if calls:
                lines.append(f"cuda_call start={(at + long * 0.3 + k * 10) * 1000:.0f}ns dur=5000ns lane=1 "
                             f"name=cudaLaunchKernel correlation={number} api=2")
        lines.append(f"cuda_memory start={(at + long) * 1000 - 10:.0f}ns device=1 operation=2 memory_kind=3 "
                     f"address=4096 size_bytes={memory} process=1")
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
    # A place that cannot be written is said, and is not a pass.
    expect("unwritable", gate("-b", base, base, "--junit", "no/such/folder/j.xml")[0], 2)


TESTS = (
    the_same_passes,
    each_metric_finds_what_it_watches,
    steps_are_compared_without_calls_too,
    noise_is_inconclusive_and_says_how_many,
    what_proves_nothing_never_passes,
    a_store_keeps_baselines,
    ci_systems_can_read_it,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
