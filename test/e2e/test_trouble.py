#!/usr/bin/env python3
"""CUDA programs in trouble, on the simulated device: no driver, Ctrl-C, workers that are spawned, ranges in a row.

What a CUPTI that refuses looks like is in test_cuda.c and test_sim.c.
Usage: test_trouble.py BUILD [NAME...]
"""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import runner
from runner import expect, until, until_file

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
LAUNCHES = os.path.join(BUILD, "e2e/launches")
LOOP = os.path.join(BUILD, "examples/train_cuda")
SIM = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))


def profile(*words, env=SIM, status=0):
    done = runner.run([LULL, "profile", "-s", "none", *words], env=env)
    expect(f"status of {words}", done.returncode == status, f"{done.returncode}\n{done.stderr}")
    return done


def ask(report, sql):
    return json.loads(runner.run([LULL, "query", report, sql, "--format", "json"], check=True).stdout)


def issues(report):
    return {row["name"]: row["count"] for row in ask(report, "select name, count from issue")}


def without_a_driver_one_line_says_what_is_left():
    said = profile("-t", "cuda,osrt", "-o", "none", "sh", "-c", "sleep 0.1", env=dict(os.environ)).stderr
    lines = [line for line in said.splitlines() if "warning" in line]
    expect("one line", len(lines) == 1 and "no process initialised it" in lines[0] and "the rest is recorded" in lines[0],
           said)
    expect("issue", issues("none.lull").get("no_cuda") == 1, issues("none.lull"))
    expect("the rest", ask("none.lull", "select count(*) as n from oscall")[0]["n"] > 0)
    # Nobody asked for CUDA by name, or somebody used it: nothing to say.
    said = profile("-o", "plain", "true", env=dict(os.environ)).stderr
    expect("nothing without -t", "warning" not in said, said)
    said = profile("-t", "cuda", "-o", "used", LAUNCHES, "2").stderr
    expect("nothing with CUDA", "warning" not in said, said)


def a_recorder_that_dies_says_where_and_loses_little():
    recorder = runner.start([LULL, "profile", "--metrics-port=0", "-o", "died", "-t", "cuda", LOOP, "--steps=100000"], env=SIM,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    url = runner.url_of_metrics(recorder)
    until(lambda: runner.metric(url, "lull_kernels_total") >= 100, "kernels are recorded")
    program = runner.children(recorder.pid)
    recorder.send_signal(signal.SIGSEGV)
    recorder.wait(runner.limit())
    for pid in program:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # one that had to do with the recorder
    said = runner.finish(recorder)[1]
    if "Sanitizer" in said:
        runner.skip("a sanitizer has last words of its own")
    expect("dies of it", recorder.returncode == -signal.SIGSEGV, recorder.returncode)
    expect("last words", "lull crashed" in said and re.search(r" \+[0-9a-f]+", said) and "lull recover" in said, said)
    runner.run([LULL, "recover", "died.lull.part"], check=True)
    n = ask("died.lull", "select count(*) as n from kernel")[0]["n"]
    expect("kernels", n >= 100, n)


# Names that are never the same again: the recorder needs memory for each.
NAMES = """
import itertools, lull, os, time
for i in itertools.count():
    with lull.record(f"{i} " * 20):
        pass
    if i % 200 == 0:
        with open("at.new", "w") as f:
            f.write(str(i))
        os.rename("at.new", "at")
        time.sleep(0.002)
        if os.path.exists("enough"):
            print(i)
            break
"""


def a_recorder_without_memory_says_so_and_loses_nothing():
    run = runner.start([LULL, "profile", "-s", "none", "--cpuctxsw=none", "-t", "nvtx", "-o", "poor", sys.executable, "-c", NAMES],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: os.path.exists("poor.lull.part") and os.stat("poor.lull.part").st_size > 50000, "something is written")
    with open("at", encoding="ascii") as f:
        told = int(f.read())
    with open(f"/proc/{run.pid}/statm", encoding="ascii") as f:
        now_bytes = int(f.read().split()[0]) * resource.getpagesize()
    # Of the recorder alone: the program has begun without a limit.
    resource.prlimit(run.pid, resource.RLIMIT_AS, (now_bytes, now_bytes))
    run.wait(runner.limit())
    open("enough", "w", encoding="ascii").close()
    printed, said = runner.finish(run)
    if "Sanitizer" in said:
        runner.skip("a sanitizer has last words of its own")
    expect("status", run.returncode == 1, (run.returncode, said))
    expect("one line", re.fullmatch(r"lull: out of memory \(\d+ x \d+ bytes\); the program continues; make a report of the "
                                    r"recorded data with: lull recover poor\.lull\.part\n", said), said)
    expect("the program goes on", printed and int(printed) >= told, (printed, told))
    runner.run([LULL, "recover", "poor.lull.part"], check=True)
    # Collections of Python's garbage are ranges, too.
    own = "from range r join label l on r.label = l.id where l.name != 'gc.collect'"
    n = ask("poor.lull", "select count(*) as n " + own)[0]["n"]
    expect("all of it", told < n <= int(printed) + 1, (told, n, printed))
    expect("each with its name", ask("poor.lull", "select count(distinct l.name) as n " + own)[0]["n"] == n)


DESERTED_S = 5  # a recorder that says nothing for so long, and is not there, is dead (src/agent/core/agent.c)


def processes_after_a_dead_recorder_leave_nothing():
    """What they would leave in shared memory nobody removes; what there was is still recovered."""
    os.mkfifo("go")
    script = "echo $LULL_SESSION > session; read x <go; " + "/bin/true; " * 20 + "touch done"
    run = runner.start([LULL, "profile", "-q", "-s", "none", "-o", "dead", "sh", "-c", script])
    until(lambda: os.path.exists("session") and os.path.getsize("session"), "the program begins")
    until_file("dead.lull.part")
    with open("session", encoding="utf-8") as f:
        session = f.read().strip()
    run.kill()
    run.wait()
    time.sleep(DESERTED_S + 0.1)
    with open("go", "w", encoding="ascii") as f:
        f.write("\n")
    until_file("done")
    images = [n for n in os.listdir(session) if n.endswith(".image")]
    expect("the image of the shell", len(images) == 1, images)
    runner.run([LULL, "recover", "dead.lull.part"], check=True)
    expect("what was recorded", ask("dead.lull", "select count(*) as n from process")[0]["n"] >= 1)
    expect("the session is gone", not os.path.exists(session), session)


def reports_of_one_run_never_replace_each_other():
    for _ in range(2):
        profile("-f", "true", "-o", "again", "-c", "nvtx", "-p", "data_load@*", "--capture-range-end=repeat-shutdown:3",
                "--kill=sigterm", LOOP, "--steps=100000", status=143)
        found = sorted(name for name in os.listdir(".") if name.startswith("again"))
        expect("three reports", found == ["again-2.lull", "again-3.lull", "again.lull"], found)
        ids = {ask(name, "select value from meta where key = 'recording.session'")[0]["value"] for name in found}
        expect("of the latest run", len(ids) == 1, ids)


def ctrl_c_leaves_a_whole_report():
    p = runner.start([LULL, "profile", "-s", "none", "-o", "int", LOOP, "--steps=100000"], env=SIM,
                     # What is started in the background of a shell ignores Ctrl-C.
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                     stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until(lambda: os.path.exists("int.lull.part") and os.stat("int.lull.part").st_size > 30000, "something is written")
    os.killpg(p.pid, signal.SIGINT)  # as a terminal does: to all of the group
    said = runner.finish(p)[1]
    expect("status", p.returncode == 130, (p.returncode, said))
    row = ask("int.lull", "select count(*) as n from kernel")[0]
    expect("kernels", row["n"] > 0, row)
    known = issues("int.lull")
    expect("the end is stated", known.get("killed") == 1 and known.get("device_tail") == 1, known)
    expect("nothing else is lost", "buffer_full" not in known and not os.path.exists("int.lull.part"), known)


def spawned_and_forked_workers_are_followed():
    with open("pool.py", "w") as f:
        f.write("import multiprocessing as mp, subprocess, sys\n"
                "def work(n):\n"
                "    return subprocess.run([sys.argv[1], '3'], stdout=subprocess.PIPE, text=True).stdout\n"
                "if __name__ == '__main__':\n"
                "    with mp.get_context(sys.argv[2]).Pool(2) as pool:\n"
                "        print(''.join(pool.map(work, range(3))), end='')\n")
    for method in ("spawn", "fork", "forkserver"):
        done = profile("-t", "cuda", "-o", method, sys.executable, "pool.py", LAUNCHES, method)
        wanted = [int(n) for n in re.findall(r"^kernels=(\d+)", done.stdout, re.M)]
        found = [row["n"] for row in ask(f"{method}.lull", "select count(*) as n from kernel group by process")]
        expect(f"kernels of {method}", len(wanted) == 3 and found == wanted, (found, wanted, done.stderr))


# Ranges that follow each other within milliseconds, each with its number in it.
RANGES = """
import itertools, lull, os, time
for i in itertools.count():
    with lull.record("load"):
        lull.mark(str(i))
    time.sleep(0.002)
    if os.path.exists("enough"):
        print(i)
        break
"""


def ranges_in_a_row_are_taken_or_counted():
    """Reports are finished while the next is recorded; what comes before the recorder is ready again is counted."""
    p = runner.start([LULL, "profile", "-s", "none", "-t", "nvtx", "-c", "nvtx", "-p", "load@*", "--capture-range-end=repeat:6",
                      "-o", "take%n", sys.executable, "-c", RANGES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    names = [f"take{n}.lull" for n in range(1, 7)]
    until_file(names[-1])
    open("enough", "w", encoding="ascii").close()
    printed, said = runner.finish(p)
    told = re.findall(r"^lull: (take\d+\.lull)  ", said, re.M)
    expect("reports in order", (p.returncode, told) == (0, names), (p.returncode, told, said))
    taken, missed = [], 0
    for name in names:
        n = ask(name, "select count(*) as n from range r join label l on r.label = l.id where l.name = 'load'")[0]["n"]
        expect(f"one range in {name}", n == 1, n)
        taken += [int(row["name"]) for row in ask(name, "select name from marks")]
        missed += issues(name).get("ranges_missed", 0)
    expect("their numbers", len(taken) == 6 and taken == sorted(taken), taken)
    # The last report also counts those that came while it was finished.
    expect("what came in between is counted", taken[-1] - taken[0] - 5 <= missed <= int(printed) - taken[0] - 5,
           (missed, taken, printed))
    expect("nothing unfinished", not [n for n in os.listdir(".") if n.endswith(".part")], os.listdir("."))


def options_without_effect_are_told():
    said = profile("-o", "a", "--trace-library=libnosuch.so:foo_*", "-p", "epoch 3", "true").stderr
    expect("a pattern without a match", "--trace-library: no function that matches was called" in said, said)
    expect("a range without its option", "--nvtx-capture has no effect without --capture-range=nvtx" in said, said)
    said = profile("-o", "b", "--trace-library=libc.so.6:getpid", "-c", "nvtx", "-p", "none", "true").stderr
    expect("neither where all is well", "has no effect" not in said, said)


TESTS = (
    options_without_effect_are_told,
    without_a_driver_one_line_says_what_is_left,
    a_recorder_that_dies_says_where_and_loses_little,
    a_recorder_without_memory_says_so_and_loses_nothing,
    processes_after_a_dead_recorder_leave_nothing,
    ctrl_c_leaves_a_whole_report,
    reports_of_one_run_never_replace_each_other,
    spawned_and_forked_workers_are_followed,
    ranges_in_a_row_are_taken_or_counted,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
