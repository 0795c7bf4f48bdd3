#!/usr/bin/env python3
"""Benchmarks notice that they measure nothing, and their table tells a slow machine from slow code.

Usage: test_bench.py BUILD [TEST...]
"""
import glob
import os
import subprocess
import sys
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What benchmarks print, by their names. Numbers of one machine; LABEL: value.
PRINTED = {
    "bench_nvtx": {"clock_gettime x 2": 60, "push+pop, no tool": 2, "push+pop, off": 4, "push+pop, on": 40},
    "bench_osrt": {"read of 1 byte": "170.0 +2.0 +16.0", "two clocks, beside OS calls": 60},
    "bench_lib": {"library call": "3.0 +2.0 +50.0", "two clocks, beside library calls": 60},
    "bench_starts": {"fork, plain, CPU": 150, "fork, recorded, CPU": 500, "fork and exec, plain, CPU": 400,
                     "fork and exec, recorded, CPU": 1200},
    "bench_sampling": {"cpu_ratio": 1.007},
    "bench_unwind": {"unwind, place known": 60, "unwind, place unknown": 600, "copy of 8 KiB": 200},
    "bench_python": {"sample": 14, "read of its memory": 0.7},
    "bench-torch": {"hook of a phase, on": 110, "hook of a phase, off": 50, "hooks in a step of 100 modules, added": 40,
                    "step of 100 modules that do nothing": 260, "step with all by default / without": 1.01,
                    "step with hooks / without": 1.003, "operators to the end, added": 0.04,
                    "torch.profiler to the end, added": 1.1, "step in torch.profiler / without": 1.1,
                    "step with operators / without": 1.03, "step with any observer / without": 1.02},
    "bench_report": {"scan": "0.5 s", "report nvtx_sum": "0.2 s"},
    "bench_why": {"why_time": 10, "why_scan": 0.5, "why_time_tenth": 1, "why_memory": 1200, "why_memory_tenth": 150},
    "bench_format": {"size": 4.8, "zstd_size": 10.5, "seal_rate": 11, "zstd_rate": 3, "decode_rate": 40,
                     "zstd_decode_rate": 8, "recover": 3, "read": 8, "info_command": 6, "version_command": 5,
                     "stats_nvtx_sum": 20, "stats_osrt_sum": 20},
    "bench_export": {f"{what}_{name}": rate for name in ("perfetto", "chrome_plain", "chrome", "parquet", "jsonlines", "csv")
                     for what, rate in (("export", 10), ("scan_of", 35))},
    "bench_own": {"gzip_own": 1000, "gzip_zlib": 215, "gzip_size": 0.99, "pages_own": 3.2, "pages_sqlite": 0.55},
    "bench-duckdb": {"duckdb_kern_sum": 60, "lull_kern_sum": 40},
    "bench-sqlite": {"sqlite_kern_sum_warm": 9000, "lull_kern_sum_warm": 120, "sqlite_kern_sum_cold": 9000,
                     "lull_kern_sum_cold": 150},
    "bench_query": {"query_scan_gain": 1, "query_scan": 8, "query_window_gain": 25, "export_sqlite": 2, "sqlite_copy": 0.8},
    "bench-ranks": {"ranks_rate": 1.2, "ranks_double": 2, "ranks_memory": 20, "ranks_gain": 0.95},
    "bench_import": {"import_rate": 600, "import_pass": 900, "import_rss": 30, "import_trace": 500},
}


def table(change=None, status=None, skipped=()):
    """Exit status and lines of the table: with other values, other statuses, some benchmarks skipped or (None) not run."""
    lines = []
    for name, values in PRINTED.items():
        code = (status or {}).get(name, 0)
        if code is None:
            continue
        lines.append(f"# {name} some arguments")
        if name in skipped:
            lines.append("SKIPPED: not here")
        elif not code:
            values = {**values, **(change or {}).get(name, {})}
            lines += [f"{label}  {value}" for label, value in values.items() if value is not None]
        lines.append(f"# status {name} {code}")
    done = subprocess.run(["tools/bench-table", "20000000"], input="\n".join(lines) + "\n", cwd=ROOT, capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout


class Table(unittest.TestCase):
    def expect(self, is_good, word, **how):
        rc, text = table(**how)
        self.assertEqual(rc == 0, is_good, text)
        self.assertIn(word, text)

    def test_all_is_well(self):
        rc, text = table()
        self.assertEqual(rc, 0, text)
        for word in ("OVER", "UNDER", "FAILED", "NOT MEASURED", "DID NOT RUN", "skipped"):
            self.assertNotIn(word, text)

    def test_a_slower_machine_is_no_error(self):
        """Every time is five times as long, and every speed a fifth."""
        slow = {name: {label: " ".join("%.4f" % (float(word) * 5) for word in str(value).split())
                       for label, value in PRINTED[name].items()} for name in ("bench_nvtx", "bench_osrt", "bench_lib",
                                                                               "bench_starts", "bench_unwind")}
        slow["bench_report"] = {"scan": "2.5 s", "report nvtx_sum": "20 s"}
        slow["bench_why"] = {"why_time": 50, "why_scan": 2.5, "why_time_tenth": 5}
        slow["bench-ranks"] = {"ranks_rate": 0.2}
        rc, text = table(change=slow)
        self.assertEqual(rc, 0, text)
        self.assertIn("above the aim", text)

    def test_slower_code_is(self):
        self.expect(False, "OVER", change={"bench_nvtx": {"push+pop, on": 300}})
        self.expect(False, "OVER", change={"bench_report": {"report nvtx_sum": "30 s"}})
        self.expect(False, "UNDER", change={"bench_format": {"seal_rate": 1}})
        self.expect(False, "UNDER", change={"bench_own": {"gzip_own": 300}})
        self.expect(False, "UNDER", change={"bench-ranks": {"ranks_gain": 0.5}})

    def test_a_fifth_is_forgiven(self):
        self.expect(True, "nearly", change={"bench_nvtx": {"push+pop, on": 60 * 1.5 * 1.15}})

    def test_what_was_not_measured_is_an_error(self):
        self.expect(False, "FAILED with status 1", status={"bench_lib": 1})
        self.expect(False, "DID NOT RUN", status={"bench_why": None})
        self.expect(False, "NOT MEASURED", change={"bench_import": {"import_rate": None}})

    def test_what_cannot_run_is_skipped(self):
        self.expect(True, "skipped", status={"bench_python": 77, "bench-torch": 77})
        self.expect(True, "skipped", skipped=("bench-duckdb", "bench-sqlite"))


class Nothing(unittest.TestCase):
    def test_without_an_agent(self):
        """Any other library in its place, and no folder to look into."""
        library = next(p for p in ("/lib/*/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6") if glob.glob(p))
        for name in ("bench_nvtx", "bench_osrt", "bench_lib"):
            with self.subTest(name):
                done = subprocess.run([os.path.join(BUILD, "bench", name), glob.glob(library)[0]], capture_output=True,
                                      text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(name, done.stderr)


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
