#!/usr/bin/env python3
"""`lull timeline` says what `lull why` says: for each step of real recordings, the same causes with the same times.

Usage: test_timeline.py BUILD [NAME...]

It is also looked at as a picture: no line is wider than asked for, and none of a kind is missing.
"""
import glob
import json
import os
import re
import subprocess
import sys

import runner

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.join(os.path.abspath(sys.argv[1]), "lull")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
COST = re.compile(r"^  (\S)  ([a-z-]+) +([0-9.]+) (ns|us|ms|s) +\d+ %$", re.M)
RECORDINGS = ["torch/train.lull", "torch/dataloader_cpu.lull", "torch/launch_bound.lull", "planted/sync_item.lull"]


def lull(*words):
    env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1")
    done = subprocess.run([LULL, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=runner.limit())
    runner.expect(" ".join(words), done.returncode == 0, done.stderr)
    return done.stdout


def recordings():
    found = [os.path.join("test/data", name) for name in RECORDINGS]
    return [path for path in found if os.path.exists(os.path.join(ROOT, path))] + sorted(
        glob.glob("test/corpus/data/[a-d]*.lull", root_dir=ROOT))


def is_close(ns, shown):
    """Whether three digits or two decimals of a millisecond show this number."""
    return abs(ns - shown) <= max(0.006 * ns, 5001)


def each_step_has_the_causes_of_why():
    n_checked = 0
    for path in recordings():
        steps = json.loads(lull("why", "--format=json", path))["steps"]
        if steps["source"] in ("step", "hook", "none"):
            continue
        for i in range(0, len(steps["each"]), max(7, len(steps["each"]) // 5)):
            said = steps["each"][i]["causes"]
            drawn = {c: float(n) * UNITS[u] for _, c, n, u in COST.findall(lull("timeline", f"--step={steps['warm_up'] + i}", path))}
            runner.expect(f"{path} step {i}: causes", set(drawn) == set(said), f"{drawn} instead of {said}")
            for cause, ns in said.items():
                runner.expect(f"{path} step {i}: {cause}", is_close(ns, drawn[cause]), f"{drawn[cause]} instead of {ns}")
            n_checked += 1
    runner.expect("steps to compare", n_checked >= 20, n_checked)


def letters_of_the_picture_are_in_the_list():
    for path in recordings():
        text = lull("timeline", "--width=120", path)
        idle = "".join(line[14:] for line in text.splitlines() if line.startswith("idle, why"))
        known = {letter for letter, *_ in COST.findall(text)}
        runner.expect(path, set(idle.upper()) - {" "} <= known, f"{sorted(set(idle))} with the list {sorted(known)}")


def no_line_is_wider_than_asked_for():
    for path in recordings():
        for width in (80, 120, 200, 333):
            for words in ([], ["--ascii"]):
                text = lull("timeline", f"--width={width}", *words, path)
                wide = [line for line in text.splitlines() if len(line) > width]
                runner.expect(f"{path} at {width}", not wide, wide)
                if words:
                    runner.expect(f"{path}: ASCII", text.isascii(), text)


if __name__ == "__main__":
    runner.main([each_step_has_the_causes_of_why, letters_of_the_picture_are_in_the_list,
                 no_line_is_wider_than_asked_for], sys.argv[2:])
