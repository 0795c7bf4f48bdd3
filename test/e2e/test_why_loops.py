#!/usr/bin/env python3
"""lull why on programs that leave the simulated device idle (guests/loop_guest.cc and .py), each for another reason.

On a busy machine the thread may also lack a CPU, and waits for the device return late. Both are true then and come with any
of the loops, so they are left aside: of all other causes, that of the loop has the most time.
Usage: test_why_loops.py BUILD [NAME...]
"""
import json
import os
import sys

import runner
from runner import expect

BUILD = os.path.abspath(sys.argv[1])
LULL = BUILD + "/lull"
NATIVE = [BUILD + "/e2e/loop_guest"]
PYTHON = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "guests/loop_guest.py")]
SIM = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim")
ASIDE = {"os-scheduling", "host-sync", "kernel-gap", "launch-bound", "exposed-copy"}


def record(how, guest=NATIVE, rounds=40, env=SIM):
    done = runner.run([LULL, "profile", "--force-overwrite=true", "-o", how, *guest, how, str(rounds)], env=env)
    expect(f"status of {how}", done.returncode == 0, done.stderr)
    done = runner.run([LULL, "why", "-f", "json", how + ".lull"])
    expect(f"an answer for {how}", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def most(answer):
    costs = {name: ns for name, ns in answer["device"]["costs_ns"].items() if name not in ASIDE and ns}
    return max(costs, key=costs.get) if costs else None


def check(how, cause, guest=NATIVE):
    """What is said of the cause."""
    # On a busy machine the device may be idle for nothing but want of a CPU: then the loop has to be seen again.
    for _ in range(5):
        answer = record(how, guest)
        if most(answer):
            break
    expect(f"the cause of {how}", most(answer) == cause, answer["device"]["costs_ns"])
    finding = [f for f in answer["findings"] if f["cause"] == cause]
    expect(f"a finding for {how}", len(finding) == 1, answer["findings"])
    return finding[0]


def evidence(finding):
    return " ".join(e["text"] for e in finding["evidence"])


def a_sort_is_named_with_its_function():
    said = evidence(check("sort", "host-compute"))
    expect("the function of the program", "sort_particles" in said and "introsort" not in said, said)
    expect("how many samples say so", " samples are " in said, said)


def a_lock_is_named_with_its_holder():
    said = evidence(check("lock", "lock-wait"))
    expect("the call", "pthread_mutex_lock" in said, said)
    with open(os.path.join(os.path.dirname(PYTHON[1]), "loop_guest.cc"), encoding="utf-8") as f:
        line = 1 + ["lock_guard" in text for text in f].index(True)
    expect("the line, not one of the library that is inlined there", f"loop_guest.cc:{line} " in said, said)
    # On a busy machine there may be too few waits for samples; then the scheduler says who ran.
    expect("who holds it", "meanwhile thread" in said and ("burn" in said or "samples" not in said), said)


def questions_and_sleeps_are_polling():
    check("poll", "polling")
    check("sleep", "polling")


def small_copies_are_counted():
    said = evidence(check("small", "small-copies"))
    expect("how many", "1000 copies to the device per step, 4 bytes each" in said, said)


def fresh_memory_is_page_faults():
    done = runner.run([LULL, "doctor"])
    if "ok       kernel samples" not in done.stdout:
        runner.skip("the kernel cannot be sampled here")
    check("fault", "page-faults")


def files_and_sockets_are_told_apart():
    check("read", "storage-read")
    check("net", "network-read")


def a_server_without_requests_has_no_demand():
    finding = check("demand", "no-demand")
    expect("nothing is predicted", not finding.get("prediction"), finding)


def a_batch_from_a_queue_is_the_input_pipeline():
    said = evidence(check("queue", "input-pipeline"))
    expect("who prepares it", "meanwhile thread" in said, said)


def python_is_understood_as_well():
    check("collect", "gc", PYTHON)
    check("lock", "lock-wait", PYTHON)
    check("queue", "lock-wait", PYTHON)
    check("sleep", "polling", PYTHON)
    check("read", "storage-read", PYTHON)
    check("accept", "no-demand", PYTHON)


def a_wait_is_named_with_its_line():
    # Kernels that end before a slow interpreter asks for them are not waited for.
    answer = record("item", PYTHON, env=dict(SIM, LULL_SIM_KERNEL_NS="50000"))
    expect("waits cost something", answer["device"]["costs_ns"].get("host-sync"), answer["device"]["costs_ns"])
    said = " ".join(e["text"] for f in answer["findings"] if f["cause"] == "host-sync" for e in f["evidence"])
    with open(PYTHON[1], encoding="utf-8") as f:
        line = 1 + [text.strip().endswith("# waits in the loop") for text in f].index(True)
    expect("the line of the call", f"cuCtxSynchronize, loop_guest.py:{line} " in " ".join(said.split()), said)


TESTS = (
    a_sort_is_named_with_its_function,
    a_lock_is_named_with_its_holder,
    questions_and_sleeps_are_polling,
    small_copies_are_counted,
    fresh_memory_is_page_faults,
    files_and_sockets_are_told_apart,
    a_server_without_requests_has_no_demand,
    a_batch_from_a_queue_is_the_input_pipeline,
    python_is_understood_as_well,
    a_wait_is_named_with_its_line,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
