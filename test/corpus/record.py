#!/usr/bin/env python3
"""Run the programs of the corpus on a machine with a GPU: measured without a recorder, then recorded with default options.

    test/corpus/record.py LULL OUT [--only NAME,...] [--twice] [--limit SECONDS]

For each program: the time of a round as it is and with --fixed, without a recorder; then a recording of each. Results go
to OUT/results.tsv, reports to OUT/*.lull, cut to the time in which the GPU worked.

Programs share the GPU, so only one may use it at a time; but most of the time goes into imports. So the next programs
start meanwhile and wait for a lock where PyTorch first touches the GPU (a sitecustomize that lull's own calls).
"""
import argparse
import fcntl
import glob
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SIDE_BY_SIDE = 5
PATIENCE_S = 300  # most of it waiting for the GPU

GATE = '''
import importlib.abc, importlib.machinery, os, sys

class Gate(importlib.abc.MetaPathFinder):
    """Lets PyTorch touch the GPU when nobody else does."""
    def find_spec(self, name, path, target=None):
        if name != "torch.cuda":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module
        def exec_module(module):
            load(module)
            first = module._lazy_init
            def _lazy_init():
                import fcntl
                module._lazy_init = first
                fcntl.flock(os.open(os.environ["CORPUS_LOCK"], os.O_RDWR), fcntl.LOCK_EX)
                return first()
            module._lazy_init = _lazy_init
        spec.loader.exec_module = exec_module
        return spec

if "CORPUS_LOCK" in os.environ and "CORPUS_GATE" not in os.environ:
    os.environ["CORPUS_GATE"] = "1"
    sys.meta_path.insert(0, Gate())
'''


class Runner:
    def __init__(self, options):
        self.o = options
        self.app = tempfile.mkdtemp(prefix="app-")
        self.gate = tempfile.mkdtemp(prefix="gate-")
        self.gpu = os.path.join(self.gate, "lock")
        open(self.gpu, "w").close()
        with open(os.path.join(self.gate, "sitecustomize.py"), "w") as f:
            f.write(GATE)
        self.mutex = threading.Lock()
        self.began = time.time()
        self.failed = set()
        self.tasks = []
        os.makedirs(options.out, exist_ok=True)
        self.results = open(os.path.join(options.out, "results.tsv"), "a")

    def prepare(self):
        only = self.o.only.split(",") if self.o.only else None
        for path in sorted(glob.glob(os.path.join(HERE, "programs", "*"))):
            name, kind = os.path.splitext(os.path.basename(path))
            if only and name not in only:
                continue
            if kind == ".cu":
                done = subprocess.run(["nvcc", "-O2", "-lineinfo", "-arch=native", "-o", os.path.join(self.app, name),
                                       path, "-lcublas", "-lpthread"])
                command = ["./" + name] if done.returncode == 0 else None
            else:
                subprocess.run(["cp", path, self.app], check=True)
                command = ["python3", name + ".py"]
            if command:
                with open(path) as f:
                    waits = kind == ".py" and not re.search(r"spawn|distributed|Process\(|Popen", f.read())
                for what in ("plain", "plain-fixed", "", "-fixed") + (("-2",) if self.o.twice else ()):
                    self.tasks.append((name, command, what, waits))

    def run(self, name, command, what, waits):
        is_recorded = not what.startswith("plain")
        report = os.path.join(self.o.out, name + what + ".lull")
        words = command + (["--fixed"] if what.endswith("-fixed") else [])
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        lock = None
        if is_recorded:
            words = [self.o.lull, "profile", "--force-overwrite=true", "-o", report, *words]
        if waits:
            env.update(CORPUS_LOCK=self.gpu, PYTHONPATH=self.gate)
        else:
            lock = open(self.gpu)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            done = subprocess.run(words, cwd=self.app, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
            found = re.findall(r"round_ms ([0-9.e+-]+)", done.stdout)
            said = found[-1] if found and not done.returncode else "failed: %s" % done.stderr[-200:].replace("\n", " ")
        except subprocess.TimeoutExpired:
            said = "failed: longer than %d s" % PATIENCE_S
            subprocess.run(["pkill", "-9", "-f", command[-1]])
        finally:
            if lock:
                lock.close()
        if is_recorded and os.path.exists(report):
            self.cut(report)
        with self.mutex:
            print(name, what or "recorded", said, sep="\t", file=self.results, flush=True)
            if said.startswith("failed"):
                self.failed.add(name)

    def cut(self, report):
        """Leave out what was before the GPU's work: imports, mostly."""
        done = subprocess.run([self.o.lull, "query", "-f", "csv", report,
                               "SELECT min(start_ns) FROM (SELECT start_ns FROM kernel UNION ALL SELECT start_ns FROM step)"],
                              capture_output=True, text=True, check=True)
        first = max(0, int(done.stdout.split()[-1]) / 1e9 - 0.05)
        part = report + ".part.lull"
        subprocess.run([self.o.lull, "export", "-t", "lull", "--discard-environment", "-o", part,
                        "--filter-time", "%.6fs/" % first, report], check=True)
        os.replace(part, report)

    def work(self):
        while True:
            with self.mutex:
                if not self.tasks or time.time() - self.began > self.o.limit:
                    return
                task = self.tasks.pop(0)
                if task[0] in self.failed:
                    continue
            self.run(*task)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("lull")
    options.add_argument("out")
    options.add_argument("--only")
    options.add_argument("--twice", action="store_true")
    options.add_argument("--limit", type=float, default=1e9)
    runner = Runner(options.parse_args())
    runner.o.lull, runner.o.out = os.path.abspath(runner.o.lull), os.path.abspath(runner.o.out)
    runner.prepare()
    workers = [threading.Thread(target=runner.work) for _ in range(SIDE_BY_SIDE)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    print("%d runs left, failed: %s" % (len(runner.tasks), ", ".join(sorted(runner.failed)) or "none"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
