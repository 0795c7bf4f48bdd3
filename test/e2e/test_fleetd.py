#!/usr/bin/env python3
"""lull fleetd on the simulated NVML: who is recorded, what is kept, what is told.

A script stands in for lull attach: it waits as long as it is told, or until it is interrupted, and leaves a report.
Usage: test_fleetd.py BUILD [NAME...]
"""
import glob
import json
import os
import re
import shutil
import signal
import sys
import urllib.request

import runner
from runner import expect, limit, until

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
REPORT = os.path.join(ROOT, "examples/reports/sync_item.lull")
ENV = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), "LULL_SIM_NVML_PIDS": "pids"}

ATTACH = """#!/bin/sh
# PID OUTPUT SECONDS
finish() { cp {report} "$2.lull" && rm -f "$2.lull.part"; echo "done $1" >> log; exit 0; }
echo "start $1" >> log
[ "$3" = fail ] && exit 1
trap 'finish "$1" "$2"' INT
: > "$2.lull.part"
for i in $(seq "$3"); do sleep 0.1; done
finish "$1" "$2"
"""


def words_of(pid):
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
        return f.read().split("\0")[:-1]


def set_up(*commands):
    """GPU processes that run these commands; their pids."""
    with open("attach", "w") as f:
        f.write(ATTACH.replace("{report}", REPORT))
    os.chmod("attach", 0o755)
    os.makedirs("reports", exist_ok=True)
    pids = [runner.start(command).pid for command in commands]
    for pid, command in zip(pids, commands):  # a moment after Python has heard that it runs
        until(lambda: words_of(pid) == command, "it has its arguments")
    with open("pids", "w") as f:
        f.write("\n".join(map(str, pids)))
    return pids


def fleetd(*words, status=0):
    done = runner.run([LULL, "fleetd", *words, "reports"], env=ENV)
    expect(f"status of {words}", done.returncode == status, f"{done.returncode}\n{done.stderr}")
    return done


def log():
    return open("log").read().splitlines() if os.path.exists("log") else []


def reports():
    return [os.path.join(path, name) for path, _, names in os.walk("reports") for name in names if name.endswith(".lull")]


def a_dry_run_lists_what_would_happen():
    pids = set_up(["sleep", "1001"], ["sleep", "1002"], ["sleep", "1003"])
    with open("policy", "w") as f:
        f.write("skip cmdline=1001\nrecord label=two cmdline=1002 budget=0.1%\n")
    rows = json.loads(fleetd("--policy", "policy", "--dry-run", "--format", "json").stdout)
    found = {row["PID"]: row for row in rows}
    expect("all three", sorted(found) == sorted(pids), found)
    expect("skipped", found[pids[0]]["Choice"] == "skip" and found[pids[0]]["Rule"] == "line 1", found)
    run = found[pids[1]]["Would Run"]
    expect("the command", re.fullmatch(rf"lull attach --budget 0.1% -d 600 -o reports/two/\S+-{pids[1]}-\S+ {pids[1]}", run), run)
    expect("no rule", found[pids[2]]["Choice"] == "no rule", found)
    expect("nothing happened", not log() and not reports())


def processes_are_recorded_again_and_again_and_bounds_hold():
    pids = set_up(["sleep", "1001"], ["sleep", "1002"])
    size = os.path.getsize(REPORT)
    daemon = runner.start([LULL, "fleetd", "--attach", "./attach {pid} {output} 1", "--every", "1s", "--keep-bytes",
                           str(3 * size + 100), "reports"], env=ENV)
    until(lambda: all(log().count(f"done {pid}") >= 3 for pid in pids), "each is recorded again and again")
    daemon.send_signal(signal.SIGTERM)
    expect("it ends", daemon.wait(limit()) == 0, daemon.returncode)
    expect("space is bounded, but for what came after the last look", len(reports()) <= 3 + 2, reports())


def what_is_told_is_what_the_reports_say():
    set_up(["sleep", "1001"])
    daemon = runner.start([LULL, "fleetd", "--attach", "./attach {pid} {output} 1", "--every", "500ms", "--metrics-port", "0",
                           "--otlp", "otlp.json", "--at-once", "1", "reports"], env=ENV, stderr=open("err", "w"))
    url = until(lambda: re.search(r"http://\S+", open("err").read()), "the port is said")[0]

    def read():
        with urllib.request.urlopen(url, timeout=limit()) as answer:
            return dict(re.findall(r"^(\S+(?:\{.*\})?) (\S+)$", answer.read().decode(), re.M))

    until(lambda: float(read().get("lull_fleet_reports", 0)) >= 2, "two reports are told")
    daemon.send_signal(signal.SIGTERM)
    expect("it ends", daemon.wait(limit()) == 0, daemon.returncode)
    otlp = json.load(open("otlp.json"))["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    told = {m["name"]: (m.get("gauge") or m.get("sum"))["dataPoints"] for m in otlp}
    said = runner.run([LULL, "fleet", "--by", "cause", "--format", "json", "reports"], check=True).stdout
    for row in json.loads(said):
        point = next(p for p in told["lull.job.lost"]
                     if {"key": "cause", "value": {"stringValue": row["Cause"]}} in p["attributes"])
        expect(row["Cause"], abs(point["asDouble"] * 1e9 / row["Lost (ns)"] - 1) < 1e-6, (point, row))
    expect("all reports", told["lull.fleet.reports"][0]["asDouble"] == len(reports()), told["lull.fleet.reports"])
    expect("a step", told["lull.job.step"][0]["asDouble"] > 0, told["lull.job.step"])


def an_end_waits_for_recordings():
    pid, = set_up(["sleep", "1001"])
    daemon = runner.start([LULL, "fleetd", "--attach", "./attach {pid} {output} 6000", "--every", "300ms", "reports"], env=ENV)
    until(lambda: log() == [f"start {pid}"], "the recording is on")
    until(lambda: any(name.endswith(".part") for path, _, names in os.walk("reports") for name in names), "it writes")
    daemon.send_signal(signal.SIGTERM)
    expect("it ends well", daemon.wait(limit()) == 0, daemon.returncode)
    expect("and the report is there", len(reports()) == 1 and log()[-1] == f"done {pid}", (reports(), log()))


def what_fails_is_tried_less_and_less():
    pid, = set_up(["sleep", "1001"])
    for every in ("150ms", "600ms", "2400ms"):  # one that has no CPU before the last round is over has not begun
        fleetd("--attach", "./attach {pid} {output} fail", "--every", every, "--rounds", "12", "--otlp", "otlp.json")
        n = log().count(f"start {pid}")
        if n:
            break
    expect("at most four tries in twelve rounds", 1 <= n <= 4, log())
    fleetd("--attach", "./nobody {pid} {output}", "--every", "50ms", "--rounds", "2")


def recorder_of(daemon):
    """The lull attach that it runs, None if there is none; it also has children that ask the driver."""
    for pid in runner.children(daemon.pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if b"attach" in f.read().split(b"\0"):
                    return pid
        except OSError:
            pass  # it has ended
    return None


def what_a_killed_recorder_leaves_is_made_a_report():
    pid, = set_up([sys.executable, "-c", "import time\nwhile True: time.sleep(0.005)"])
    daemon = runner.start([LULL, "fleetd", "--attach", f"{LULL} attach -q -d 600 -o {{output}} {{pid}}", "--every", "200ms",
                           "reports"], env=ENV)
    recorder = until(lambda: recorder_of(daemon), "a recorder comes")

    def memory():
        return glob.glob(f"/dev/shm/lull-*-{recorder}-*/*")
    until(lambda: re.search(f",{recorder},.*recording", runner.run([LULL, "sessions", "-f", "csv"]).stdout), "it records")
    os.kill(recorder, signal.SIGKILL)
    until(reports, "the report is whole")
    until(lambda: not memory(), "its memory is free again")
    told = runner.run([LULL, "info", reports()[0]])
    expect("it can be read", told.returncode == 0 and str(pid) in told.stdout, told)
    daemon.send_signal(signal.SIGTERM)
    expect("it ends well", daemon.wait(limit()) == 0, daemon.returncode)


def what_was_left_long_ago_is_made_a_report():
    """As after the machine went down in the middle of recordings."""
    set_up()
    with open(REPORT, "rb") as f:
        data = f.read()
    parts = {"reports/cut.lull.part": data[:len(data) * 2 // 3], "reports/nothing.lull.part": b"", "reports/now.lull.part": data}
    for path, content in parts.items():
        with open(path, "wb") as f:
            f.write(content)
        if "now" not in path:
            os.utime(path, (os.path.getmtime(path) - 7200,) * 2)
    daemon = runner.start([LULL, "fleetd", "--attach", "./attach {pid} {output} 1", "--every", "100ms", "reports"], env=ENV)
    until(reports, "the report is whole")
    daemon.send_signal(signal.SIGTERM)
    expect("it ends well", daemon.wait(limit()) == 0, daemon.returncode)
    expect("its name", reports() == ["reports/cut.lull"], reports())
    expect("it can be read", runner.run([LULL, "info", "reports/cut.lull"]).returncode == 0)
    left = sorted(name for name in os.listdir("reports") if name.endswith(".part"))
    expect("what is new or empty stays", left == ["nothing.lull.part", "now.lull.part"], left)


def words_that_make_no_sense_are_refused():
    set_up()
    for words in (["--share", "0"], ["--budget", "x"], ["--keep-bytes", "1Q"], ["--every", "soon"], ["--attach", "x"],
                  ["--policy", "nowhere"]):
        done = runner.run([LULL, "fleetd", *words, "reports"], env=ENV)
        expect(f"{words} is refused", done.returncode in (1, 2) and done.stderr.count("\n") == 1, done.stderr)
    with open("policy", "w") as f:
        f.write("record\nrecord cmdline=(\n")
    expect("the line of a bad rule", "policy:2: " in fleetd("--policy", "policy", status=2).stderr)
    shutil.rmtree("reports")
    expect("no folder", "is no folder" in fleetd(status=1).stderr)


def examples_are_understood():
    set_up()
    folder = os.path.join(ROOT, "examples/fleet")
    unit = re.search(r"^ExecStart=\S+ fleetd (.*)$", open(os.path.join(folder, "lull-fleetd.service")).read(), re.M)[1]
    pod = re.search(r"args: \[fleetd, (.*?)\]", open(os.path.join(folder, "daemonset.yaml")).read(), re.S)[1]
    for words in (unit.split(), re.sub(r'[",\n]', " ", pod).split()):
        expect("the folder comes last", words[-1] == "/var/lib/lull", words)
        words = [word.replace("/etc/lull/policy", os.path.join(folder, "policy")) for word in words[:-1]]
        fleetd(*words, "--dry-run")
    rules = re.search(r"policy: \|\n((?:    .*\n)+)", open(os.path.join(folder, "daemonset.yaml")).read())[1]
    with open("policy", "w") as f:
        f.write(rules)
    fleetd("--policy", "policy", "--dry-run")


def a_week_in_short():
    done = runner.run([os.path.join(ROOT, "tools/fleet-week"), "--build", BUILD, "--jobs", "4", "--seconds", "5", "--every", "0.5",
                       "--keep-bytes", "100K"], seconds=300)
    expect("sums, space and memory are as they should be", done.returncode == 0, done.stdout + done.stderr)
    expect("it says how much that was", "reports of" in done.stdout, done.stdout)


TESTS = (
    a_week_in_short,
    examples_are_understood,
    a_dry_run_lists_what_would_happen,
    processes_are_recorded_again_and_again_and_bounds_hold,
    what_is_told_is_what_the_reports_say,
    an_end_waits_for_recordings,
    what_fails_is_tried_less_and_less,
    what_a_killed_recorder_leaves_is_made_a_report,
    what_was_left_long_ago_is_made_a_report,
    words_that_make_no_sense_are_refused,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
