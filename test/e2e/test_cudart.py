#!/usr/bin/env python3
"""A program of the CUDA runtime, on the simulated device: its calls, by callbacks and in the callers' offset tables.

Usage: test_cudart.py BUILD [NAME...]
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
SAYS = "failed: 1\nremembered: 1, then 0\ndevice 0: 2 1 99\n"

# Loads the guest and all that it needs, runs it and unloads all again; with "moved" something else comes to lie where it
# was, else it comes to the same place again.
LOAD = """import _ctypes, ctypes, mmap, sys
driver, held = ctypes.CDLL("libcuda.so.1"), []
for _ in range(int(sys.argv[2])):
    guest = ctypes.CDLL(sys.argv[1])
    assert guest.main(1, None) == 0
    _ctypes.dlclose(guest._handle)
    assert "libcudart" not in open("/proc/self/maps").read()
    held.append("moved" in sys.argv and mmap.mmap(-1, 300000))
ctypes.CDLL(None).fflush(None)
"""

KERNELS = """SELECT s.value AS call, k.gridX * 100 + k.gridY * 10 + k.gridZ AS grid, k.blockX AS block,
    k.dynamicSharedMemory AS shared, count(*) AS n, min(k.start >= r.start) AS is_later, max(r.end - r.start) AS length
    FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
    LEFT JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2, 3, 4 ORDER BY 2, 4"""
CALLS = """SELECT s.value AS call, r.returnValue != 0 AS is_failed, count(*) AS n FROM CUPTI_ACTIVITY_KIND_RUNTIME r
    JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2 ORDER BY 1, 2"""
COPIES = """SELECT s.value AS call, c.copyKind AS kind, c.bytes AS bytes, count(*) AS n
    FROM CUPTI_ACTIVITY_KIND_MEMCPY c JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
    JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2, 3 ORDER BY 2"""
WAITS = """SELECT s.value AS call, y.syncType AS kind, count(*) AS n FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION y
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2 ORDER BY 1"""

# Launches as (name of the call, grid, threads of x, shared memory, how many).
INSIDE = [("cudaLaunchKernel", 234, 32, 128, 30), ("cudaLaunchKernel", 234, 32, 256, 20),
          ("cudaLaunchKernel", 234, 32, 512, 7), ("cuLaunchKernel", 511, 16, 0, 5),
          ("cudaLaunchKernelExC", 711, 64, 0, 10)]
AROUND = [("cudaLaunchKernel", 111, 1, 0, 2)]


N_QUEUED = 20


class Recording:
    """What a recording of the guest holds, and what CUPTI was asked for meanwhile."""

    def __init__(self, guest, *options, how=None, rounds=1, moves=(), **knobs):
        """how: None, or what a guest with a queue does (cudart_guest.c); "stopped" and "killed" are done to it."""
        self.program = os.path.join(BUILD, "e2e", guest)
        with tempfile.TemporaryDirectory() as folder:
            self.report, state = os.path.join(folder, "r.lull"), os.path.join(folder, "state")
            self.env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), LULL_SIM_STATE=state, **knobs)
            begin = time.monotonic_ns()
            if how:
                self.run_queue(how, *options)
            else:
                argv = [sys.executable, "-c", LOAD, self.program, str(rounds), *moves] if guest.endswith(".so") else [self.program]
                done = runner.run(self.profile(*options, *argv), env=self.env)
                assert (done.returncode, done.stdout) == (0, SAYS * rounds), done
                with open(state, encoding="ascii") as f:
                    self.n_callbacks = int(dict(word.split("=") for word in f.read().split())["callbacks"])
            self.took = time.monotonic_ns() - begin
            self.read(with_memory=not how)

    def profile(self, *words):
        return [LULL, "profile", "-t", "cuda", "-o", self.report, *words]

    def run_queue(self, how, *options):
        session = f"cudart-{os.getpid()}"
        p = runner.start(self.profile("--metrics-port=0", f"--session-new={session}", *options, self.program, str(N_QUEUED),
                                      how if how in ("stop", "through") else "wait"), env=self.env, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        url = runner.url_of_metrics(p)
        said = p.stdout.readline()
        assert said == "done\n", (said, runner.finish(p))
        if how == "stopped":
            runner.run([LULL, "stop", f"--session={session}"], check=True)
        if how == "killed":
            # The recorder has them, the one before the queue as well, although CUPTI has not given the buffer back.
            runner.until(lambda: runner.metric(url, "lull_kernels_total") >= N_QUEUED + 1, "all that is done is seen")
            [guest] = [pid for pid in runner.children(p.pid) if runner.program_of(pid) == os.path.realpath(self.program)]
            os.kill(guest, signal.SIGKILL)
        if how in ("stop", "stopped"):
            runner.until_file(self.report)
        runner.finish(p)  # this also is the end of its input
        assert p.returncode == (137 if how == "killed" else 0), p.returncode

    def read(self, with_memory):
        kernels, calls = self.query(KERNELS), self.query(CALLS)
        copies, waits = (self.query(COPIES), self.query(WAITS)) if with_memory else ([], [])
        info = json.loads(runner.run([LULL, "info", "--json", self.report], check=True).stdout)
        for k in kernels:
            assert k["is_later"] and 0 < k["length"] <= self.took, k
        self.kernels = [(k["call"], k["grid"], k["block"], k["shared"], k["n"]) for k in kernels]
        self.calls = {(c["call"], c["is_failed"]): c["n"] for c in calls}
        self.copies = [(c["call"], c["kind"], c["bytes"], c["n"]) for c in copies]
        self.waits = {w["call"]: (w["kind"], w["n"]) for w in waits}
        self.issues = {i["name"]: i["count"] for i in info["issues"]}

    def query(self, sql):
        return json.loads(runner.run([LULL, "query", "-f", "json", self.report, sql], check=True).stdout)

    def queued(self):
        """Kernels of the queue, and the long one after them, each with its call."""
        return [(k[0], k[3], k[4]) for k in self.kernels if k[3] in (64, 96)]


class Cudart(unittest.TestCase):
    def check_launches(self, r):
        self.assertEqual(r.kernels, AROUND + INSIDE)
        self.assertEqual({c: n for c, n in r.calls.items() if "Launch" in c[0]},
                         {("cudaLaunchKernel", 0): 59, ("cudaLaunchKernel", 1): 1, ("cudaLaunchKernelExC", 0): 10,
                          ("cuLaunchKernel", 0): 5})

    def test_launches_in_tables_are_the_runtime_s(self):
        for guest in ("cudart_guest_now", "cudart_guest_noplt", "cudart_guest_shared", "cudart_guest_shared_now"):
            with self.subTest(guest):
                self.check_launches(Recording(guest))

    def test_entries_filled_at_the_first_call(self):
        """Whoever sees a launch, callback or table, it is seen once and has its name."""
        self.check_launches(Recording("cudart_guest"))

    def test_with_stacks_all_are_seen_by_callbacks(self):
        wrapped, called = Recording("cudart_guest_now"), Recording("cudart_guest_now", "--cudabacktrace=all:0")
        self.check_launches(called)
        self.assertEqual(wrapped.calls, called.calls)
        # Begin and end of each of 60 launches.
        self.assertEqual(called.n_callbacks - wrapped.n_callbacks, 120)

    def test_other_calls(self):
        r = Recording("cudart_guest_now")
        self.assertEqual(r.copies, [("cudaMemcpyAsync", 1, 65536, 3), ("cudaMemcpy", 2, 65536, 1)])
        self.assertEqual(r.waits, {"cudaDeviceSynchronize": (4, 3), "cudaStreamSynchronize": (3, 1),
                                   "cudaEventSynchronize": (1, 1)})
        for call in ("cudaMalloc", "cudaFree", "cudaStreamCreate", "cudaStreamDestroy", "cudaEventRecord"):
            self.assertEqual(r.calls.get((call, 0)), 1, call)
        # Not what a program asks all the time, nor what the runtime asks of the driver for a call that is there.
        self.assertFalse({c[0] for c in r.calls} & {"cudaGetDevice", "cudaGetLastError", "cuMemAlloc", "cuStreamSynchronize",
                                                    "cuCtxSynchronize", "cuMemcpyHtoDAsync", "cuMemsetD8Async"})

    def test_all_calls(self):
        r = Recording("cudart_guest_now", "--cuda-trace-all-apis=true")
        self.assertEqual(r.calls[("cudaGetDevice", 0)], 1)
        self.assertEqual((r.calls[("cudaGetLastError", 0)], r.calls[("cudaGetLastError", 1)]), (1, 1))

    def test_profiler_start_of_the_runtime(self):
        self.assertEqual(Recording("cudart_guest_now", "-c", "cudaProfilerApi").kernels, INSIDE)

    # The long one does not end as long as the test runs.
    ENDLESS = {"LULL_SIM_COST": "endless:1000000000000000"}
    DONE = [("cudaLaunchKernel", 64, N_QUEUED)]

    def test_stopped_while_work_is_queued_up(self):
        """CUPTI holds back what stands beside unfinished work; what was done is in the report all the same."""
        for how, options in (("stop", ["-c", "cudaProfilerApi"]), ("stopped", [])):
            with self.subTest(how):
                r = Recording("cudart_guest_now", *options, how=how, **self.ENDLESS)
                self.assertEqual(r.queued(), self.DONE)
                self.assertGreaterEqual(r.calls[("cudaLaunchKernel", 0)], N_QUEUED + 1)
                self.assertEqual(r.issues["device_unfinished"], 1, r.issues)
                self.assertNotIn("no_device_time", r.issues)

    def test_killed_while_work_is_queued_up(self):
        """All launches are in one buffer, which CUPTI never gives back."""
        r = Recording("cudart_guest_now", how="killed", **self.ENDLESS)
        self.assertEqual(r.queued(), self.DONE)
        self.assertEqual(r.issues["device_tail"], 1)
        self.assertNotIn("no_device_time", r.issues)

    def test_held_back_and_given_back(self):
        """What was taken while CUPTI had the buffer is not taken again."""
        r = Recording("cudart_guest_now", how="through", LULL_SIM_COST="endless:1000000000")
        self.assertEqual(r.queued(), [*self.DONE, ("cudaLaunchKernel", 96, 1)])
        self.assertFalse(set(r.issues) & {"device_unfinished", "no_device_time", "device_tail"}, r.issues)

    def test_a_runtime_that_is_loaded_again(self):
        for moves in ([], ["moved"]):
            with self.subTest(moves):
                r = Recording("part/libcudart_guest.so", rounds=4, moves=moves)
                self.assertEqual(r.kernels, [(*k[:4], 4 * k[4]) for k in AROUND + INSIDE])

    def test_large_thread_local_variables(self):
        """They lie on the stack of the thread that fetches the records."""
        self.check_launches(Recording("cudart_guest_tls"))


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
