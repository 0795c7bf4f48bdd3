"""What the checks (test/gpu/run.py) and the benchmarks (bench/gpu/run.py) share.

A list of items is run in order of importance until the budget is spent; one table says what was
expected, what was measured and what was left out. Nothing here needs more than Python's library.

On the simulated device (--sim) the scripts are tried: standard output has the lines of a test (test/e2e/runner.py), one
for each row of the table, which goes to standard error. Rows about costs are not judged there, and no time is too long.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "e2e"))
import runner


class Failed(Exception):
    """A check that did not hold; the text is for the table."""


class Skipped(Exception):
    """A check that cannot be made here."""


class Bench:
    """Where things are, how much time is left, and what came out."""

    def __init__(self, options):
        self.options = options
        self.lull = os.path.abspath(options.lull)
        self.begin = time.monotonic()
        self.dir = tempfile.mkdtemp(prefix="lull-gpu-")
        self.rows = []
        self.lines = runner.Lines() if options.sim else None
        self.probe = os.path.join(self.dir, "probe")
        self.turns = os.path.join(self.dir, "turns")
        self.floor = os.path.join(self.dir, "libfloor.so")
        self.env = dict(os.environ)
        if options.sim:
            self.env["LD_LIBRARY_PATH"] = os.path.abspath(options.sim)

    def build(self):
        """Compile the small programs with whatever C compiler there is."""
        flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-I", os.path.join(ROOT, "include"),
                 "-iquote", os.path.join(ROOT, "test")]
        cc = os.environ.get("CC", "cc")
        for program, source in ((self.probe, "test/gpu/probe.c"), (self.turns, "bench/gpu/turns.c")):
            subprocess.run([cc, *flags, "-o", program, os.path.join(ROOT, source), "-ldl", "-lpthread"], check=True)
        subprocess.run([cc, *flags, "-shared", "-fPIC", "-o", self.floor,
                        os.path.join(ROOT, "bench", "gpu", "floor_agent.c"), "-ldl", "-lpthread"],
                       check=True)

    def has_gpu(self):
        return subprocess.run([self.probe, "loop", "10"], env=self.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def cupti(self):
        """Environment in which the floor and we use the libcupti that torch uses, where there is one."""
        for folder in [] if self.options.sim else sys.path:
            for part in ("cu13/lib/libcupti.so.13", "cuda_cupti/lib/libcupti.so.12"):
                path = os.path.join(folder, "nvidia", part)
                if os.path.exists(path):
                    return {"FLOOR_CUPTI": path, "LULL_CUPTI_PATH": path}
        return {}

    def cudart(self):
        """The runtime beside the libcupti that is used; it may not be there."""
        folder = self.options.sim or os.path.dirname(self.cupti().get("LULL_CUPTI_PATH", ""))
        return os.path.abspath(os.path.join(folder, "libcudart.so.13"))

    def left(self):
        return float("inf") if self.options.sim else self.options.budget - (time.monotonic() - self.begin)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, argv, env=None, limit=120, expect=0):
        """Run a program; its output, or Failed if it ended otherwise than expected."""
        limit = runner.limit(limit) if self.options.sim else max(1, min(limit, self.left() + 5))
        try:
            done = subprocess.run(argv, env={**self.env, **(env or {})}, capture_output=True,
                                  text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise Failed("%s did not end within %d s" % (os.path.basename(argv[0]), limit)) from None
        if expect is not None and done.returncode != expect:
            raise Failed("%s: status %d instead of %d: %s" % (" ".join(argv[:2]), done.returncode, expect,
                                                              done.stderr.strip()[-200:]))
        return done.stdout + "\n" + done.stderr

    def record(self, name, options, argv, env=None, limit=120, expect=0):
        """Run a program under lull; its output. The report is self.report(name)."""
        return self.run([self.lull, "profile", "-q", "-f", "true", "-o", self.path(name), *options, *argv],
                        env, limit, expect)

    def info(self, name):
        return json.loads(self.run([self.lull, "info", "--json", self.path(name + ".lull")]).split("\n\n")[0])

    def rows_of(self, name):
        """Rows of each table."""
        return {t["name"]: t["n_rows"] for t in self.info(name)["tables"]}

    def losses(self, name):
        return {i["name"]: i["count"] for i in self.info(name)["issues"]
                if i.get("severity") in ("loss", "error", 2, 3)}

    def table(self, name, table):
        """The rows of one table, as dictionaries."""
        text = self.path(name + "." + table + ".jsonl")
        self.run([self.lull, "export", "-f", "true", "-t", "jsonlines", "--tables", table, "-o", text,
                  self.path(name + ".lull")])
        with open(text, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def note(self, name, expected, measured, verdict, seconds=0.0):
        label = " ".join([name, expected]) if any(row[0] == name for row in self.rows) else name
        self.rows.append((name, expected, measured, verdict, seconds))
        print("%-34s %-32s %-40s %-8s %5.1f s" % self.rows[-1], flush=True)
        if self.lines and self.is_chosen(label):
            self.lines.end(label, skipped=measured if verdict == "SKIPPED" else None, is_failed=verdict == "BAD")

    def is_chosen(self, name):
        return not self.options.names or any(word in runner.slug(name) for word in self.options.names)

    def judge_cost(self, is_good):
        """The verdict about a cost; on the simulated device it only has to be there."""
        return verdict(is_good or bool(self.options.sim))

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def numbers(text):
    """name=value pairs of a program's output."""
    found = {}
    for word in text.split():
        key, _, value = word.partition("=")
        try:
            found[key] = float(value)
        except ValueError:
            continue
    return found


def parse(what, extra=(), budget=170):
    ap = argparse.ArgumentParser(description=what)
    ap.add_argument("--lull", default=os.path.join(ROOT, "build", "lull"), help="the command to try")
    ap.add_argument("--budget", type=float, default=budget, metavar="SECONDS",
                    help="begin nothing that would not end by then (default: %(default)s)")
    ap.add_argument("--only", default="", metavar="NAMES", help="these items alone, comma list")
    ap.add_argument("--planted", default=os.environ.get("PLANTED", ""), metavar="FILE",
                    help="planted.py, the training loops with planted bottlenecks")
    ap.add_argument("--sim", default="", metavar="FOLDER",
                    help="the simulated device: tries these scripts, says nothing about a GPU")
    ap.add_argument("--short", action="store_true", help="a tenth of the work")
    ap.add_argument("names", nargs="*", metavar="NAME", help="with --sim: show the rows whose name contains one of them")
    for args, kwargs in extra:
        ap.add_argument(*args, **kwargs)
    return ap.parse_args()


def main(options, items):
    """Run items (name, seconds it takes, function of the bench); the number that failed."""
    bench = Bench(options)
    only = [n for n in options.only.split(",") if n]
    try:
        bench.build()
        if not bench.has_gpu():
            if options.sim:
                bench.note("device", "", "the simulated device does not work", "BAD")
                return 1
            print("SKIPPED: there is no GPU here (libcuda.so.1 with a device); nothing was checked")
            return 0
        for name, cost, function in items:
            if only and name not in only or options.names and not any(word.startswith(name) for word in options.names):
                continue
            begin = time.monotonic()
            if cost * (0.2 if options.short else 1) > bench.left():
                bench.note(name, "", "needs %d s, %d s are left" % (cost, bench.left()), "LEFT OUT")
                continue
            try:
                for row in function(bench):
                    bench.note(*row, time.monotonic() - begin)
            except Failed as why:
                bench.note(name, "", str(why), "BAD", time.monotonic() - begin)
            except Skipped as why:
                bench.note(name, "", str(why), "SKIPPED", time.monotonic() - begin)
            except (OSError, ValueError, LookupError, TypeError) as why:
                # A report that lacks what a check reads must not cost the checks after it.
                bench.note(name, "", "%s: %s" % (type(why).__name__, why), "BAD", time.monotonic() - begin)
        return sum(row[3] == "BAD" and (not options.sim or bench.is_chosen(row[0])) for row in bench.rows)
    finally:
        bench.close()


def verdict(is_good):
    return "ok" if is_good else "BAD"


def need_torch(bench):
    if subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"],
                      env=bench.env, capture_output=True).returncode != 0:
        raise Skipped("no torch with CUDA")
