#!/usr/bin/env python3
"""Recordings of a part of a program: all that it did from the first call to the last is in them.

Usage: test_part.py BUILD [NAME...]

On the simulated device. It may take long to switch CUPTI on, or have much work queued when a part ends.
"""
import json
import os
import sys

import runner
from runner import expect, skip

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.join(BUILD, "lull")
ENV = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), "LULL_COMMAND": LULL,
       "PYTHONPATH": os.path.join(ROOT, "python")}
QUIET = ["-q", "-s", "none", "--cpuctxsw=none", "--python-sampling=false"]
# To switch records on then takes a quarter of a second; the package looks every 5 ms whether it is recorded.
SLOW = {"LULL_SIM_ENABLE_MS": "30"}
N_PARTS, N_QUEUED = 3, 50

PROGRAM = """
import ctypes, os, sys, time
import lull
cu = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
context, module, function, stream, memory = (ctypes.c_void_p() for _ in range(5))
ok(cu.cuInit(0))
ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cu.cuCtxSetCurrent(context))
ok(cu.cuModuleLoadData(ctypes.byref(module), b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry add_one(.param .u64 p)\\n{ ret; }\\n"))
ok(cu.cuModuleGetFunction(ctypes.byref(function), module, b"add_one"))
ok(cu.cuStreamCreate(ctypes.byref(stream), 1))
ok(cu.cuMemAlloc_v2(ctypes.byref(memory), 4096))
argument = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
def kernel():
    ok(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, argument, None))
def copy():
    ok(cu.cuMemcpyHtoD_v2(memory, bytes(4096), 4096))
def mark():
    lull.mark("edge")
def push():
    with lull.range("edge"):
        pass
def wait():
    ok(cu.cuStreamSynchronize(stream))
"""

# Each part begins and ends with something else.
EDGES = PROGRAM + """
things = [copy, kernel, mark, push]
for i in range(int(sys.argv[1])):
    with lull.profile(f"part{i}.lull"):
        for thing in things:
            thing()
        for thing in reversed(things):
            thing()
    things.append(things.pop(0))
"""
IN_EDGES = {"memcpy": 2, "kernel": 2, "cuda_call": 4, "mark": 2, "range": 2}

QUEUE = PROGRAM + """
def run(n):
    for _ in range(n):
        kernel()
for i in range(int(sys.argv[1])):
    part = lull.profile(f"part{i}.lull") if sys.argv[3] == "profile" else None
    part.__enter__() if part else lull.start()
    run(int(sys.argv[2]))
    part.__exit__() if part else lull.stop()
    run(7)
    wait()
    while not part and i + 1 < int(sys.argv[1]) and not os.path.exists(f"part-{i + 1}.lull" if i else "part.lull"):
        time.sleep(0.01)
"""


def rows(report, *tables):
    sql = ", ".join(f"(select count(*) from {table}) as {table}" for table in tables)
    return json.loads(runner.run([LULL, "query", "-f", "json", report, f"select {sql}"], check=True).stdout)[0]


def unfinished(report):
    """Work of the device that the report says it lacks."""
    sql = "select coalesce(sum(count), 0) as n from issue where name = 'device_unfinished'"
    return json.loads(runner.run([LULL, "query", "-f", "json", report, sql], check=True).stdout)[0]["n"]


def program(text, *words, before=(), **variables):
    runner.run([*before, sys.executable, "-c", text, *map(str, words)], env={**ENV, **variables}, check=True)


def need_attach():
    if not runner.can(LULL, "attach"):
        skip("programs that run must not be traced here (lull doctor says why)")


def edges_are_in(*before):
    program(EDGES, N_PARTS, before=before, **SLOW)
    for i in range(N_PARTS):
        found = rows(f"part{i}.lull", *IN_EDGES)
        expect(f"all of part {i}", found == IN_EDGES, found)


def a_part_has_all_from_its_first_call_to_its_last():
    """The program attaches to itself."""
    need_attach()
    edges_are_in()


def a_part_in_a_session_too():
    edges_are_in(LULL, "launch", *QUIET)


def queue_is_in(reports, *words, before=()):
    """Kernels of calls before the end; those of later calls are not."""
    program(QUEUE, len(reports), N_QUEUED, *words, before=before, LULL_SIM_KERNEL_NS="1000000")
    for report in reports:
        found = rows(report, "cuda_call", "kernel")
        expect(f"the calls of {report}", found["cuda_call"] == N_QUEUED, found)
        # A machine that is busy may not come to all of them while the recorder waits; that is said.
        n = found["kernel"] + unfinished(report)
        expect(f"their kernels in {report}", n == N_QUEUED and found["kernel"] > 0, (n, found))


def work_that_waits_at_the_end_is_in_the_part():
    need_attach()
    queue_is_in([f"part{i}.lull" for i in range(N_PARTS)], "profile")


def work_that_waits_at_the_end_of_a_part_in_a_session():
    queue_is_in([f"part{i}.lull" for i in range(N_PARTS)], "profile", before=[LULL, "launch", *QUIET])


def work_that_waits_when_the_program_stops_the_recording():
    queue_is_in(["part.lull", "part-2.lull", "part-3.lull"], "program",
                before=[LULL, "profile", *QUIET, "-o", "part", "--capture-range=lull", "--capture-range-end=repeat"])


def times_of_the_device_that_are_late_lose_nothing():
    """By what the device says, nothing of it began before the recording ended."""
    text = PROGRAM + "lull.start()\nfor _ in range(5):\n    kernel()\nwait()\nlull.stop()"
    program(text, before=[LULL, "profile", *QUIET, "-o", "late", "--capture-range=lull"], LULL_SIM_SKEW_NS="1000000000")
    expect("all kernels", rows("late.lull", "kernel") == {"kernel": 5}, rows("late.lull", "kernel"))


def a_window_by_time_has_the_device_from_its_start_on():
    """A kernel for each mark, but for one at each end."""
    text = PROGRAM + """
until = time.monotonic() + 4
while time.monotonic() < until:
    mark()
    kernel()
    wait()
    time.sleep(0.001)
"""
    program(text, before=[LULL, "profile", *QUIET, "-f", "-o", "duty", "--duty", "50%"], **SLOW)
    found = rows("duty.lull", "window", "mark", "kernel")
    expect("windows", found["window"] and found["mark"], found)
    expect("a kernel for each mark", found["kernel"] >= found["mark"] - found["window"], found)


if __name__ == "__main__":
    runner.main([a_part_has_all_from_its_first_call_to_its_last, a_part_in_a_session_too,
                 work_that_waits_at_the_end_is_in_the_part, work_that_waits_at_the_end_of_a_part_in_a_session,
                 work_that_waits_when_the_program_stops_the_recording, times_of_the_device_that_are_late_lose_nothing,
                 a_window_by_time_has_the_device_from_its_start_on], sys.argv[2:])
