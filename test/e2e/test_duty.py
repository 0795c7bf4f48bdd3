#!/usr/bin/env python3
"""Recordings in windows: lull profile --duty and --budget, on the simulated device.

Usage: test_duty.py BUILD [NAME...]
"""
import contextlib
import json
import os
import re
import shutil
import signal
import sys

import runner
from runner import expect, limit, until, until_file

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
REPORTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples/reports")
LOOP = os.path.join(BUILD, "examples/train_cuda")
ENV = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
QUIET = ["-s", "none", "--cpuctxsw=none", "--python-sampling=false"]
KERNELS = 10  # of each step of train_cuda


def profile(*words, env=None, status=0):
    done = runner.run([LULL, "profile", *QUIET, *words], env={**ENV, **(env or {})})
    expect(f"status of {words}", done.returncode == status, f"{done.returncode}\n{done.stderr}")
    return done


def ask(report, sql):
    return json.loads(runner.run([LULL, "query", report, sql, "--format", "json"], check=True).stdout)


def meta(report):
    return {row["key"]: row["value"] for row in ask(report, "select key, value from meta")}


def first_cause(report):
    why = json.loads(runner.run([LULL, "why", "--format", "json", report], check=True).stdout)
    return why["first"]


def windows_fit(report):
    """Windows one after the other, with whole steps in them."""
    windows = ask(report, "select * from window order by start_ns")
    at = 0
    for w in windows:
        expect("windows do not overlap", w["start_ns"] >= at, w)
        at = w["start_ns"] + w["dur_ns"]
    steps = ask(report, "select start_ns, start_ns + dur_ns as end_ns from step order by start_ns")
    expect("every step is in the table", len(steps) == sum(w["n_steps"] for w in windows), len(steps))
    for s in steps:
        expect("a step is in a window", any(w["start_ns"] <= s["start_ns"] and s["end_ns"] <= w["start_ns"] + w["dur_ns"]
                                            for w in windows), s)
    return windows


def profile_until(is_enough, steps, *words, **how):
    """Record the loop with so many steps, or with more and more until the report is enough. How many it had."""
    for n in (steps, 4 * steps, 16 * steps):
        profile("-f", "-o", "a", *words, LOOP, f"--steps={n}", **how)
        if is_enough():
            break
    return n


def profile_windows(steps, *words, **how):
    """The same until there are two windows."""
    return profile_until(lambda: ask("a.lull", "select count(*) as n from window")[0]["n"] >= 2, steps, "--duty", "30%", *words,
                         **how)


def windows_hold_whole_steps_and_all_steps_are_counted():
    n_all = profile_windows(500, "--duty-seed", "3", env={"LULL_SIM_STATE": "state"})
    windows = windows_fit("a.lull")
    facts = meta("a.lull")
    expect("there are windows", len(windows) >= 2, windows)
    # A loop that stood still for seconds had one by time.
    expect("with some steps each", all(w["n_steps"] >= 5 for w in windows[:-1] if w["kind"] == 1), windows)
    counted = sum(w["n_steps"] + w["n_outside"] for w in windows) + int(facts["duty.tail_steps"])
    # Nobody says when the last step ends but the end of the program.
    expect("all steps are counted", counted in (n_all - 1, n_all), (counted, windows))
    n = sum(w["n_steps"] for w in windows)
    found = ask("a.lull", "select count(*) as n from kernel")[0]["n"]
    expect("kernels of all these steps and of no other", abs(found - KERNELS * n) <= KERNELS, (found, n))
    expect("nothing is lost", "none lost" in runner.run([LULL, "stats", "-r", "losses", "a.lull"]).stdout or
           not ask("a.lull", "select * from issue where severity >= 2"), ask("a.lull", "select * from issue"))
    state = open("state").read()
    left = int(re.search(r"finalized=(\d+)", state)[1])
    # The thread that leaves may have no CPU until the next window begins.
    expect("CUPTI is left after windows", 1 <= left <= len(windows), (left, len(windows)))


def sums_stand_for_the_whole_run():
    n_all = profile_windows(400)
    said = runner.run([LULL, "stats", "-r", "windows", "--format", "json", "a.lull"], check=True).stdout
    rows = {row["What"]: row for row in json.loads(said)}
    steps = rows["steps"]["Whole Run"]
    expect("steps of the whole run", steps in (n_all - 1, n_all), rows["steps"])
    expect("the time of the whole run", rows["time"]["Whole Run"] > rows["time"]["Recorded"], rows["time"])
    kernels = rows["kernels"]
    # A window may end between the launch of a kernel and its start.
    expect("kernels of the whole run", abs(kernels["Whole Run"] - KERNELS * steps) <= max(kernels["+-"], KERNELS),
           kernels)
    told = runner.run([LULL, "why", "a.lull"], check=True).stdout
    expect("why says what was recorded", "Recorded in " in told, told)


# ---- windows cut out of real recordings ----

DEVICE = ("kernel", "memcpy", "memset", "graph", "cuda_sync")
LEFT_OUT = ("checkpoint", "open_range", "usage", "counter")


class Windows:
    """The time of a report of which only these spans were recorded, as the recorder makes it (record/axis.h)."""

    def __init__(self, spans, rows):
        self.spans, at = [], 0
        for begin, end in spans:
            self.spans.append((begin, end, at))
            ends = [row["start_ns"] + row["dur_ns"] - begin + at for row in rows
                    if row["table"] in DEVICE and begin <= row["start_ns"] < end]
            at = max([at + end - begin, *ends])

    def cut(self, row):
        """The row in that time; None if it is in no window."""
        for begin, end, at in self.spans:
            if begin <= row["start_ns"] < end:
                row = dict(row, start_ns=row["start_ns"] - begin + at)
                if "dur_ns" in row and row["table"] not in DEVICE:
                    row["dur_ns"] = min(row["dur_ns"], at + end - begin - row["start_ns"])
                return row
        return None


def text_of(row):
    words = [row["table"]]
    for key, value in row.items():
        if key in ("table", "id") or value in (None, 0, ""):
            continue
        words.append(f"{key}={json.dumps(value, ensure_ascii=False) if isinstance(value, str) else value}")
    return " ".join(words)


def cut_windows(report, to, steps_of):
    """Write the report of which only some of the steps were recorded."""
    runner.run([LULL, "export", "-f", "-t", "jsonlines", "-o", "rows.jsonl", report], check=True)
    rows = [json.loads(line) for line in open("rows.jsonl", encoding="utf-8")]
    labels = {row["id"]: row["name"] for row in rows if row["table"] == "label"}
    steps = sorted((row["start_ns"], row["start_ns"] + row["dur_ns"]) for row in rows
                   if row["table"] == "range" and re.fullmatch(r"step_\d+", labels[row["label"]] or ""))
    expect(f"{report} has steps", len(steps) >= 12, len(steps))
    chosen = [steps[first:last + 1] for first, last in steps_of(len(steps))]
    windows = Windows([(span[0][0], span[-1][1]) for span in chosen], rows)
    with open("text", "w", encoding="utf-8") as f:
        for row in rows:
            row = row if "start_ns" not in row or "id" in row else windows.cut(row)
            if row and row["table"] not in LEFT_OUT:
                print(text_of(row), file=f)
        for (begin, end, at), span in zip(windows.spans, chosen):
            print(f"window start={at} dur={end - begin} real={begin} n_steps={len(span)} kind=1", file=f)
        print(f'meta key=duty.elapsed_ns value={steps[-1][1]}', file=f)
    runner.run([LULL, "text", "text", to], check=True)


def the_first_cause_is_that_of_a_full_recording():
    names = sorted(name for name in os.listdir(REPORTS) if name.endswith(".lull"))
    expect("there are recordings of a real device", len(names) >= 5, names)
    spreads = (lambda n: [(1, 4), (n // 2, n // 2 + 3)], lambda n: [(2, 4), (6, 8), (n - 4, n - 2)])
    for i, name in enumerate(names):
        report = os.path.join(REPORTS, name)
        cut_windows(report, "part.lull", spreads[i % 2])
        expect(f"the first cause of {name}", first_cause("part.lull") == first_cause(report),
               (first_cause("part.lull"), first_cause(report)))


def a_program_without_steps_is_recorded_by_time():
    profile("-o", "a", "--duty", "50%", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.5; done")
    windows = ask("a.lull", "select * from window")
    expect("windows by time", windows and all(w["kind"] == 2 and w["n_steps"] == 0 for w in windows), windows)
    run_ns = int(meta("a.lull")["duty.elapsed_ns"])
    expect("less than the run", sum(w["dur_ns"] for w in windows) < run_ns, (windows, run_ns))


def a_budget_is_kept_and_its_cost_is_said():
    cost = lambda: meta("a.lull").get("duty.cost", "")
    profile_until(cost, 400, "--budget", "5%")
    cost = cost()
    expect("what it cost", re.search(r"% of the run, by \d+ steps in windows and \d+ outside", cost), cost)


def a_slow_step_outside_of_windows_has_one_of_its_own():
    for n in (400, 1600, 6400):  # until there are steps left when the recorder asks for a window
        profile("-o", "a", "--duty", "1%", "--flight", "10", "--trigger", "step>100ms", LOOP, f"--steps={n}", "--slow=200")
        reports = [name for name in os.listdir(".") if name.endswith(".lull")]
        expect("the slow step wrote a report", reports)
        # The planted one, or one that the machine made.
        for report in reports:
            expect("because of it", "took" in meta(report)["flight.reason"], meta(report))
        windows = [w for report in reports for w in ask(report, "select * from window")]
        if any(w["n_steps"] for w in windows):
            break
        for report in reports:
            os.unlink(report)
    expect("with a window after it", any(w["n_steps"] for w in windows), windows)


def written_windows():
    """Windows in what has been written so far: a copy of it is made a report."""
    shutil.copy("a.lull.part", "copy.lull.part")
    done = runner.run([LULL, "recover", "copy.lull.part"])
    n = ask("copy.lull", "select count(*) as n from window")[0]["n"] if done.returncode == 0 else 0
    for name in ("copy.lull", "copy.lull.part"):
        if os.path.exists(name):
            os.unlink(name)
    return n


def a_killed_recorder_leaves_windows_that_can_be_recovered():
    lull = runner.start([LULL, "profile", *QUIET, "-o", "a", "--duty", "40%", LOOP, "--steps=1000000"], env=ENV)
    until_file("a.lull.part")
    until(lambda: written_windows() >= 2, "windows are written")
    program = runner.children(lull.pid)
    lull.kill()
    lull.wait(limit())
    for pid in program:
        with contextlib.suppress(ProcessLookupError):  # a helper of the recorder has ended with it
            os.kill(pid, signal.SIGKILL)
    until(lambda: runner.run([LULL, "recover", "a.lull.part"]).returncode == 0, "it is recovered")
    windows = ask("a.lull", "select * from window")
    expect("windows are there", windows, windows)
    streams = ask("a.lull", "select count(*) as n from kernel where lane in "
                            "(select id from lane where kind = 2 and device > 0)")[0]["n"]
    everything = ask("a.lull", "select count(*) as n from kernel")[0]["n"]
    expect("all kernels are on streams of a device", streams == everything and streams, (streams, everything))
    expect("of one device", len(ask("a.lull", "select * from device")) == 1, ask("a.lull", "select * from device"))
    first_cause("a.lull")


def a_session_may_stop_and_start_again():
    lull = runner.start([LULL, "profile", *QUIET, "--session-new", f"duty{os.getpid()}", "-o", "a", "--duty", "40%", LOOP,
                         "--steps=1000000"], env=ENV)

    def is_written():
        return any(name.endswith(".part") and os.path.exists(name) and os.path.getsize(name) > 40000 for name in os.listdir("."))

    until(is_written, "a window is written")
    for word in ("stop", "start"):
        done = runner.run([LULL, word, "--session", f"duty{os.getpid()}"])
        expect(f"lull {word}", done.returncode == 0, done.stderr)
    until(lambda: os.path.exists("a.lull") and is_written(), "another one")
    [program] = [pid for pid in runner.children(lull.pid) if runner.program_of(pid) == os.path.realpath(LOOP)]
    os.kill(program, signal.SIGTERM)
    expect("it ends as the program does", lull.wait(limit()) == 128 + signal.SIGTERM, lull.returncode)
    reports = sorted(name for name in os.listdir(".") if name.endswith(".lull"))
    expect("two reports", len(reports) == 2, os.listdir("."))
    for report in reports:
        windows_fit(report)


def shares_that_make_no_sense_are_refused():
    for words in (["--duty", "0"], ["--duty", "100%"], ["--duty", "often"], ["--budget", "-1%"],
                  ["--duty", "2%", "--steps", "active=3,wait=1"]):
        said = profile("-o", "a", *words, "true", status=2).stderr
        expect(f"{words} is refused with a hint", "such as 2%" in said or "cannot be combined" in said, said)


TESTS = (
    windows_hold_whole_steps_and_all_steps_are_counted,
    sums_stand_for_the_whole_run,
    the_first_cause_is_that_of_a_full_recording,
    a_program_without_steps_is_recorded_by_time,
    a_budget_is_kept_and_its_cost_is_said,
    a_slow_step_outside_of_windows_has_one_of_its_own,
    a_killed_recorder_leaves_windows_that_can_be_recovered,
    a_session_may_stop_and_start_again,
    shares_that_make_no_sense_are_refused,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
