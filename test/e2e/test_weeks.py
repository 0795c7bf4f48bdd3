#!/usr/bin/env python3
"""A guest for weeks: lull is replaced under running programs, clocks jump, thousands of processes come and go.

Usage: test_weeks.py BUILD [NAME...]
"""
import glob
import json
import os
import re
import shutil
import signal
import struct
import sys

import runner
from runner import expect, limit, until, until_file

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
REPORT = os.path.join(ROOT, "examples/reports/sync_item.lull")
LOOP = os.path.join(BUILD, "examples/train_cuda")
SIM = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
QUIET = ["-s", "none", "--cpuctxsw=none", "--python-sampling=false"]


def ask(report, sql):
    return json.loads(runner.run([LULL, "query", report, sql, "--format", "json"], check=True).stdout)


def session_of(p):
    """The folder of the session that this recorder has."""
    def find():
        return [path for path in glob.glob(f"/dev/shm/lull-*-{p.pid}-*") + glob.glob(f"/tmp/lull-*-{p.pid}-*")
                if os.path.exists(os.path.join(path, "control"))]
    return until(find, "the session is there")[0]


def waiting(*words, lull=LULL, after="/bin/echo second"):
    """A recorded program that waits for the file "go" between two processes; and its session."""
    p = runner.start([lull, "profile", *QUIET, *words, "-o", "a", "sh", "-c",
                      f"/bin/echo first; : > here; until [ -e go ]; do sleep 0.02; done; {after}; exit 3"])
    session = session_of(p)
    until_file("here")
    return p, session


def finish(p):
    open("go", "w").close()
    status = p.wait(limit())
    expect("the program's own status", status == 3, status)
    return ask("a.lull", "select cmdline, has_agent from process")


def a_recorder_of_another_version_is_left_alone():
    p, session = waiting()
    with open(os.path.join(session, "control"), "r+b") as f:
        magic, = struct.unpack("=I", f.read(4))
        f.seek(0)
        f.write(struct.pack("=I", magic ^ 0x01000000))
    rows = finish(p)
    has = {row["cmdline"].split("\0")[0].split()[-1]: row["has_agent"] for row in rows if "echo" in row["cmdline"]}
    expect("the first process has an agent", has.get("first") == 1, rows)
    expect("what came after the change has none, or is not known", not has.get("second"), rows)


def an_agent_that_is_replaced_works_on():
    done = runner.run([LULL, "profile", "-q", "-o", "p", "printenv", "LULL_AGENT"], check=True)
    agent = done.stdout.strip()
    os.makedirs("bin")
    for path in (LULL, agent):
        shutil.copy(path, "bin")
    p, _ = waiting(lull=os.path.abspath("bin/lull"))
    # As a package manager does: a new file in place of the old one, which stays mapped.
    name = os.path.join("bin", os.path.basename(agent))
    shutil.copy(agent, name + ".new")
    os.rename(name + ".new", name)
    os.rename("bin/lull", "bin/lull.old")
    rows = finish(p)
    agents = [row["has_agent"] for row in rows if row["cmdline"].startswith("/bin/echo")]
    expect("both have an agent", agents == [1, 1], rows)


def an_agent_that_is_gone_harms_nobody():
    done = runner.run([LULL, "profile", "-q", "-o", "p", "printenv", "LULL_AGENT"], check=True)
    os.makedirs("bin")
    for path in (LULL, done.stdout.strip()):
        shutil.copy(path, "bin")
    p, _ = waiting(lull=os.path.abspath("bin/lull"))
    shutil.rmtree("bin")
    finish(p)


def thousands_of_short_processes_leave_nothing():
    p = runner.start([LULL, "profile", *QUIET, "-o", "a", "sh", "-c",
                      "until [ -e go ]; do sleep 0.02; done; i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done; exit 3"])
    session = session_of(p)
    rows = finish(p)
    n = sum(re.search(r"/true$", row["cmdline"].replace("\0", "").strip()) is not None for row in rows)
    expect("each is in the report", n == 400, n)
    expect("all with an agent", all(row["has_agent"] for row in rows if "/bin/true" in row["cmdline"]))
    expect("nothing is left in shared memory", not os.path.exists(session), session)


def images_of_dead_processes_go_while_others_run():
    p = runner.start([LULL, "profile", *QUIET, "--duty", "5%", "-o", "a", "sh", "-c",
                      "i=0; while [ $i -lt 150 ]; do /bin/true; i=$((i+1)); done; : > here; "
                      "until [ -e go ]; do sleep 0.02; done; exit 3"])
    session = session_of(p)
    until_file("here")
    until(lambda: len(glob.glob(os.path.join(session, "*.image"))) <= 2, "images of those that ended are removed")
    finish(p)


def a_clock_that_jumps_removes_no_reports():
    os.makedirs("reports")
    for i in range(3):
        shutil.copy(REPORT, f"reports/{i}.lull")
    env = {**SIM, "LD_PRELOAD": os.path.join(BUILD, "e2e/part/libjump.so"), "LULL_SIM_NVML_PIDS": "/dev/null"}
    daemon = runner.start([LULL, "fleetd", "--every", "50ms", "--keep-age", "14d", "--otlp", "otlp.json", "reports"], env=env)

    def told():
        return int(json.load(open("otlp.json"))["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["gauge"]
                   ["dataPoints"][0]["timeUnixNano"])

    until_file("otlp.json")
    before = told()
    open("jump", "w").close()
    # Two rounds after it: what a round removes would be gone.
    until(lambda: told() > before + 300 * 86400 * 10**9, "the clock has jumped")
    again = told()
    until(lambda: told() > again, "another round")
    daemon.send_signal(signal.SIGTERM)
    expect("it ends", daemon.wait(limit()) == 0, daemon.returncode)
    expect("all reports are there", len(glob.glob("reports/*.lull")) == 3, os.listdir("reports"))


def a_clock_that_jumps_does_not_bend_a_recording():
    env = {**SIM, "LD_PRELOAD": os.path.join(BUILD, "e2e/part/libjump.so")}
    p = runner.start([LULL, "profile", *QUIET, "-o", "a", "sh", "-c", "/bin/true; : > jump; /bin/true; : > here; exit 3"], env=env)
    expect("the program's own status", p.wait(limit()) == 3, p.returncode)
    rows = ask("a.lull", "select start_ns, end_ns from process")
    expect("times are those of a clock that nobody sets", all(row["end_ns"] < 3600 * 10**9 for row in rows), rows)


TESTS = (
    a_recorder_of_another_version_is_left_alone,
    an_agent_that_is_replaced_works_on,
    an_agent_that_is_gone_harms_nobody,
    thousands_of_short_processes_leave_nothing,
    images_of_dead_processes_go_while_others_run,
    a_clock_that_jumps_removes_no_reports,
    a_clock_that_jumps_does_not_bend_a_recording,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
