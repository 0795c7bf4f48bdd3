#!/usr/bin/env python3
"""Traces of torch.profiler that people bring: every version, every kind of loop, whole or not; each gets steps and an answer.

Usage: test_traces.py BUILD [NAME...]
"""
import json
import os
import sys
import tempfile
import unittest

import kineto_traces as traces
import runner

LULL = os.path.join(os.path.abspath(sys.argv[1]), "lull")
VERSIONS = ["1.8", "1.11", "1.13", "2.0", "2.1", "2.4", "2.9"]


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.dir.cleanup()

    def path(self, name="trace.json.gz"):
        return os.path.join(self.dir.name, name)

    def run_why(self, path, *args, status=0):
        done = runner.run([LULL, "why", *args, path])
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def why(self, trace, text=None):
        """The answer, as JSON."""
        path = self.path("trace.json") if text else self.path()
        if text:
            with open(path, "w") as f:
                f.write(text)
        else:
            trace.write(path)
        return json.loads(self.run_why(path, "-f", "json").stdout)

    def says(self, trace):
        trace.write(self.path())
        return " ".join(self.run_why(self.path()).stdout.split())

    def check_steps(self, got, source, n):
        self.assertEqual((got["steps"]["source"], got["steps"]["steady"]), (source, n))


class Steps(Case):
    def test_training_of_every_version(self):
        for version in VERSIONS:
            with self.subTest(version):
                got = self.why(traces.train(version))
                self.check_steps(got, "step", 4)
                self.assertEqual(got["first"], "gpu-bound")

    def test_training_without_marks(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.check_steps(self.why(traces.train(version, is_marked=False)), "period", 4)

    def test_inference_of_every_version(self):
        for version in VERSIONS:
            with self.subTest(version):
                got = self.why(traces.infer(version))
                self.assertEqual(got["steps"]["steady"], 7)
                self.assertEqual(got["first"], "host-sync")

    def test_calls_of_the_model_are_steps(self):
        # Its blocks and operators repeat, too, and more often.
        self.check_steps(self.why(traces.infer(has_modules=True)), "forward", 7)

    def test_what_repeats_in_one_call_of_the_model_is_a_part_of_it(self):
        self.assertIn("they lie inside 1 call of Net_0: parts of the model, not steps",
                      self.says(traces.infer(n=1, has_modules=True)))

    def test_tokens_are_steps(self):
        self.check_steps(self.why(traces.decode()), "period", 39)

    def test_tokens_that_a_server_names_are_steps(self):
        got = self.why(traces.decode(name=lambda i: "execute_context_%d(%d)_generation_%d(%d)" %
                                     ((0, 0, i % 3, i % 3) if i else (1, 512, 0, 0))))
        self.check_steps(got, "name", 39)

    def test_training_with_evaluation(self):
        t = traces.train(n=6)
        for _ in range(4):
            traces.forward(t)
            t.item()
        self.check_steps(self.why(t), "step", 5)


class Doubt(Case):
    def test_the_only_step_is_not_taken_apart(self):
        # It has 24 layers, which repeat.
        got = self.why(traces.train(n=1, first=3, n_layers=24))
        self.assertIsNone(got["first"])
        self.assertIn("Probably gpu-bound. The GPU computes for", got["guess"])
        self.assertIn("only one step", got["unsure"])
        self.assertIn("lull profile", got["settle"])

    def test_start_up_is_no_launch_that_is_late(self):
        t = traces.Trace()
        for i in range(12):
            t.op("aten::" + "abcdefghijkl"[i] * 3, ("kernel_" + "abcdefghijkl"[i], 10))
            if i == 6:
                t.call("cudaFree", 600000)
            elif i < 3:
                t.call("cudaFree", 100)
        text = self.says(t)
        self.assertTrue(text.startswith("Probably lazy-init."), text)
        self.assertIn("(cudaFree: ", text)
        self.assertIn("Not sure: ", text)
        self.assertIn("To be sure: lull profile", text)

    def test_graphs_without_their_kernels(self):
        t = traces.decode(graphs="none")
        text = self.says(t)
        self.assertTrue(text.startswith("Probably "), text)
        self.assertIn("the recording seems to lack other kernels of these graphs", text)
        self.assertIn("To be sure: lull profile --cuda-graph-trace=node", text)
        self.assertIn("No prediction: most of the time without compute is not explained.", text)
        self.assertNotIn("graphs", self.says(traces.decode(graphs="nodes")).split("Fix:")[0])

    def test_a_trace_without_a_device_says_how_to_record_it(self):
        t = traces.train()
        t.events = [e for e in t.events if e["cat"] in ("cpu_op", "user_annotation")]
        t.write(self.path())
        self.assertIn("ProfilerActivity.CUDA", self.run_why(self.path(), status=1).stderr)

    def test_ranks_whose_time_is_not_explained_get_a_guess(self):
        for rank in range(2):
            t = traces.Trace()

            def step():
                for _ in range(3):
                    t.op("c10d::alltoall_", ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 2000))
                    # What holds the next kernel back is not in the trace.
                    t.free += 3000
                    t.op("aten::mm", ("ampere_sgemm_128x64_nn", 500))
                t.wait()
            for i in range(5):
                t.range("ProfilerStep#%d" % i, step)
            t.write(self.path("rank%d.json.gz" % rank),
                    distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        text = " ".join(self.run_why(self.dir.name).stdout.split())
        self.assertTrue(text.startswith("Probably collective-exposed: "), text)
        self.assertIn("Not sure: the recordings do not explain", text)
        got = json.loads(self.run_why(self.dir.name, "-f", "json").stdout)
        self.assertEqual((got["first"], got["likely"]), (None, "collective-exposed"))


class Files(Case):
    def test_a_file_that_ends_in_the_middle(self):
        t = traces.train(n=8)
        for text in (t.json(), json.dumps(t.events)):
            got = self.why(t, text[:int(len(text) * 0.7)])
            self.assertEqual(got["steps"]["source"], "step")
            self.assertGreaterEqual(got["steps"]["steady"], 3)

    def test_a_bare_array(self):
        t = traces.train()
        self.check_steps(self.why(t, json.dumps(t.events)), "step", 4)

    def test_the_order_of_events_does_not_matter(self):
        t = traces.train()
        whole = self.why(t)
        t.events.reverse()
        self.assertEqual(self.why(t)["steps"], whole["steps"])


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
