#!/usr/bin/env python3
"""examples/demo.sh: it shows what the recordings hold, and the fix does what it says of it.

Usage: test_demo.py BUILD
"""
import os
import re
import subprocess
import sys

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT_S = 300


def expect(what, is_so, got=""):
    if not is_so:
        sys.exit(f"FAIL {what}: {got}")


def parts(text):
    """Milliseconds of the device's time by what it did, for each recording that is shown."""
    names = ("kernels alone", "copies alone", "both at once", "idle")
    return [dict(zip(names, map(float, found))) for found in zip(*(
        re.findall(rf"^ +{name} +([0-9.]+) ms$", text, re.M) for name in names))]


done = subprocess.run(["examples/demo.sh", BUILD], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
expect("status", done.returncode == 0 and not done.stderr, (done.returncode, done.stderr))
before, after = parts(done.stdout)
expect("copies are in the way before", before["copies alone"] > 10 and before["both at once"] < 1, before)
# All but a few on a machine that has a CPU to spare.
expect("copies are hidden after", after["both at once"] > 1, after)
expect("the same work", "The result is the same to the last bit" in done.stdout, done.stdout)
expect("cause", re.search(r"^  input-pipeline: [0-9.]+ ms/step", done.stdout, re.M), done.stdout)
print("test_demo: PASSED")
