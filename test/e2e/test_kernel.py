#!/usr/bin/env python3
"""lull kernel on the simulated device: what is chosen, measured, sampled, refused and ended.

Usage: test_kernel.py BUILD [NAME...]
"""
import json
import os
import re
import shlex
import sys
import tempfile
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL, TRAIN, LAUNCHES = BUILD + "/lull", BUILD + "/examples/train_cuda", BUILD + "/e2e/launches"
STEPS = [TRAIN, "--steps=4", "--fixed"]


class Kernel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lull-test-")
        self.addCleanup(self.folder.cleanup)

    def run_lull(self, *words, status=0, **knobs):
        env = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", LULL_CUPTI_PATH=BUILD + "/sim/libcupti.so.13", **knobs)
        done = runner.run([LULL, *words], env=env, cwd=self.folder.name)
        self.assertEqual(done.returncode, status, (words, done.stdout[-500:], done.stderr[-500:]))
        return done.stdout + done.stderr

    def measure(self, *words, status=0, **knobs):
        return self.run_lull("kernel", "-f", "-o", "a", *words, status=status, **knobs)

    def rows(self, table):
        self.run_lull("export", "-f", "true", "-t", "jsonlines", "--tables", table, "-o", "t.jsonl", "a.lull")
        with open(self.folder.name + "/t.jsonl", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def names(self):
        launches = {r["id"]: r["name"] for r in self.rows("launch")}
        return [launches[r["launch"]] for r in self.rows("profiled")]

    def counters(self):
        found = {}
        for row in self.rows("kmetric"):
            found.setdefault(row["profiled_id"], {})[row["key"] or row["name"]] = row["value"]
        return found

    def checksum(self, text):
        return [w for w in text.split() if w.startswith("checksum=")][0]

    # ---- which launches ----

    def test_skip_and_count_choose_among_the_launches_of_a_name(self):
        said = self.measure("-k", "matmul", "-s", "2", "-c", "3", *STEPS)
        self.assertRegex(said, "; 3 launches in [0-9]+ passes, .* a launch, .* a pass")
        self.assertEqual(self.names(), ["matmul"] * 3)
        everything = self.rows("profiled")
        self.measure("-k", "matmul", *STEPS)
        self.assertEqual([r["ordinal"] for r in self.rows("profiled")][2:5], [r["ordinal"] for r in everything])

    def test_a_name_may_be_an_expression(self):
        self.measure("-k", "regex:^(relu|axpy)", "-c", "8", "--metrics", "duration", *STEPS)
        self.assertEqual(len(self.names()), 8)
        self.assertTrue(all(n.startswith(("relu", "axpy")) for n in self.names()), self.names())

    def test_without_a_filter_every_launch_is_measured(self):
        self.measure("--metrics", "duration", *STEPS)
        rows = self.rows("profiled")
        self.assertEqual([r["ordinal"] for r in rows], list(range(1, len(rows) + 1)))
        self.assertGreater(len(rows), 20)

    def test_only_launches_inside_a_range(self):
        self.measure("--nvtx-include", "forward", "--metrics", "duration", *STEPS)
        labels = {r["id"]: r["name"] for r in self.rows("label")}
        self.assertEqual({labels.get(r["range"]) for r in self.rows("profiled")}, {"forward"})
        self.measure("--nvtx-include", "regex:^(forw|optim)", "--metrics", "duration", *STEPS)
        labels = {r["id"]: r["name"] for r in self.rows("label")}
        self.assertEqual({labels.get(r["range"]) for r in self.rows("profiled")}, {"forward", "optimizer"})

    def test_captured_launches_are_left_alone_and_threads_wait_for_each_other(self):
        said = self.measure("--metrics", "duration", LAUNCHES, "5")
        n = int([w for w in said.split() if w.startswith("kernels=")][0][8:])
        rows = self.rows("profiled")
        self.assertEqual(len(rows), n)
        self.assertTrue(all(r["status"] == 0 and r["n_passes"] == 1 for r in rows))

    def test_another_device_is_not_measured(self):
        said = self.measure("--device", "1", *STEPS, status=1)
        self.assertIn("launches was measured", said)

    def test_the_kernels_that_matter_in_a_timeline(self):
        self.run_lull("profile", "-q", "-o", "timeline", *STEPS)
        self.measure("--from", "timeline.lull", "--top", "2", *STEPS)
        names = self.names()
        self.assertEqual(len(set(names)), 2)
        self.assertIn("matmul", names)
        self.assertTrue(all(r["ordinal"] > 1 for r in self.rows("profiled")))
        # Their time without counters is that of the timeline.
        said = self.run_lull("kernel", "--from", "timeline.lull", "-k", "matmul", "a.lull")
        took = self.run_lull("query", "-f", "csv", "timeline.lull",
                             "SELECT count(*) FROM kernels WHERE name = 'matmul' GROUP BY grid_x, grid_y").split()
        found = re.search(r"Usually +[0-9.]+ [mu]s on average without counters, in ([0-9]+) launch", said)
        self.assertIn(found[1], took)
        self.assertNotIn("Usually", self.run_lull("kernel", "a.lull"))

    # ---- what is measured ----

    def test_values_are_those_of_the_launch(self):
        self.measure("-k", "matmul", "-c", "1", "--set", "full", *STEPS)
        row = self.rows("profiled")[0]
        values = self.counters()[1]
        launch = self.rows("launch")[0]
        warps = launch["grid_x"] * launch["grid_y"] * launch["block_x"] * launch["block_y"] // 32
        self.assertEqual(values["warps_launched"], warps)
        self.assertEqual(values["duration"], row["dur_ns"])
        self.assertEqual(row["sm_clock_hz"], 10 ** 9)
        self.assertEqual(launch["registers"], 32)
        self.assertEqual(row["n_passes"], -(-len(values) // 10))

    def test_kernels_of_libraries_have_their_registers(self):
        for knob in ("1", "2"):
            self.measure("-c", "1", "--metrics", "duration", *STEPS, LULL_SIM_KERNEL_HANDLES=knob)
            self.assertEqual(self.rows("launch")[0]["registers"], 32)

    def test_a_metric_by_cuptis_name_and_one_that_has_no_value(self):
        self.measure("-c", "1", "--metrics", "sm__foo.sum,lrc__average_ilc_input_sector_success_rate.pct", *STEPS)
        values = self.counters()[1]
        self.assertIn("sm__foo.sum", values)
        self.assertNotIn("lrc__average_ilc_input_sector_success_rate.pct", values)

    def test_the_values_of_metrics_that_were_asked_for_are_printed(self):
        names = "duration,dram__bytes.sum,sm__foo.sum"
        said = self.measure("-c", "2", "--metrics", names, *STEPS)
        value = self.counters()[1]
        self.assertRegex(said, r"(?m)^  duration +[0-9.]+ [mu]s$")
        self.assertRegex(said, rf"(?m)^  sm__foo.sum +{value['sm__foo.sum']:.2f}$")
        self.assertNotIn("what limits it is not known", said)
        lines = self.run_lull("kernel", "--import", "a.lull", "--metrics", names, "--csv").split("\n")
        self.assertEqual([line.split(",")[3] for line in lines[1:7]], names.split(",") * 2)
        self.assertEqual(float(lines[3].split(",")[5]), value["sm__foo.sum"])
        lines = self.run_lull("kernel", "--metrics", names, "--csv", "--page", "raw", "a.lull").split("\n")
        self.assertEqual(lines[0], "ID,Kernel Name,duration (ns),dram__bytes.sum,sm__foo.sum")
        self.assertEqual(float(lines[1].split(",")[4]), value["sm__foo.sum"])
        out = self.run_lull("kernel", "--format", "json", "a.lull")
        launches = json.loads(out[:out.rindex("}") + 1])["launches"]
        self.assertEqual(launches[0]["metrics"]["sm__foo.sum"], value["sm__foo.sum"])
        self.assertRegex(self.run_lull("kernel", "--metrics", "sm_throughput", "a.lull"), "sm_throughput +not measured")

    def test_a_metric_that_is_none_is_refused_with_near_names(self):
        for name, part in (("dram_throughputs", "'dram_throughputs'; near names: dram_throughput, "),
                           ("smsp__warps_lanched.sum", "near names: smsp__warps_launched, "),
                           ("zzz", "there is no metric 'zzz'; lull kernel --list-metrics"),
                           ("regex:x", "name the metrics, or all that begin alike"),
                           ("sm_busy", "computed from several metrics; measure --set full")):
            self.assertIn(part, self.measure("--metrics", name, *STEPS, status=2))

    def test_another_name_is_taken_where_the_chip_lacks_the_first(self):
        self.measure("-c", "1", "--section", "speed", *STEPS, LULL_SIM_NO_METRICS="gpu__dram_throughput,sm__throughput")
        names = {r["key"]: r["name"] for r in self.rows("kmetric")}
        self.assertTrue(names["dram_throughput"].startswith("dram__throughput"))
        self.assertNotIn("sm_throughput", names)

    def test_the_program_computes_what_it_computes_without_us(self):
        plain = runner.run(STEPS, env=dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim")).stdout
        self.assertEqual(self.checksum(self.measure("--metrics", "duration", *STEPS)), self.checksum(plain))

    def test_the_program_runs_once_for_each_pass(self):
        said = self.measure("--replay", "application", "-k", "matmul", "-c", "2", *STEPS)
        self.assertIn("run 5 of", said)
        rows = self.rows("profiled")
        self.assertEqual([(r["replay"], r["status"]) for r in rows], [(2, 0)] * 2)
        self.assertEqual(said.count("RESULT"), rows[0]["n_passes"])
        self.assertEqual(len(self.counters()[2]), len(self.counters()[1]))

    # ---- as people type it ----

    def test_command_lines_of_other_tools_need_another_word_only(self):
        lines = ("""{lull} --set full \\
--kernel-name "matmul" \\
--launch-skip 5 \\
--launch-count 3 \\
--output profile_kernel \\
{program}""", "{lull} --import profile_kernel.ncu-rep --print-summary per-kernel",
                 "{lull} --import profile_kernel.ncu-rep --csv --page raw",
                 "{lull} --import profile_kernel.ncu-rep --csv --page details",
                 "{lull} --set roofline --kernel-name regex:relu --launch-count 1 -f --output other {program}")
        env = dict(os.environ, LD_LIBRARY_PATH=BUILD + "/sim", LULL_CUPTI_PATH=BUILD + "/sim/libcupti.so.13")
        said = [runner.run(["sh", "-c", line.format(lull=shlex.quote(LULL) + " kernel", program=shlex.join(STEPS))], env=env,
                           cwd=self.folder.name) for line in lines]
        self.assertEqual([s.returncode for s in said], [0] * len(lines), [s.stderr[-200:] for s in said])
        self.assertIn("; 3 launches in ", said[0].stderr)
        self.assertRegex(said[1].stdout, "matmul")
        self.assertEqual(len(said[2].stdout.splitlines()), 4)
        self.assertGreater(len(said[3].stdout.splitlines()), 100)

    def test_options_of_other_tools_are_taken_or_answered(self):
        self.measure("--apply-rules", "yes", "--import-source", "on", "--profile-from-start", "on", "--print-units=base",
                     "--kernel-name-base", "function", "--verbose", "--kernel-id", "::matmul:3", "--metrics", "duration",
                     *STEPS)
        self.assertEqual(self.names(), ["matmul"])
        one = self.rows("profiled")[0]["ordinal"]
        self.measure("-k", "matmul", "-s", "2", "-c", "1", "--metrics", "duration", *STEPS)
        self.assertEqual(self.rows("profiled")[0]["ordinal"], one)
        self.measure("--kernel-id", "::regex:^(relu|axpy):2", "--metrics", "duration", *STEPS)
        self.assertEqual(len(self.names()), 1)
        for words, part in ((["--kernel-id", "1:7:matmul:2"], "write ::NAME:N"), (["--kernel-id", "matmul"], "write ::NAME:N"),
                            (["--kernel-id", "::matmul:x"], "write ::NAME:N"),
                            (["--profile-from-start", "off"], "use --replay range"),
                            (["--kernel-name-base", "mangled"], "use --kernel-name regex:EXPR"),
                            (["--launch-skip-before-match", "3"], "use --launch-skip"),
                            (["--nvtx-exclude", "x"], "use --nvtx-include"), (["--log-file", "x"], "> FILE"),
                            (["--list-rules"], "lull kernel --verdicts"), (["--open-in-ui"], "lull view REPORT")):
            said = self.run_lull("kernel", *words, *STEPS, status=2)
            self.assertIn(part, said)
            self.assertEqual(said.count("\n"), 1)

    # ---- ranges as one ----

    def test_a_range_between_calls_of_the_profiler_is_one_piece_of_work(self):
        said = self.measure("--replay", "range", "--metrics", "warps_launched", LAUNCHES, "9", LAUNCHES_PROFILER="1")
        counts = {k: int(v) for k, v in (w.split("=") for w in said.split() if w.count("=") == 1) if v.isdigit()}
        row, = self.rows("profiled")
        n = counts["kernels"] + counts["graphs"]
        self.assertEqual((row["n_launches"], row["n_launches_least"], row["replay"], row["status"]), (n, n, 3, 0))
        # Each of 4 threads has blocks of one warp: i % 7 + 1 in round i; graphs of 1 + 2 + 3 in the first and the last.
        self.assertEqual(self.counters()[1]["warps_launched"], 4 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 1 + 2) + 4 * 2 * 6)
        self.assertEqual(said.count("graph_kernels="), 1)  # one pass: one run
        self.assertIn("cudaProfilerStart to Stop\n  range 1,", said)

    def test_a_named_range_is_measured_in_as_many_runs_as_passes(self):
        said = self.measure("--replay", "range", "--nvtx-include", "forward", "-s", "1", "-c", "2", *STEPS)
        rows = self.rows("profiled")
        self.assertEqual([r["ordinal"] for r in rows], [2, 3])
        self.assertEqual(said.count("RESULT"), rows[0]["n_passes"])
        self.assertEqual({r["n_launches"] for r in rows}, {4})
        self.assertRegex(said, "2 ranges in [0-9]+ passes, .* a range, .* a pass")
        text = self.run_lull("kernel", "--format", "json", "a.lull")
        launch = json.loads(text[:text.rindex("}") + 1])["launches"][0]
        self.assertEqual((launch["kernel"], launch["n_launches"]), ("forward", 4))

    def test_kernels_of_a_range_overlap_unless_metrics_forbid_it(self):
        said = self.measure("--replay", "range", "--nvtx-include", "forward", "-c", "1", *STEPS)
        names = {r["key"]: r["name"] for r in self.rows("kmetric")}
        self.assertFalse([n for n in names.values() if n.startswith("smsp__sass_")])
        self.assertIn("smsp__inst_executed_op_local_ld.sum", names["local_ld_inst"])
        self.assertNotIn("do not overlap", said)
        said = self.measure("--replay", "range", "--nvtx-include", "forward", "-c", "1", "--metrics", "op_ffma", *STEPS)
        self.assertIn("do not overlap", said)
        self.assertIn("op_ffma", {r["key"] for r in self.rows("kmetric")})

    def test_runs_that_differ_are_said(self):
        turn = 'if test -e turn; then rm turn; exec "$0" 5; else : >turn; exec "$0" 6; fi'
        said = self.measure("--replay", "range", "--section", "speed", "sh", "-c", turn, LAUNCHES, LAUNCHES_PROFILER="1")
        row, = self.rows("profiled")
        self.assertEqual((row["n_launches"], row["n_launches_least"]), (4 * 6 + 4, 4 * 5 + 4))
        self.assertIn("28 launches in one run and 24 in another: its numbers are of different work",
                      " ".join(said.split()))

    def test_a_range_whose_counters_are_refused_has_its_duration(self):
        said = self.measure("--replay", "range", "--nvtx-include", "forward", "-c", "1", *STEPS,
                            LULL_SIM_PROFILER="denied")
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", said)
        row, = self.rows("profiled")
        self.assertEqual((row["status"], row["n_launches"]), (1, 4))
        self.assertGreater(row["dur_ns"], 0)

    def test_a_run_that_fails_is_the_last(self):
        turn = 'echo x >>turns; if test $(wc -l <turns) = 3; then exit 5; fi; exec "$@"'
        for how in (["application", "-k", "matmul"], ["range", "--nvtx-include", "forward"]):
            said = self.measure("--replay", *how, "-c", "1", "sh", "-c", turn, "sh", *STEPS, status=5)
            self.assertRegex(said, "run 3 of [0-9]+ ended with status 5; all runs are needed")
            self.assertFalse(os.path.exists(self.folder.name + "/a.lull"))
            os.unlink(self.folder.name + "/turns")

    def test_a_range_that_never_ends_is_ended(self):
        said = self.measure("--replay", "range", "--timeout", "1", LAUNCHES, "200", "10000", status=1,
                            LAUNCHES_PROFILER="1")
        self.assertIn("the range cudaProfilerStart to Stop did not end within 1 s", said)

    def test_a_range_that_never_comes(self):
        self.assertIn("cudaProfilerStart()", self.measure("--replay", "range", *STEPS, status=1))
        self.assertIn("no range was measured", self.measure("--replay", "range", "--nvtx-include", "nosuch", *STEPS,
                                                            status=1))

    # ---- samples ----

    def test_samples_of_measured_kernels_come_from_a_run_of_their_own(self):
        said = self.measure("--set", "detailed", "-k", "matmul", "-s", "1", "-c", "2", *STEPS)
        self.assertEqual(said.count("RESULT"), 2)
        samples = [(r["profiled_id"], r["stall"], r["n_samples"]) for r in self.rows("pcsample")]
        each = [("long_scoreboard", 90), ("selected", 10), ("no_instruction", 10)]
        self.assertEqual(sorted(samples), sorted((i, *s) for i in (1, 2) for s in each))
        self.assertTrue(all(r["function"] == "matmul" for r in self.rows("pcsample")))

    def test_instructions_stand_beside_samples_where_there_is_a_disassembler(self):
        self.measure("--section", "source", "-k", "matmul", "-c", "1", *STEPS)
        self.assertNotIn("Instructions", self.run_lull("kernel", "--page", "source", "a.lull", PATH="/usr/bin:/bin"))
        # It is asked for the kernel and the program's file.
        with open(self.folder.name + "/cuobjdump", "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\n[ "$1 $2 $3" = "-sass -fun matmul" ] && [ "$4" -ef ' + shlex.quote(TRAIN) + """ ] || exit 1
echo "		Function : matmul"
echo "        /*0040*/              @!P0 LDG.E R4, [R6.64] ;      /* 0x1 */"
echo "        /*0050*/                   FFMA R8, R4, R5, RZ ;    /* 0x2 */"
""")
        os.chmod(f.name, 0o755)
        said = self.run_lull("kernel", "--page", "source", "a.lull", PATH=self.folder.name + ":/usr/bin:/bin")
        self.assertRegex(said, r"(?m)^ +[0-9.]+ +0x0040 +Long scoreboard +@!P0 +LDG\.E R4, \[R6\.64\] +R4 R6$")
        self.assertRegex(said, r"(?m)^ +[0-9.]+ +0x0050 .* FFMA R8, R4, R5, RZ +R8 R4 R5$")

    def test_samples_alone_need_no_counters(self):
        self.measure("--section", "source", "-k", "relu", "-c", "1", *STEPS)
        row = self.rows("profiled")[0]
        self.assertEqual((row["n_passes"], row["status"]), (0, 0))
        self.assertGreater(row["dur_ns"], 0)
        self.assertEqual(len(self.rows("pcsample")), 3)

    def test_refused_samples_are_said_and_leave_the_counters(self):
        said = self.measure("--set", "basic", "--section", "source", "-k", "relu", "-c", "1", *STEPS,
                            LULL_SIM_MISSING="cuptiPCSamplingEnable")
        self.assertIn("no samples", said)
        self.assertEqual([r["status"] for r in self.rows("profiled")], [0])
        self.assertEqual(self.rows("pcsample"), [])

    # ---- what goes wrong ----

    def test_refused_counters_leave_launch_and_duration_and_say_what_helps(self):
        for knob, status, word in (("denied", 1, "NVreg_RestrictProfilingToAdminUsers=0"),
                                   ("busy", 2, "another tool"), ("mig", 3, "MIG")):
            said = self.measure("-k", "matmul", "-c", "2", *STEPS, LULL_SIM_PROFILER=knob)
            self.assertIn(word, said)
            rows = self.rows("profiled")
            self.assertEqual([r["status"] for r in rows], [status] * 2)
            self.assertTrue(all(r["dur_ns"] > 0 and r["launch"] for r in rows), rows)
            self.assertEqual(self.rows("kmetric"), [])

    def test_a_kernel_that_never_ends_is_ended(self):
        said = self.measure("--timeout", "1", "-k", "matmul", *STEPS, status=1, LULL_SIM_PROFILER="hang")
        self.assertIn("matmul did not end within 1 s", said)
        self.assertIn("--replay application", said)

    def test_a_name_that_no_kernel_has(self):
        said = self.measure("-k", "nosuch", "-s", "2", *STEPS, status=1)
        self.assertRegex(said, "none of [0-9]+ launches was measured; looked for --kernel-name nosuch --launch-skip 2; these "
                         "kernels ran: matmul 20 times, axpy 12 times, relu 4 times")
        # A launch that never came is looked for by its number.
        self.assertIn("--kernel-name matmul --launch-skip 20; these kernels ran: matmul 20 times",
                      self.measure("-k", "matmul", "-s", "20", *STEPS, status=1))

    def test_a_program_without_kernels(self):
        said = self.measure("/bin/true", status=1)
        self.assertIn("launched no kernel", said)

    def test_bad_options_are_refused_in_a_sentence(self):
        for words, part in ((["--set", "no"], "basic, roofline, full"), (["--section", "no"], "--list-sections"),
                            (["--metrics", "no"], "--list-metrics"), (["-k", "regex:("], "regular expression"),
                            (["--device", "x"], "number of a device"), (["--replay", "range", "-k", "relu"], "--nvtx-include"),
                            (["--replay", "range", "--section", "source"], "single kernels"),
                            (["--clock-control", "base"], "only none"), (["--nvtx-include", "a/b"], "innermost"),
                            (["--timeout", "-1"], "negative")):
            self.assertIn(part, self.run_lull("kernel", *words, *STEPS, status=2))

    def test_what_can_be_measured_is_listed(self):
        self.assertIn("dram__bytes.sum", self.run_lull("kernel", "--list-metrics"))
        self.assertIn("basic", self.run_lull("kernel", "--list-sets"))
        self.assertIn("smsp__warps_launched", self.run_lull("kernel", "--list-metrics", "--chip", "GH100"))
        self.assertIn("GH100", self.run_lull("kernel", "--list-sets", "--chip", "ZX81", status=2))


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
