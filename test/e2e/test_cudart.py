#!/usr/bin/env python3
"""Launches through libcudart, which are timed in the callers' offset tables, on the simulated device.

Usage: test_cudart.py BUILD
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else "build")
LULL = os.path.join(BUILD, "lull")
ENV = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))

KERNELS = """SELECT s.value AS call, k.gridX * 100 + k.gridY * 10 + k.gridZ AS grid, k.blockX AS block,
    k.dynamicSharedMemory AS shared, count(*) AS n, min(k.start >= r.start) AS is_later, max(r.end - r.start) AS length
    FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
    LEFT JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2, 3, 4 ORDER BY n DESC"""
CALLS = """SELECT s.value AS call, r.returnValue != 0 AS is_failed, count(*) AS n FROM CUPTI_ACTIVITY_KIND_RUNTIME r
    JOIN StringIds s ON s.id = r.nameId WHERE s.value LIKE '%Launch%' GROUP BY 1, 2 ORDER BY 1, 2"""


def record(guest, *options):
    """Kernels with their calls, (call, grid, block, shared bytes, how many); calls (name, is it an error, how many)."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "r.lull")
        done = subprocess.run([LULL, "profile", "-q", "-t", "cuda", *options, "-o", report,
                               os.path.join(BUILD, "e2e", guest)], env=ENV, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "failed: 1\n"), done

        def query(sql):
            return json.loads(subprocess.run([LULL, "query", "-f", "json", report, sql], check=True, capture_output=True,
                                             text=True).stdout)
        kernels, calls = query(KERNELS), query(CALLS)
    for k in kernels:
        assert k["is_later"] and 0 < k["length"] < 1e9, k
    return ([(k["call"], k["grid"], k["block"], k["shared"], k["n"]) for k in kernels],
            [(c["call"], c["is_failed"], c["n"]) for c in calls])


class Cudart(unittest.TestCase):
    def test_launches_of_the_runtime_are_its_own(self):
        for guest in ("cudart_guest_now", "cudart_guest_noplt"):
            kernels, calls = record(guest)
            self.assertEqual(kernels, [("cudaLaunchKernel", 234, 32, 128, 30), ("cudaLaunchKernel", 234, 32, 256, 20),
                                       ("cuLaunchKernel", 711, 64, 0, 10), ("cuLaunchKernel", 511, 16, 0, 5)], guest)
            self.assertEqual(calls, [("cuLaunchKernel", 0, 15), ("cudaLaunchKernel", 0, 50), ("cudaLaunchKernel", 1, 1)], guest)

    def test_what_is_not_bound_is_seen_in_the_driver(self):
        """Entries that the loader fills in at the first call; nothing is lost by that."""
        kernels, calls = record("cudart_guest")
        self.assertEqual(sum(k[4] for k in kernels), 65)
        self.assertNotIn(None, [k[0] for k in kernels])
        self.assertEqual(sum(c[2] for c in calls), 66)

    def test_with_stacks_the_driver_tells(self):
        kernels, _ = record("cudart_guest_now", "--cudabacktrace=all:0")
        self.assertEqual({k[0] for k in kernels}, {"cuLaunchKernel"})
        self.assertEqual(sum(k[4] for k in kernels), 65)


if __name__ == "__main__":
    unittest.main()
