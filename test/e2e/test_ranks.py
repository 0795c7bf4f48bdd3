#!/usr/bin/env python3
"""Jobs of many ranks: simulated ones whose truth is known, recorded ones, alone and under mpirun.

Usage: test_ranks.py BUILD [NAME...]
"""
import csv
import io
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
JOB = os.path.join(BUILD, "sim", "lull-job")
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "ranks")

# What the issue of clocks may be off by: simulated ones, and recorded ones against the host's own clock.
SIMULATED_NS = 20_000
RECORDED_NS = 50_000


def run(*words, launcher=(), status=0):
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", LC_ALL="C")
    done = runner.run([*launcher, LULL, *words], 240, env=env)
    if done.returncode != status:
        raise AssertionError(f"lull {' '.join(words)}: {done.returncode} instead of {status}: {done.stderr}")
    return done.stdout if not status else done.stderr


def ask(folder, command="why", *words):
    return json.loads(run(command, *words, "-f", "json", folder))


def table(folder, report):
    return list(csv.DictReader(io.StringIO(run("stats", "-q", "-r", report, "-f", "csv", folder))))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def shift_clock(path, by_ns):
    """As if the host's clocks had been ahead by this much."""
    with open(path, "r+b") as f:
        head = bytearray(f.read(64))
        mono, utc = struct.unpack_from("<QQ", head, 24)
        struct.pack_into("<QQ", head, 24, mono + by_ns, utc + by_ns)
        struct.pack_into("<I", head, 60, crc32c(bytes(head[:60])))
        f.seek(0)
        f.write(head)


class Job(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lull-job-")
        self.addCleanup(shutil.rmtree, self.folder)

    def make(self, name, *words):
        to = os.path.join(self.folder, name)
        runner.run([JOB, to, *words], 240, check=True)
        with open(os.path.join(to, "truth.json")) as f:
            return to, json.load(f)


class Simulated(Job):
    def check(self, *words, n_ranks=64):
        folder, truth = self.make("job", f"ranks={n_ranks}", "steps=12", "offset-ms=1000", "drift-ppm=50", *words)
        answer = ask(folder)
        self.assertEqual(answer["clocks"]["how"], "fitted")
        for rank in answer["ranks"]:
            self.assertLess(abs(rank["clock"]["utc_offset_ns"] - truth["offset_ns"][rank["rank"]]), SIMULATED_NS)
        for rank in answer["ranks"]:
            parts = sum(rank[k + "_ns"] for k in ("compute", "wait", "transfer", "bubble", "copy", "idle"))
            self.assertEqual(parts, rank["window_ns"])
        return answer, truth

    def test_a_late_rank_is_named_with_its_step_and_cause(self):
        for words in (["slow=17", "cause=input"], ["slow=9", "cause=throttled"], ["slow=40", "cause=gc", "slow-from=3"],
                      ["slow=0", "cause=input", "slow-from=7"]):
            with self.subTest(words):
                answer, truth = self.check(*words)
                late = answer["stragglers"]
                self.assertEqual(answer["first"], "straggler")
                self.assertEqual([s["rank"] for s in late], [truth["slow"]])
                self.assertEqual(late[0]["since_step"], truth["slow_from"])
                self.assertEqual(late[0]["cause"], truth["cause"])
                self.assertLessEqual(len(answer["groups"]), 5)
                self.assertEqual([g["ranks"] for g in answer["groups"] if g["is_late"]], [[truth["slow"]]])

    def test_an_even_job_has_no_late_rank(self):
        answer, _ = self.check()
        self.assertEqual(answer["stragglers"], [])
        self.assertEqual(answer["first"], "gpu-bound")
        self.assertEqual(len(answer["groups"]), 1)

    def test_a_little_late_is_not_late(self):
        answer, _ = self.check("slow=5", "slow-us=60")
        self.assertEqual(answer["stragglers"], [])

    def test_missing_overlap_is_told_from_waiting(self):
        answer, _ = self.check("bare=1", "bytes=400000000")
        self.assertEqual(answer["first"], "collective-exposed")
        self.assertEqual(answer["stragglers"], [])
        big = answer["collectives"][0]
        self.assertGreater(big["exposed_ns"], 0.99 * big["total_ns"])
        self.assertLess(big["wait_ns"], 0.05 * big["total_ns"])
        # The model's fabric moves 100 GB/s after 30 us.
        self.assertAlmostEqual(big["algorithm_gb_s"], 400e6 / (400e6 / 100 + 34e3), delta=0.5)
        self.assertAlmostEqual(big["bus_gb_s"], big["algorithm_gb_s"] * 2 * 63 / 64, places=2)

    def test_a_heavy_stage_of_a_pipeline_is_named(self):
        answer, truth = self.check("stages=4", "heavy=2", n_ranks=16)
        self.assertEqual(answer["first"], "pipeline-imbalance")
        self.assertEqual(len(answer["stages"]), 4)
        busiest = max(answer["stages"], key=lambda s: s["compute_ns"])
        self.assertEqual(busiest["stage"], truth["heavy"])
        for rank in answer["ranks"]:
            self.assertEqual(rank["stage"], rank["rank"] % 4)

    def test_a_balanced_pipeline_is_no_imbalance(self):
        answer, _ = self.check("stages=4", n_ranks=16)
        self.assertNotIn(answer["first"], ("pipeline-imbalance", "straggler"))

    def test_communication_is_exposed_or_overlapped(self):
        """Gradients that are exchanged during the backward pass are overlapped; after it, they are exposed."""
        for words, is_exposed in ((["bytes=200000000"], False), (["bytes=200000000", "bare=1"], True)):
            folder, _ = self.make("bare" if is_exposed else "ddp", "ranks=4", "steps=8", *words)
            answer = ask(folder)
            rows = table(folder, "ranks")
            for rank, row in zip(answer["ranks"], rows):
                self.assertEqual(rank["exposed_ns"], rank["wait_ns"] + rank["transfer_ns"] + rank["bubble_ns"])
                self.assertAlmostEqual(float(row["Exposed (%)"]), rank["exposed_ns"] / rank["window_ns"] * 100, delta=0.06)
                self.assertAlmostEqual(float(row["Overlapped (%)"]), rank["overlapped_ns"] / rank["window_ns"] * 100, delta=0.06)
                self.assertAlmostEqual(sum(float(row[f"{k} (%)"]) for k in ("Compute", "Exposed", "Copy", "Idle")), 100, delta=0.2)
                self.assertLessEqual(rank["overlapped_ns"], rank["compute_ns"] + rank["copy_ns"])
                if is_exposed:
                    self.assertEqual(rank["overlapped_ns"], 0)
                else:
                    # Three of four buckets are hidden by the rest of the backward pass.
                    self.assertGreater(rank["overlapped_ns"], 2.5 * rank["exposed_ns"])

    def test_groups_are_told_apart(self):
        for words, expected in (
                (["ranks=8"], [(1, 8, [*range(8)], "all-reduce", "data parallel?")]),
                (["ranks=8", "tensor=2"], [(2, 4, [0, 2, 4, 6], "all-reduce", "data parallel?"),
                                           (4, 2, [0, 1], "all-reduce", "tensor parallel?")]),
                (["ranks=8", "stages=4"], [(1, 8, [*range(8)], "all-reduce", "data parallel?"),
                                           (6, 2, [0, 1], "send and receive", "pipeline parallel?")])):
            with self.subTest(words):
                folder, _ = self.make("-".join(words), "steps=6", *words)
                answer = ask(folder)
                found = [(c["groups"], c["ranks"], c["members"], c["operations"], c["role"] + "?" * c["is_guess"])
                         for c in answer["communicators"]]
                self.assertEqual(sorted(found), sorted(expected))
                rows = table(folder, "communicators")
                self.assertEqual([int(r["Groups"]) for r in rows], [c["groups"] for c in answer["communicators"]])
                said = run("why", folder)
                for _, n_ranks, _, operations, role in expected if len(expected) > 1 else ():
                    self.assertRegex(" ".join(said.split()), rf"groups? of {n_ranks} \([^()]*\): {operations} \({re.escape(role)}\)")

    def test_ranges_of_ranks_are_compared(self):
        """Their names begin with the rank; the throttled rank is the slowest in both, by the work on its device."""
        folder, truth = self.make("ranges", "ranks=4", "steps=12", "slow=2", "slow-from=0", "cause=throttled", "ranges=1")
        rows = table(folder, "rank_ranges")
        self.assertEqual({r["Range"] for r in rows}, {"forward", "backward"})
        self.assertEqual(len(rows), 8)
        for name in ("forward", "backward"):
            of = [r for r in rows if r["Range"] == name]
            self.assertEqual(int(of[0]["Rank"]), truth["slow"])
            times = [float(r["Device (ns)"]) for r in of]
            self.assertEqual(times, sorted(times, reverse=True))
            # The model's throttled device takes 1.45 times as long.
            self.assertAlmostEqual(float(of[0]["Slower (%)"]), 45, delta=3)
        # Backward has twice the kernels, so that its slowest rank loses more.
        self.assertEqual(rows[0]["Range"], "backward")

    def test_lost_and_cut_reports_are_said_and_skipped(self):
        answer, truth = self.check("slow=17", "lost=20-23", "truncated=12")
        self.assertEqual([s["rank"] for s in answer["stragglers"]], [17])
        self.assertEqual([s["file"] for s in answer["skipped"]], ["rank0012.lull"])
        self.assertIn("cut off", answer["skipped"][0]["why"])
        self.assertTrue(any("5 of 64 ranks are missing: 12, 20, 21, 22, 23" in n for n in answer["notes"]))

    def test_drift_is_found_in_a_long_recording(self):
        folder, truth = self.make("long", "ranks=16", "steps=300", "drift-ppm=50", "offset-ms=1000")
        for rank in ask(folder, "merge", "-n")["ranks"]:
            self.assertAlmostEqual(-rank["clock"]["drift_ppm"], truth["drift_ppm"][rank["rank"]], delta=1)

    def test_512_ranks_read_like_few(self):
        answer, truth = self.check("slow=321", "kernels=24", n_ranks=512)
        self.assertEqual([s["rank"] for s in answer["stragglers"]], [321])
        self.assertEqual([g["n"] for g in answer["groups"]], [511, 1])

    def test_4096_ranks_some_lost_and_one_cut_off(self):
        answer, truth = self.check("slow=2049", "cause=input", "kernels=8", "lost=20-23", "truncated=12", n_ranks=4096)
        self.assertEqual([(s["rank"], s["since_step"], s["cause"]) for s in answer["stragglers"]],
                         [(2049, truth["slow_from"], truth["cause"])])
        self.assertEqual([s["file"] for s in answer["skipped"]], ["rank0012.lull"])
        self.assertEqual([g["n"] for g in answer["groups"]], [4090, 1])


class Recorded(Job):
    """Two and four ranks of DDP on one H200: even, rank 1 slow from step 5 on, gradients exchanged after backward."""

    def test_each_is_named(self):
        for n in (2, 4):
            slow = ask(os.path.join(DATA, f"slow{n}"))
            self.assertEqual(slow["first"], "straggler")
            self.assertEqual([(s["rank"], s["since_step"], s["cause"]) for s in slow["stragglers"]],
                             [(1, 5, "input-pipeline")])
            self.assertIn("__getitem__", slow["stragglers"][0]["evidence"])
            # What the rank is told by itself, the job is told, too.
            alone = ask(os.path.join(DATA, f"slow{n}", "rank1.lull"))
            self.assertEqual((alone["first"], alone["findings"][0]["fix"]),
                             ("input-pipeline", slow["stragglers"][0]["fix"]))
            self.assertIn("DataLoader(num_workers=", " ".join(run("why", os.path.join(DATA, f"slow{n}")).split()))
            bare = ask(os.path.join(DATA, f"bare{n}"))
            self.assertEqual((bare["first"], bare["stragglers"]), ("collective-exposed", []))
            self.assertEqual(bare["collectives"][0]["exposed_ns"], bare["collectives"][0]["total_ns"])
            said = run("why", os.path.join(DATA, f"bare{n}"))
            self.assertIn("nothing computes", said)
            self.assertIn("gradient_as_bucket_view", said)
            # Loopback sockets are so slow that the even job cannot hide all: that is no missing overlap.
            even = ask(os.path.join(DATA, f"even{n}"))
            self.assertGreater(even["hidden"], bare["hidden"] + 0.25)
            self.assertIn("it overlaps already", run("why", os.path.join(DATA, f"even{n}")))
            self.assertEqual(even["stragglers"], [])
            self.assertLess(even["shares"]["wait"], 0.05)
            self.assertLess(even["collectives"][0]["exposed_ns"], 0.65 * even["collectives"][0]["total_ns"])

    def test_clocks_fitted_by_rank_agree_with_the_clock_they_share(self):
        for name in sorted(os.listdir(DATA)):
            if not os.path.isdir(os.path.join(DATA, name)):
                continue
            clocks = ask(os.path.join(DATA, name), "merge", "-n", "--by-rank")["clocks"]
            self.assertEqual(clocks["how"], "fitted")
            self.assertLess(clocks["checked_off_ns"], RECORDED_NS, name)

    def test_a_planted_offset_is_found(self):
        for by_ns in (700_000_000, 123_456_789):
            folder = os.path.join(self.folder, "shifted")
            shutil.copytree(os.path.join(DATA, "slow2"), folder)
            before = ask(folder, "merge", "-n", "--by-rank")["ranks"][1]["clock"]
            shift_clock(os.path.join(folder, "rank1.lull"), by_ns)
            after = ask(folder, "merge", "-n", "--by-rank")["ranks"][1]["clock"]
            self.assertEqual(after["begin_ns"], before["begin_ns"])
            self.assertLess(abs(after["utc_offset_ns"] - by_ns), RECORDED_NS)
            shutil.rmtree(folder)

    def test_merge_writes_a_manifest_and_leaves_reports_alone(self):
        folder = os.path.join(self.folder, "job")
        shutil.copytree(os.path.join(DATA, "even4"), folder)
        before = {f: os.stat(os.path.join(folder, f)).st_mtime_ns for f in os.listdir(folder)}
        run("merge", folder)
        with open(os.path.join(folder, "job.json")) as f:
            manifest = json.load(f)
        self.assertEqual([r["file"] for r in manifest["ranks"]], [f"rank{i}.lull" for i in range(4)])
        self.assertEqual(before, {f: os.stat(os.path.join(folder, f)).st_mtime_ns for f in before})
        self.assertEqual(ask(folder)["world_size"], 4)


class Commands(Job):
    def test_stats_adds_up(self):
        folder, _ = self.make("job", "ranks=8", "slow=3", "steps=8")
        rows = list(csv.DictReader(io.StringIO(run("stats", "-q", "-r", "rank_steps", "-f", "csv", folder))))
        self.assertEqual(len(rows), 8 * 7)
        for row in rows:
            self.assertEqual(sum(int(row[k + " (ns)"]) for k in ("Compute", "Wait", "Move", "Bubble", "Copy", "Idle")),
                             int(row["Duration (ns)"]))
        late = list(csv.DictReader(io.StringIO(run("stats", "-q", "-r", "stragglers", "-f", "csv", folder))))
        self.assertEqual([(r["Rank"], r["Cause"]) for r in late], [("3", "input-pipeline")])
        self.assertIn("no report", run("stats", "-r", "nothing", folder, status=2))

    def test_diff_and_gate_see_the_late_rank(self):
        even, _ = self.make("even", "ranks=8", "steps=20")
        slow, _ = self.make("slow", "ranks=8", "steps=20", "slow=3", "slow-from=0")
        self.assertIn("moved from straggler (rank 3) to gpu-bound", run("diff", slow, even))
        run("gate", "--baseline", even, even)
        run("gate", "--baseline", even, slow, status=1)
        self.assertIn("give two reports or two folders", run("diff", slow, os.path.join(even, "rank0000.lull"), status=2))
        run("why", "--fail-on", "straggler", slow, status=3)
        run("why", "--fail-on", "straggler", even)

    def test_export_is_partitioned(self):
        folder, _ = self.make("job", "ranks=4", "steps=4")
        to = os.path.join(self.folder, "out")
        run("export", "-t", "parquet", "-o", to, folder)
        for rank in range(4):
            path = os.path.join(to, f"rank={rank}", "table=kernel", "part-0.parquet")
            with open(path, "rb") as f:
                data = f.read()
            self.assertEqual((data[:4], data[-4:]), (b"PAR1", b"PAR1"))
        self.assertIn("job.json", os.listdir(to))
        self.assertIn("exists", run("export", "-t", "parquet", "-o", to, folder, status=1))
        run("export", "-f", "-t", "parquet", "-o", to, folder)
        self.assertIn("folder of rank reports", run("export", "-t", "html", folder, status=2))


class BadInput(Job):
    def test_an_empty_folder(self):
        self.assertIn("no reports in the folder", run("why", self.folder, status=1))

    def test_two_jobs(self):
        folder, _ = self.make("job", "ranks=4", "steps=4")
        other, _ = self.make("other", "ranks=4", "steps=4", "job=job-2", "seed=2")
        shutil.copy(os.path.join(other, "rank0002.lull"), os.path.join(folder, "x.lull"))
        for command in ("why", "merge", "stats"):
            self.assertIn("two jobs in the folder", run(command, folder, status=1))

    def test_two_jobs_of_different_size(self):
        folder, _ = self.make("job", "ranks=4", "steps=4")
        other, _ = self.make("other", "ranks=8", "steps=4", "seed=2")
        shutil.copy(os.path.join(other, "rank0005.lull"), folder)
        self.assertIn("of a job with 4 ranks", run("why", folder, status=1))

    def test_a_rank_twice(self):
        folder, _ = self.make("job", "ranks=4", "steps=4")
        shutil.copy(os.path.join(folder, "rank0002.lull"), os.path.join(folder, "again.lull"))
        self.assertIn("rank 2 is in the folder", run("why", folder, status=1))
        self.assertIn("the same recording", run("why", folder, status=1))

    def test_mixed_versions(self):
        folder, _ = self.make("job", "ranks=4", "steps=6")
        other, _ = self.make("other", "ranks=4", "steps=6", "version=9.9.9")
        shutil.copy(os.path.join(other, "rank0002.lull"), folder)
        notes = ask(folder)["notes"]
        self.assertTrue(any("different versions of lull" in n and "9.9.9" in n for n in notes), notes)

    def test_nothing_to_fit_clocks_on(self):
        folder, _ = self.make("job", "ranks=16", "steps=6", "mute=1")
        self.assertIn("no collectives from which clocks can be fitted", run("merge", folder, status=1))
        answer = ask(folder)
        self.assertEqual(answer["clocks"]["how"], "none")
        self.assertEqual(answer["stragglers"], [])

    def test_only_bad_files(self):
        with open(os.path.join(self.folder, "rank0.lull"), "wb") as f:
            f.write(b"LULLFILE and nothing else")
        self.assertIn("none of the 1 reports", run("why", self.folder, status=1))

    def test_ranks_by_name_where_nobody_says(self):
        """Recordings without a launcher: the number is in the name."""
        answer = ask(os.path.join(DATA, "slow4"), "merge", "-n")
        self.assertEqual([(r["rank"], r["rank_from"]) for r in answer["ranks"]], [(i, "name") for i in range(4)])

    def test_ranks_as_launchers_tell_them(self):
        for rank, name in ((1, "a"), (0, "b")):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="node0",
                       MASTER_PORT="29500")
            runner.run([LULL, "profile", "-t", "none", "-s", "none", "--cpuctxsw=none", "-o", os.path.join(self.folder, name),
                        "true"], check=True, env=env)
        answer = ask(self.folder, "merge", "-n")
        self.assertEqual([(r["rank"], r["local_rank"], r["file"], r["rank_from"]) for r in answer["ranks"]],
                         [(0, 0, "b-rank0.lull", "report"), (1, 1, "a-rank1.lull", "report")])
        self.assertEqual((answer["world_size"], answer["clocks"]["how"]), (2, "same"))
        self.assertIsNotNone(answer["job"])

    def test_options_of_one_report(self):
        folder, _ = self.make("job", "ranks=2", "steps=4")
        self.assertIn("for one report", run("why", "--what-if", "gil", folder, status=2))
        self.assertIn("for one report", run("stats", "--filter-time", "/1s", folder, status=2))


class Mpi(Job):
    """The same under a launcher; abstract: one class for each MPI."""

    launcher = None

    def launchers(self):
        if not shutil.which(self.launcher[0]):
            self.skipTest(f"no {self.launcher[0]} here")
        return [[*self.launcher, "-n", str(n)] for n in (2, 4)]

    def test_the_same_bytes(self):
        launchers = self.launchers()
        folder, _ = self.make("job", "ranks=16", "slow=5", "truncated=7", "offset-ms=1000", "drift-ppm=50")
        pipeline, _ = self.make("pipeline", "ranks=16", "stages=4", "heavy=1", "steps=6")
        tensor, _ = self.make("tensor", "ranks=16", "tensor=4", "steps=6", "ranges=1")
        for words in (["why", folder], ["why", "-f", "json", folder], ["stats", "-q", folder], ["why", pipeline],
                      ["stats", "-q", "-r", "communicators,rank_ranges", tensor],
                      ["merge", "-n", "-f", "json", folder], ["diff", folder, pipeline]):
            alone = run(*words)
            for launcher in launchers:
                # What lull notes on stderr stays away from the launcher, which may put a part of it into its stdout.
                quiet = ("sh", "-c", 'exec "$@" 2>>"$0"', os.path.join(self.folder, "notes"))
                self.assertEqual(run(*words, launcher=(*launcher, *quiet)), alone, (launcher, words))

    def test_bad_input_ends_all(self):
        for launcher in self.launchers():
            done = runner.run([*launcher, LULL, "why", self.folder],
                              env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("no reports in the folder"), 1)

    def test_ranks_are_exported_by_all(self):
        launchers = self.launchers()
        folder, _ = self.make("job", "ranks=6", "steps=4")
        for launcher in launchers:
            to = os.path.join(self.folder, "out")
            run("export", "-t", "csv", "--tables", "step,kernel", "-o", to, folder, launcher=launcher)
            self.assertEqual(sorted(os.listdir(to)), ["job.json"] + [f"rank={i}" for i in range(6)])
            shutil.rmtree(to)


class OpenMpi(Mpi):
    launcher = ["mpirun.openmpi", "--oversubscribe"]


class Mpich(Mpi):
    launcher = ["mpirun.mpich"]


class NoMpi(Job):
    def test_a_launcher_without_its_library(self):
        folder, _ = self.make("job", "ranks=2", "steps=4")
        env = dict(os.environ, PMI_SIZE="2", LULL_MPI_LIBRARY="/nowhere/libmpi.so")
        done = runner.run([LULL, "why", folder], env=env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("LULL_MPI_LIBRARY", done.stderr)


del Mpi  # what is abstract has no cases

if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
