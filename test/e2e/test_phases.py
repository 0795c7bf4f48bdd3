#!/usr/bin/env python3
"""Phases of steps and windows of steps, on what was recorded on real devices: numbers of one command are those of others.

Usage: test_phases.py BUILD [NAME...]
"""
import csv
import io
import json
import os
import subprocess
import sys

import runner

BUILD = os.path.abspath(sys.argv[1])
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPORTS = [
    os.path.join(TEST, path)
    for path in (
        "data/torch/train.lull",
        "data/torch/dataloader_cpu.lull",
        "data/planted-native/sync_item.lull",
        "data/planted-native/optimizer_loop.lull",
        "corpus/data/gpt_char_train.lull",
        "corpus/data/distill_lm.lull",
        "corpus/data/gpt_pretrain_bf16.lull",
        "corpus/data/digits_convnet.lull",
    )
]


def lull(*words):
    run = subprocess.run([os.path.join(BUILD, "lull"), *words], capture_output=True, text=True, timeout=runner.limit())
    runner.expect(f"status of {words}", run.returncode == 0, run.stderr)
    return run.stdout


def rows(report, name, *more):
    return list(csv.DictReader(io.StringIO(lull("stats", "-q", "-f", "csv", "-r", name, *more, report))))


def number(report, sql, *more):
    return int(lull("query", "-f", "csv:nohdr", *more, report, sql))


def phases_add_up_to_the_step():
    for report in REPORTS:
        phases = rows(report, "phases")
        steps = rows(report, "steps", "--steady")
        for pid in {row["PID"] for row in phases}:
            mine = [row for row in phases if row["PID"] == pid]
            at = [(int(row["Start (ns)"]), int(row["Duration (ns)"])) for row in steps if row["PID"] == pid]
            step_ns = (sum(at[-1]) - at[0][0]) / len(at)
            sum_ns = sum(float(row["CPU Avg (ns)"]) for row in mine)
            runner.expect(f"{report}: phases of process {pid}", abs(sum_ns - step_ns) <= 0.05 * (len(mine) + 1), (sum_ns, step_ns))
            share = sum(float(row["Share (%)"]) for row in mine)
            runner.expect(f"{report}: shares of process {pid}", abs(share - 100) <= 0.05 * len(mine), share)
            runner.expect(f"{report}: rest is one row", sum(row["Phase"] == "rest" for row in mine) == 1, mine)


def steps_are_as_long_as_why_says():
    """On the device: the host of a program whose device is busy runs ahead, and its steps are shorter."""
    for report in REPORTS + [os.path.join(TEST, "data/planted/compute_bound.lull")]:
        why = json.loads(lull("why", "--format", "json", report))["steps"]
        use = rows(report, "step_use")
        runner.expect(f"{report}: steps", int(use[0]["Steps"]) == why["steady"], (use, why))
        runner.expect(f"{report}: their time", abs(float(use[0]["Step Avg (ns)"]) - why["mean_ns"]) <= 1, (use, why["mean_ns"]))
        runner.expect(f"{report}: room for its kernels", float(use[0]["Kernel Time (ns)"]) < 1.5 * why["mean_ns"], use)


def a_step_computes_what_its_operators_do():
    """FLOPs of operators that call no other product; they are the steady steps' alone."""
    report, kinds = REPORTS[0], ("mm", "addmm", "_efficient_attention_forward", "_scaled_dot_product_efficient_attention_backward")
    ops = {row["Name"]: row["FLOPs"] for row in rows(report, "ops", "--steady")}
    mfu = rows(report, "mfu")[0]
    flops = sum(float(ops["aten::" + kind]) for kind in kinds) / int(mfu["Steps"])
    runner.expect("FLOPs of a step", abs(float(mfu["FLOPs (GFLOP)"]) * 1e9 - flops) < 1e6, (mfu, flops))
    rate = flops / float(mfu["Step Avg (ns)"]) / 1e3
    runner.expect("of the peak of an H200 in float32", abs(float(mfu["MFU (%)"]) - 100 * rate / 67) < 0.1, (mfu, rate))


def phases_have_the_shares_of_nvtx_sum():
    """The same steady steps, so the same shares: a phase that is one range has the share of that range."""
    for report in REPORTS:
        shares = {row["Range"]: row["Of Step (%)"] for row in rows(report, "nvtx_sum")}
        for row in rows(report, "phases"):
            if row["Phase"] == "rest":
                continue
            mine, whole = float(row["Share (%)"]), float(shares[row["Phase"]])
            # A range may also be open inside another phase; as a phase it never has more.
            runner.expect(f"{report}: {row['Phase']}", mine <= whole + 0.11, (mine, whole))


def backward_has_its_work():
    for report in REPORTS[:2] + REPORTS[4:6]:
        work = {row["Phase"]: float(row["GPU Time (ns)"]) for row in rows(report, "phases")}
        runner.expect(f"{report}: backward takes longer than forward on the device", work["torch:backward"] > work["torch:forward"] > 0, work)


def windows_of_all_commands_agree():
    for report in REPORTS:
        for window in (("--steady",), ("--steps", rows(report, "steps")[-2]["Step"])):
            kernels = rows(report, "cuda_gpu_kern_sum", *window)
            told = sum(int(row["Instances"]) for row in kernels), sum(int(row["Total Time (ns)"]) for row in kernels)
            asked = number(report, "SELECT count(*) FROM kernels", *window), number(report, "SELECT sum(dur) FROM kernels", *window)
            runner.expect(f"{report} {window}: stats and query", told == asked, (told, asked))
            exported = lull("export", "-t", "csv", "--tables", "kernel", "-o", "-", *window, report)
            runner.expect(f"{report} {window}: stats and export", exported.count("\n") - 1 == told[0], told)


def a_window_of_each_step_has_that_step():
    for report in REPORTS[:3]:
        for row in rows(report, "steps"):
            inside = rows(report, "steps", "--steps", row["Step"])
            runner.expect(f"{report}: step {row['Step']}", inside == [row], inside)


TESTS = (
    phases_add_up_to_the_step,
    steps_are_as_long_as_why_says,
    a_step_computes_what_its_operators_do,
    phases_have_the_shares_of_nvtx_sum,
    backward_has_its_work,
    windows_of_all_commands_agree,
    a_window_of_each_step_has_that_step,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
