#!/usr/bin/env python3
"""lull why on real recordings: loops of an H200, and the example on the simulated device, with and without their marks.

Usage: test_why.py BUILD [NAME...]
"""
import glob
import json
import os
import re
import sys

import runner
from runner import expect

BUILD = os.path.abspath(sys.argv[1])
LULL, TRAIN = BUILD + "/lull", BUILD + "/examples/train_cuda"
SIM = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim")
HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = sorted(glob.glob(os.path.join(HERE, "../data/planted-native/*.lull")))

# On a busy machine the thread that loads may lack a CPU more than it loads; both are true then.
# The last two are what a busy machine makes of it: the thread gets no CPU, also after a wait.
EXPECTED = {"input-pipeline", "pageable-copy", "os-scheduling", "host-sync"}


def run(*words, env=None, status=0):
    done = runner.run([LULL, *words], env=env)
    expect(f"status of {words}", done.returncode == status, f"{done.returncode}: {done.stderr}")
    return done.stdout


def why(report, *words):
    return json.loads(run("why", "-f", "json", *words, report))


def check_schema(value, schema, where):
    """Every key of the answer is in the schema, with one of its types."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    types = schema.get("type", "object")
    types = types if isinstance(types, list) else [types]
    good = any(isinstance(value, kinds[t]) if t in kinds else
               isinstance(value, (int, float)) and not isinstance(value, bool) for t in types)
    assert good, f"{where}: {value!r} is none of {types}"
    if isinstance(value, dict) and "properties" in schema:
        for key, inner in value.items():
            assert key in schema["properties"], f"{where}.{key} is not in the schema"
            check_schema(inner, schema["properties"][key], f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for item in value:
            check_schema(item, schema["items"], where + "[]")


def check_sums(answer):
    device = answer["device"]
    waste = device["idle_ns"] + device["exposed_copy_ns"] + device["exposed_collective_ns"]
    assert sum(device["costs_ns"].values()) == waste
    assert device["window_ns"] == waste + device["compute_ns"]


TIME = r"([0-9.]+) (ns|us|ms|s)\b"


def ms(number, unit):
    return float(number) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[unit]


def check_words(report):
    """What is said in words adds up: no cause has more than the whole, and the parts of a step make the step."""
    said = " ".join(run("why", "-a", report).split())
    whole = re.search(r"(busy|does not compute for) \d+ % of each step \(([0-9.]+)(?: (ns|us|ms|s))? of ([0-9.]+) (ns|us|ms|s)\)", said)
    if not whole:
        assert said.startswith("Cannot tell why"), said
        return
    waits, step = ms(whole[2], whole[3] or whole[5]), ms(whole[4], whole[5])
    if said.startswith("Without recording"):  # the parts are those of the step as it was recorded
        step = ms(*re.search(r" steps of ([0-9.]+) (ns|us|ms|s) on average", said).groups())
    costs = [ms(*c) for c in re.findall(r" [a-z-]+: ([0-9.]+) (ns|us|ms|s)/step, \d+ % of the (?:recorded )?step", said)]
    assert said.count("(confidence") == 1, said
    assert costs and costs[0] <= waits + 0.01, said
    does = re.search(r"The GPU computes for .*?(?:s|\))\. ", said)
    parts = [ms(*m) for m in re.findall("for " + TIME, does[0])]
    assert abs(sum(parts) - step) < 0.005 * (len(parts) + 1) + 1e-9, said
    if whole[1] != "busy":
        assert sum(costs) <= waits + 0.005 * len(costs) + 0.005, said
        assert abs(sum(parts[1:]) - waits) < 0.005 * len(parts) + 0.005, said
        # "Because" is for a cause that has half of it.
        if abs(2 * costs[0] - waits) > 0.02:  # else the digits that are not shown decide
            assert (re.search(r"s\) because", said) is not None) == (2 * costs[0] >= waits), said
            if costs[0] == costs[-1] or max(costs) - costs[0] > 0.01:
                assert ("has more of it" in said or "are not explained" in said) == (2 * costs[0] < waits and costs[0] < max(costs)), said


def what_is_said_adds_up():
    expect("there are recordings", RECORDED)
    for report in RECORDED:
        check_words(report)


def steps_are_found_without_marks():
    for report in RECORDED:
        marked, found = why(report), why(report, "--without", "ranges,steps")
        expect(report, found["steps"]["source"] in ("period", "group"), found["steps"])
        for answer in (marked, found):
            expect(f"the replay of {report}", abs(answer["replay"]["error"]) < 0.02, answer["replay"])
        # What repeats in one is a part of the step, a chain of small kernels; in the other a step is one kernel.
        if not os.path.basename(report).startswith("unfused"):
            ratio = found["steps"]["median_ns"] / marked["steps"]["median_ns"]
            expect(f"the period of {report}", 0.9 < ratio < 1.1, ratio)


def the_example_is_explained():
    said = run("profile", "--why", "-o", "a", TRAIN, "--steps=60", env=SIM)
    expect("an answer", "Simulated device" in said and ("% of each step" in said or "Cannot tell" in said), said)
    schema = json.loads(run("why", "--schema"))
    for without in ([], ["--without", "ranges,steps"], ["--without", "ranges,steps,samples,osrt,sched,python"]):
        answer = why("a.lull", *without)
        check_schema(answer, schema, "answer")
        check_sums(answer)
        expect("simulated", answer["is_simulated"])
        expect("the cause", answer["first"] in EXPECTED or answer["cannot_tell"] or without, answer["first"])
    check_words("a.lull")


def clocks_that_do_not_agree_are_told():
    """The device's times are 50 ms too early."""
    said = run("profile", "--why", "-o", "b", TRAIN, "--steps=20", env=dict(SIM, LULL_SIM_SKEW_NS="-50000000"))
    expect("clocks", "clocks of host and device do not agree" in said, said)


def without_a_device_there_is_no_answer():
    run("profile", "-o", "c", "true")
    run("why", "c.lull", status=1)
    run("why", "missing.lull", status=1)
    run("why", status=2)


def damaged():
    """A report whose answer changes with the block of copies that is broken in it."""
    with open(os.path.join(HERE, "../../examples/reports/sync_item.lull"), "rb") as f:
        bytes_ = bytearray(f.read())
    bytes_[45000:45016] = b"X" * 16
    os.makedirs("job", exist_ok=True)
    for name in ("damaged.lull", "job/rank0.lull"):
        with open(name, "wb") as f:
            f.write(bytes_)


def a_damaged_report_never_answers_without_a_word():
    damaged()
    told = "damaged.lull is damaged: 1 of 33 blocks (memcpy 1) could not be read"
    for words in (["why"], ["stats", "-q"], ["diff", "damaged.lull"], ["timeline"], ["export", "-t", "json"]):
        done = runner.run([LULL, *words, "damaged.lull"])
        expect(f"{words}", done.returncode == 0 and told in done.stderr, done)
    done = runner.run([LULL, "query", "damaged.lull", "SELECT count(*) FROM memcpy"])
    expect("query", told in done.stderr, done)
    for report in ("damaged.lull", "job"):
        done = runner.run([LULL, "why", "--fail-on", "host-sync", report])
        expect("a check does not pass", done.returncode == 1 and "cannot be decided" in done.stderr, done)
    expect("nor is it hidden in a job", "rank0.lull is damaged" in " ".join(done.stdout.split()), done)


TESTS = (
    what_is_said_adds_up,
    steps_are_found_without_marks,
    the_example_is_explained,
    clocks_that_do_not_agree_are_told,
    without_a_device_there_is_no_answer,
    a_damaged_report_never_answers_without_a_word,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
