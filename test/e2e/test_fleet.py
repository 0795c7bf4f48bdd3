#!/usr/bin/env python3
"""Many reports at once: lull fleet, its index, its tables and its Parquet.

Usage: test_fleet.py BUILD [NAME...]
"""
import collections
import csv
import io
import json
import os
import shutil
import sys

import runner
from runner import expect, skip

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
REPORTS = os.path.join(ROOT, "examples/reports")
NPM = os.path.join(BUILD, "npm")
LOOP = os.path.join(BUILD, "examples/train_cuda")
SIM = {**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}


def lull(*words, status=0, env=None):
    done = runner.run([LULL, *words], env=env or os.environ)
    expect(f"status of {words}", done.returncode == status, f"{done.returncode}\n{done.stderr}")
    return done


def table(by, folder, *more):
    return json.loads(lull("fleet", "--by", by, "--format", "json", *more, folder).stdout)


def make_folder():
    """Reports in folders, as jobs write them."""
    for i, name in enumerate(sorted(os.listdir(REPORTS))):
        if name.endswith(".lull"):
            os.makedirs(f"all/day{i % 2}", exist_ok=True)
            shutil.copy(os.path.join(REPORTS, name), f"all/day{i % 2}/{name}")
    return [os.path.join(path, name) for path, _, names in os.walk("all") for name in names if name.endswith(".lull")]


def costs_of(report):
    """What lull why says about one report."""
    return json.loads(lull("why", "--format", "json", report).stdout)["device"]


def sums_are_those_of_the_reports():
    files = make_folder()
    causes = collections.Counter()
    gpu_ns = 0
    for path in files:
        device = costs_of(path)
        gpu_ns += device["window_ns"]
        causes.update(device["costs_ns"])
        row = next(r for r in table("report", "all") if r["Report"] == path)
        expect(f"{path}: its GPU time", row["GPU Time (ns)"] == device["window_ns"], row)
        expect(f"{path}: what it lost", row["Lost (ns)"] == sum(device["costs_ns"].values()), row)
    found = {row["Cause"]: row["Lost (ns)"] for row in table("cause", "all")}
    expect("causes", found == {k: v for k, v in causes.items() if v}, (found, causes))
    jobs = table("job", "all")
    expect("jobs together", sum(row["Lost (ns)"] for row in jobs) == sum(causes.values()), jobs)
    lost = [row["Lost (ns)"] for row in jobs]
    expect("the worst job first", lost == sorted(lost, reverse=True), lost)
    hours = sum(row["GPU Time (h)"] for row in jobs)
    expect("GPU hours", abs(hours * 3600e9 - gpu_ns) < 1e9, (hours, gpu_ns))


def the_report_to_open_has_that_cause():
    make_folder()
    for row in table("job", "all"):
        if row["Cause"]:
            why = json.loads(lull("why", "--format", "json", row["Open"]).stdout)
            expect(f"the first cause of {row['Open']}", why["first"] == row["Cause"], (why["first"], row))


def what_was_read_is_remembered():
    files = make_folder()
    before = lull("fleet", "all").stdout
    expect("there is an index", os.path.exists("all/.lull-fleet"), os.listdir("all"))
    # Only the index can know now what was in it.
    st = os.stat(files[0])
    size = st.st_size
    with open(files[0], "wb") as f:
        f.write(b"\0" * size)
    os.utime(files[0], ns=(st.st_atime_ns, st.st_mtime_ns))
    expect("the same answer", lull("fleet", "all").stdout == before)
    expect("without the index it is damaged", "1 report is damaged" in lull("fleet", "--index=false", "all").stdout)
    os.utime(files[0])
    after = lull("fleet", "all").stdout
    expect("a file that changed is read again", "1 report is damaged" in after and os.path.basename(files[0]) in after, after)
    os.remove(files[0])
    expect("one that is gone does not count", "damaged" not in lull("fleet", "all").stdout)
    with open("all/.lull-fleet", "w") as f:
        f.write("lull-fleet\t2\tanother\n")
    expect("an index of another version is not used", "report" in lull("fleet", "all").stdout)


def damaged_reports_are_counted_and_named():
    files = make_folder()
    whole = open(files[0], "rb").read()
    for name, content in (("cut", whole[:len(whole) // 2]), ("junk", b"junk"), ("empty", b"")):
        with open(f"all/{name}.lull", "wb") as f:
            f.write(content)
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 0xff
    with open("all/broken.lull", "wb") as f:
        f.write(broken)
    said = lull("fleet", "all").stdout
    expect("all four are counted", "4 reports are damaged:" in said, said)
    for name in ("cut", "junk", "empty", "broken"):
        expect(f"{name} is named", f"  {name}.lull: " in said, said)
    states = collections.Counter(row["State"] for row in table("report", "all"))
    expect("states", states["damaged"] == 4 and states["good"] == len(files), states)


def a_report_in_windows_counts_as_the_whole_run():
    sql = "select sum(n_steps) as n, sum(n_steps + n_outside) as m, count(*) as windows from window"
    for steps in (400, 1600, 6400):  # until there are windows
        lull("profile", "-f", "-s", "none", "--cpuctxsw=none", "-o", "all", "--duty", "30%", LOOP, f"--steps={steps}", env=SIM)
        n = json.loads(lull("query", "all.lull", sql, "--format", "json").stdout)[0]
        if n["windows"] >= 2:
            break
    os.mkdir("folder")
    shutil.copy("all.lull", "folder")
    row, = table("report", "folder")
    tail = json.loads(lull("query", "all.lull", "select value from meta where key = 'duty.tail_steps'", "--format",
                           "json").stdout)[0]["value"]
    scale = (n["m"] + int(tail)) / n["n"]
    device = costs_of("all.lull")
    expect("GPU time", abs(row["GPU Time (ns)"] / (device["window_ns"] * scale) - 1) < 1e-6, (row, scale))
    expect("lost time", abs(row["Lost (ns)"] / (sum(device["costs_ns"].values()) * scale) - 1) < 1e-6, (row, scale))


def parquet_has_the_same_sums():
    if not shutil.which("node") or not os.path.isdir(os.path.join(NPM, "node_modules", "hyparquet")):
        skip("hyparquet, which reads Parquet, did not come from npm")
    make_folder()
    lull("fleet", "--parquet", "fleet.parquet", "all")
    os.symlink(os.path.join(NPM, "node_modules"), "node_modules")
    for name in ("parquet_rows.js", "package.json"):
        shutil.copy(os.path.join(ROOT, "test/npm", name), ".")
    done = runner.run(["node", "parquet_rows.js", "fleet.parquet"], check=True)
    rows = [json.loads(line)["row"] for line in done.stdout.splitlines()]
    found = collections.Counter()
    for row in rows:
        if row["cause"]:
            found[row["cause"]] += int(row["lost_ns"])
    expect("causes", dict(found) == {row["Cause"]: row["Lost (ns)"] for row in table("cause", "all")}, found)
    expect("all reports", len({row["file"] for row in rows}) == len(table("report", "all")), rows[:2])


def csv_and_empty_folders_are_fine():
    make_folder()
    rows = list(csv.DictReader(io.StringIO(lull("fleet", "--by", "job", "--format", "csv", "-n", "2", "all").stdout)))
    expect("two rows", len(rows) == 2 and rows[0]["Job"], rows)
    os.mkdir("empty")
    expect("no reports", "0 reports of 0 jobs" in lull("fleet", "empty").stdout)
    expect("no folder", "nowhere" in lull("fleet", "nowhere", status=1).stderr)


TESTS = (
    sums_are_those_of_the_reports,
    the_report_to_open_has_that_cause,
    what_was_read_is_remembered,
    damaged_reports_are_counted_and_named,
    a_report_in_windows_counts_as_the_whole_run,
    parquet_has_the_same_sums,
    csv_and_empty_folders_are_fine,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
