#!/usr/bin/env python3
"""What was recorded on an H200 is read as it was there: kernels by their counters, PyTorch by its hooks.

Usage: test_h200.py BUILD [NAME...]
"""
import glob
import json
import os
import re
import sys
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(TEST, "data")

# What limits each kernel by the way it is written, and what its warps wait for where that follows, too.
KERNELS = {
    "stream_copy": ("memory-bound", "long_scoreboard"),
    "strided_read": ("uncoalesced", "long_scoreboard"),
    "bank_conflict": ("bank-conflict", "mio_throttle"),
    "divergent": ("divergence", None),
    "pointer_chase": ("latency-bound", "long_scoreboard"),
    "fma_fp32": ("fp32-bound", None),
    "small_grid": ("small-grid", None),
    "fat_block": ("low-occupancy", "long_scoreboard"),
    "one_counter": ("atomics", None),
    "lone_warp": ("barrier", "barrier"),
    "stream_detailed": ("memory-bound", "long_scoreboard"),
}

# What an expert says of the longest kernel of an operator (test/gpu/unseen_torch.py), after a look at its counters.
OPERATORS = {
    "matmul_bf16": "tensor-bound:tensor cores",
    "matmul_fp32": "fp32-bound:fp32 pipe",
    "matmul_thin": "memory-bound:DRAM",
    "matmul_small": "launch-overhead:",
    "layer_norm": "issue-bound:instruction issue",
    "softmax": "latency-bound:Long scoreboard",
    "attention": "latency-bound:Barrier",
    "embedding": "memory-bound:DRAM",
    "pick": "uncoalesced:",
    "gelu": "alu-bound:integer and logic pipe",
    "add": "memory-bound:DRAM",
    "add_small": "launch-overhead:",
    "transposed_copy": "uncoalesced:",
    "index_add": "latency-bound:Long scoreboard",
    "histogram": "atomics:",
    "total": "memory-bound:DRAM",
    "cross_entropy": "memory-bound:DRAM",
    "adamw": "memory-bound:DRAM",
    "conv": "tensor-bound:tensor cores",
    "cumsum": "bank-conflict:",
    "batch_norm": "memory-bound:DRAM",
    "linear_few_rows": "memory-bound:DRAM",
    "small_products": "memory-bound:DRAM",
    "triton_rows": "memory-bound:DRAM",
}


def lull(*words):
    return runner.run([BUILD + "/lull", *words], check=True).stdout


class Kernels(unittest.TestCase):
    def launches(self, name):
        return json.loads(lull("kernel", "--format", "json", "%s/kernels/%s.lull" % (DATA, name)))["launches"]

    def launch(self, name):
        return json.loads(lull("kernel", "--format", "json", "%s/kernels/%s.lull" % (DATA, name)))["launches"][0]

    def counters(self, name):
        rows = lull("query", "--format", "csv", "%s/kernels/%s.lull" % (DATA, name), "select key, value from kmetric")
        pairs = (line.split(",") for line in rows.splitlines()[1:])
        return {key: float(value) for key, value in pairs if value}

    def test_every_verdict_is_the_label(self):
        for name, (label, stall) in KERNELS.items():
            with self.subTest(name):
                launch = self.launch(name)
                self.assertEqual(launch["verdict"]["id"], label)
                self.assertGreaterEqual(launch["verdict"]["gain"], 1)
                if stall:
                    self.assertEqual(max(launch["stalls"], key=lambda s: s["share"])["reason"], stall)

    def test_nothing_is_left_out(self):
        found = {os.path.basename(p)[:-5] for p in glob.glob(DATA + "/kernels/*.lull")}
        self.assertEqual(found, set(KERNELS) | {"unseen", "unseen_basic", "span", "operators"})

    def unseen(self, report):
        """Name, whether the verdict is one that was written down beforehand, and the launch."""
        # NAME or NAME:DETAIL, several where more than one is right.
        with open(os.path.join(TEST, "gpu", "unseen_kernels.cu"), encoding="utf-8") as source:
            labels = re.findall(r'^\t\{ "(\w+)", "([^"]+)", run_\w+ \}', source.read(), re.M)
        labels = dict(labels)
        launches = self.launches(report)
        self.assertEqual(len(launches), 57)
        for launch in launches:
            name, found = launch["kernel"].split("(")[0], launch["verdict"]
            label = labels[name]
            yield name, any(found["id"] == one and detail in ("", found["detail"])
                            for one, _, detail in (word.partition(":") for word in label.split("|"))), launch

    def test_kernels_that_the_rules_were_not_written_for(self):
        for name, is_right, launch in self.unseen("unseen"):
            with self.subTest(name):
                self.assertTrue(is_right, launch["verdict"])
                self.assertTrue(launch["verdict"]["fix"] and launch["verdict"]["proofs"])
                self.assertGreater(launch["registers"], 0)

    def test_the_basic_set_is_enough_for_nearly_all_of_them(self):
        wrong = [name for name, is_right, _ in self.unseen("unseen_basic") if not is_right]
        # 57 % of a pipe that is not among those of the set, where 60 % would be its limit.
        self.assertEqual(wrong, ["product_naive"])

    def test_operators_of_torch(self):
        longest = {}
        for launch in self.launches("operators"):
            name = (launch["range"] or "").removeprefix("op:")
            if launch["duration_ns"] > longest.get(name, launch)["duration_ns"] or name not in longest:
                longest[name] = launch
        found = {name: launch["verdict"]["id"] + ":" + launch["verdict"]["detail"] for name, launch in longest.items()}
        self.assertEqual(found, OPERATORS)

    def test_a_range_is_one_piece_of_work(self):
        span, = self.launches("span")
        self.assertEqual((span["n_launches"], span["n_launches_least"], span["passes"]), (5, 5, 12))
        self.assertEqual(span["verdict"]["id"], "launch-overhead")
        self.assertNotIn("limited_by", span)

    def test_bytes_and_operations_are_those_of_the_code(self):
        # 2 GiB are moved; each thread of divergent and lone_warp has so many fused multiply-adds.
        self.assertAlmostEqual(self.counters("stream_copy")["dram_bytes"] / 2**31, 1, delta=0.02)
        for name in ("divergent", "lone_warp"):
            c = self.counters(name)
            self.assertEqual(c["op_fadd"] + c["op_fmul"] + 2 * c["op_ffma"], 1081344000, name)
        self.assertEqual(2 * self.counters("fma_fp32")["op_ffma"], 173015040000)


class Torch(unittest.TestCase):
    """planted.py without its NVTX calls, and one step by operators beside what torch.profiler said of it."""

    def path(self, name):
        return "%s/torch/%s" % (DATA, name)

    def phases(self, name):
        rows = lull("query", "--format", "csv", self.path(name),
                    "select l.name, count(*) from range r join label l on l.id = r.label where l.api = 6 group by 1")
        return {name: int(n) for name, n in (line.split(",") for line in rows.splitlines()[1:])}

    def test_phases_and_causes_need_no_names(self):
        for name, cause, phases in (("dataloader_cpu.lull", "input-pipeline", "data_load forward backward optimizer"),
                                    ("launch_bound.lull", "launch-bound", "forward backward optimizer")):
            with self.subTest(name):
                why = json.loads(lull("why", "--format", "json", self.path(name)))
                self.assertEqual(why["first"], cause)
                found = self.phases(name)
                self.assertEqual({p: found.get(p) for p in phases.split()}, dict.fromkeys(phases.split(), 15))

    def test_operators_are_those_of_torch_profiler(self):
        with open(self.path("profiler.json"), encoding="utf-8") as f:
            truth = json.load(f)
        calls, theirs_us = {}, 0
        for row in truth:
            # Not an operator: what the profiler itself did in that step.
            if row["name"] == "Activity Buffer Request":
                continue
            calls[row["name"]] = calls.get(row["name"], 0) + row["calls"]
            theirs_us += row["cuda_us"]
        table = json.loads(lull("stats", "-q", "--format", "json", "-r", "ops", self.path("ops.lull")))
        ours = {row["Name"]: row for row in table if row["Name"] in calls}
        operators = {n: c for n, c in calls.items() if n.startswith(("aten::", "autograd::")) or n.endswith("Backward0")}
        self.assertGreaterEqual(len(operators), 40)
        self.assertEqual({n: ours[n]["# of Calls"] for n in operators if n in ours}, operators)
        us = sum(row["Self CUDA (ns)"] for row in ours.values()) / 1e3
        self.assertAlmostEqual(us / theirs_us, 1, delta=0.02)

    def test_memory_has_lines(self):
        """Python 3.12: each block, forward and backward, by the line of the program that asked for it."""
        rows = json.loads(lull("stats", "-q", "--format", "json", "-r", "alloc_sum", self.path("ops.lull")))
        lines = {}
        for row in rows:
            line = row["Line"].split(" ")[0]
            lines[line] = lines.get(line, 0) + row["Allocated (bytes)"]
        # The model and its loss, loss.backward() for its first gradient, and what the step does at its end.
        self.assertEqual(len([at for at in lines if "torch_hooks.py:" in at]), 3, lines)
        self.assertGreater(sum(n for at, n in lines.items() if "torch_hooks.py:" in at), 0.99 * sum(lines.values()))


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
