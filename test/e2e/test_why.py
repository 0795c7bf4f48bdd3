#!/usr/bin/env python3
"""lull why on a real recording: the example loop on the simulated device, with and without its marks.

Usage: test_why.py BUILD
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

# On a busy machine the thread that loads may lack a CPU more than it loads; both are true then.
EXPECTED = {"input-pipeline", "pageable-copy", "os-scheduling"}


def run(*words, env=None, status=0):
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}"
    return done.stdout


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


def check_words(lull, report):
    """What is said in words adds up: no cause has more than the whole, and the parts of a step make the step."""
    said = " ".join(run(lull, "why", "-a", report).split())
    whole = re.search(r"(busy|does not compute for) \d+ % of each step \(([0-9.]+) of ([0-9.]+) ms\)", said)
    if not whole:
        assert said.startswith("Cannot tell why"), said
        return
    costs = [float(c) for c in re.findall(r" [a-z-]+: ([0-9.]+) ms/step, \d+ % of the (?:recorded )?step", said)]
    assert said.count("(confidence") == 1, said
    assert costs and costs[0] <= float(whole[2]) + 0.01, said
    does = re.search(r"The GPU computes for .*?(?:ms|\))\. ", said)
    parts = [float(m) for m in re.findall(r"for ([0-9.]+) ms", does[0])]
    assert abs(sum(parts) - float(whole[3])) < 0.005 * (len(parts) + 1) + 1e-9, said
    if whole[1] != "busy":
        assert sum(costs) <= float(whole[2]) + 0.005 * len(costs) + 0.005, said
        assert abs(sum(parts[1:]) - float(whole[2])) < 0.005 * len(parts) + 0.005, said
        # "Because" is for a cause that has half of it.
        assert ("ms) because" in said) == (2 * costs[0] >= float(whole[2])), said
        assert ("has more of it" in said) == (2 * costs[0] < float(whole[2]) and costs[0] < max(costs)), said


def main():
    build = os.path.abspath(sys.argv[1])
    lull, train = build + "/lull", build + "/examples/train_cuda"
    env = dict(os.environ, LD_LIBRARY_PATH=build + "/sim")
    recorded = sorted(glob.glob(os.path.join(os.path.dirname(__file__), "../data/planted-native/*.lull")))
    assert recorded
    for path in recorded:
        check_words(lull, path)
    with tempfile.TemporaryDirectory() as folder:
        report = folder + "/a.lull"
        said = run(lull, "profile", "--why", "-o", folder + "/a", train, "--steps=60", env=env)
        assert "Simulated device" in said and "% of each step" in said, said
        schema = json.loads(run(lull, "why", "--schema"))
        for without in ([], ["--without", "ranges,steps"], ["--without", "ranges,steps,samples,osrt,sched,python"]):
            answer = json.loads(run(lull, "why", "-f", "json", *without, report))
            check_schema(answer, schema, "answer")
            check_sums(answer)
            assert answer["is_simulated"]
            assert answer["first"] in EXPECTED or answer["cannot_tell"] or without, answer["first"]
            assert abs(answer["replay"]["error"]) < 0.15, answer["replay"]
        marked = json.loads(run(lull, "why", "-f", "json", report))
        found = json.loads(run(lull, "why", "-f", "json", "--without", "ranges,steps", report))
        assert found["steps"]["source"] == "period", found["steps"]["source"]
        ratio = found["steps"]["median_ns"] / marked["steps"]["median_ns"]
        assert 0.8 < ratio < 1.25, f"the period is {ratio} of the marked step"
        # Clocks that do not agree: the device's times are 50 ms too early.
        skewed = dict(env, LULL_SIM_SKEW_NS="-50000000")
        said = run(lull, "profile", "--why", "-o", folder + "/b", train, "--steps=20", env=skewed)
        assert "clocks of host and device do not agree" in said, said
        # Nothing of a device in it.
        run(lull, "profile", "-o", folder + "/c", "true")
        run(lull, "why", folder + "/c.lull", status=1)
        run(lull, "why", folder + "/missing.lull", status=1)
        run(lull, "why", status=2)
    print("test_why: the example is explained, marked and unmarked")


if __name__ == "__main__":
    main()
