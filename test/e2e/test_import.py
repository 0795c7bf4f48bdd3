#!/usr/bin/env python3
"""lull import on files as people have them: whole, cut, damaged, huge, and nothing of the kind.

Usage: test_import.py LULL TRACE [NAME...], where TRACE is a PyTorch trace (.json.gz).

Every refusal is one line with the name of the file and the right exit status, and leaves nothing behind;
no input takes more memory than the limit.
"""
import gzip
import json
import os
import pickle
import random
import sys
import tempfile
import unittest

import runner

MEMORY = 100 << 20  # the promise; VmPeak is not looked at, the resident set is

# Runs a command and says how much memory it had. A small process of its own: what this one has would count as well,
# since the command begins as a copy of who starts it.
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


class Case(unittest.TestCase):
    lull, trace = map(os.path.abspath, sys.argv[1:3])

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.dir.cleanup()

    def path(self, name, data=None):
        path = os.path.join(self.dir.name, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data if isinstance(data, bytes) else data.encode())
        return path

    def run_lull(self, *args):
        return runner.run([self.lull, *args])

    def imported(self, path, *args):
        """Import, and give the rows of the report by table, and what was said."""
        out = self.path("out.lull")
        done = self.run_lull("import", "-f", "-o", out, *args, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {}
        for line in self.run_lull("export", "-t", "jsonlines", "-o", "-", out).stdout.splitlines():
            row = json.loads(line)
            rows.setdefault(row["table"], []).append(row)
        return rows, done.stderr

    def refused(self, path, says, status=1):
        """Import has to fail with one line that says this."""
        before = sorted(os.listdir(self.dir.name))
        done = self.run_lull("import", "-o", self.path("out.lull"), path)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(sorted(os.listdir(self.dir.name)), before)


class Import(Case):
    def test_a_real_trace_leaves_nothing_unexplained(self):
        rows, said = self.imported(self.trace)
        events = json.loads(gzip.open(self.trace).read())["traceEvents"]
        self.assertNotIn("issue", rows)
        self.assertEqual(len(said.splitlines()), 1, said)
        for table, category in [("op", "cpu_op"), ("pycall", "python_function"), ("kernel", "kernel"),
                                ("memcpy", "gpu_memcpy"), ("memset", "gpu_memset"),
                                ("alloc", "cpu_instant_event")]:
            expect = [e for e in events if e.get("cat") == category]
            self.assertEqual(len(rows[table]), len(expect), table)
            if table != "alloc":
                self.assertEqual(sum(r["dur_ns"] for r in rows[table]),
                                 sum(round(e["dur"] * 1000) for e in expect), table)
        calls = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
        self.assertEqual(sorted(r["correlation"] for r in rows["cuda_call"]),
                         sorted(e["args"]["correlation"] for e in calls))

    def test_rows_say_what_the_events_said(self):
        rows, _ = self.imported(self.trace)
        events = json.loads(gzip.open(self.trace).read())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        begin = min(round(e["ts"] * 1000) for e in events if e["ph"] != "M")
        by_id = {table: {r["id"]: r for r in rows[table]} for table in ("op_label", "launch", "lane", "frame")}

        def when(e):
            return round(e["ts"] * 1000) - begin, round(e["dur"] * 1000)

        def of(category):
            return [e for e in spans if e.get("cat") == category]

        ops = [(r["start_ns"], r["dur_ns"], by_id["lane"][r["lane"]]["tid"], by_id["op_label"][r["label"]]["name"],
                json.loads(by_id["op_label"][r["label"]]["shapes"] or "null"), r["external_id"], r["sequence"])
               for r in rows["op"]]
        self.assertEqual(sorted(ops, key=str), sorted((
            (*when(e), e["tid"], e["name"], e["args"].get("Input Dims"), e["args"]["External id"],
             e["args"].get("Sequence number", -1)) for e in of("cpu_op")), key=str))
        kernels = [(r["start_ns"], r["dur_ns"], by_id["launch"][r["launch"]]["name"], r["correlation"],
                    [by_id["launch"][r["launch"]]["grid_" + x] for x in "xyz"],
                    [by_id["launch"][r["launch"]]["block_" + x] for x in "xyz"],
                    by_id["launch"][r["launch"]]["registers"], by_id["lane"][r["lane"]]["stream_id"])
                   for r in rows["kernel"]]
        self.assertEqual(sorted(kernels), sorted((
            (*when(e), e["name"], e["args"]["correlation"], e["args"]["grid"], e["args"]["block"],
             e["args"]["registers per thread"], e["args"]["stream"]) for e in of("kernel"))))
        calls = []
        for r in rows["pycall"]:
            frame = by_id["frame"][r["frame"]]
            place = f"{frame['file']}({frame['line']}): " if frame["file"] else ""
            calls.append((r["start_ns"], r["dur_ns"], place + frame["function"]))
        self.assertEqual(sorted(calls), sorted((*when(e), e["name"]) for e in of("python_function")))
        self.check_depths(rows["op"])
        self.check_depths(rows["pycall"])

    def check_depths(self, rows):
        """The depth of each row is the number of rows of its thread around it."""
        open_rows = {}
        for r in sorted(rows, key=lambda r: (r["lane"], r["start_ns"], -r["dur_ns"])):
            end = r["start_ns"] + r["dur_ns"]
            stack = open_rows.setdefault(r["lane"], [])
            while stack and (stack[-1] <= r["start_ns"] or stack[-1] < end):
                stack.pop()
            self.assertEqual(r["depth"], len(stack))
            stack.append(end)

    def test_times_are_exact_to_the_nanosecond(self):
        # Times since 1970 with three decimals do not fit a double.
        events = [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 0}] * 3
        text = json.dumps({"traceEvents": events})
        for ts in ("1695835542513910.001", "1695835542513910.002", "1695835542513913"):
            text = text.replace('"ts": 0', f'"ts": {ts}', 1)
        rows, _ = self.imported(self.path("t.json", text))
        self.assertEqual(sorted(r["start_ns"] for r in rows["range"]), [0, 1, 2999])

    def test_a_cut_file_gives_what_came_before_and_says_so(self):
        whole = gzip.open(self.trace).read()
        n_whole = len(self.imported(self.trace)[0]["op"])
        rows, said = self.imported(self.path("half.json", whole[:len(whole) // 4]))
        self.assertIn("is cut off", said)
        self.assertEqual(rows["issue"][0]["name"], "import_cut")
        self.assertLess(len(rows["op"]), n_whole)
        self.assertGreater(len(rows["op"]), n_whole // 10)
        packed = open(self.trace, "rb").read()
        rows, said = self.imported(self.path("half.json.gz", packed[:len(packed) // 2]))
        self.assertIn("is cut off", said)
        self.assertGreater(len(rows["op"]), 100)

    def test_what_is_no_trace_is_refused_in_one_line(self):
        self.refused(self.path("missing.json"), "No such file")
        self.refused(self.path("empty.json", ""), "is empty")
        self.refused(self.path("x.txt", "hello"), "none of the formats that lull reads")
        self.refused(self.path("x.json", '{"a": [1, 2]}'), 'no array "traceEvents"')
        self.refused(self.path("y.json", '{"traceEvents": ['), "before the first event")
        self.refused(self.path("z.json", '{"traceEvents": [[[[['), "before the first event")
        self.refused(self.path("x.nsys-rep", b"\x00\x01\x02\x03"), "nsys export")
        self.refused(self.path("junk.gz", b"\x1f\x8b\x08\x00junkjunkjunk"), "junk.gz")
        self.refused(self.dir.name, "is not a file")
        done = self.run_lull("import", "--type", "nothing", "x.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--list", done.stderr)

    def test_an_existing_report_is_not_replaced_unasked(self):
        out = self.path("out.lull", "precious")
        done = self.run_lull("import", "-o", out, self.trace)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--force-overwrite", done.stderr)
        self.assertEqual(open(out).read(), "precious")

    def test_several_files_become_a_report_each(self):
        one = self.path("rank0.pt.trace.json", '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]')
        two = self.path("rank1.json.gz", gzip.compress(open(one, "rb").read()))
        os.mkdir(self.path("reports"))
        done = self.run_lull("import", "-o", self.path("reports"), one, two)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(self.path("reports"))), ["rank0.lull", "rank1.lull"])
        done = self.run_lull("import", "-o", self.path("nowhere"), one, two)
        self.assertEqual(done.returncode, 2)

    def test_invalid_json_is_taken_as_far_as_it_goes(self):
        event = '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%s,"dur":1}'
        text = ("[" + event % ("tab\there", 1) + "," + event % ("nul\x00", 2) + "," + event % ("x", "NaN") +
                "," + event % ("bad \\q \\ud800", 3) + ',{"ph":"X" "name":1},' + event % ("ok", 4) + "]")
        rows, said = self.imported(self.path("bad.json", text))
        self.assertEqual(len(rows["range"]), 4)
        self.assertIn("2 events could not be understood", said)

    def limited(self, name, pieces):
        """Import a large file made of pieces, with the memory of the command looked at."""
        path = self.path(name)
        with open(path, "wb") as f:
            for piece in pieces:
                f.write(piece)
        done = runner.run([sys.executable, "-S", "-c", MEASURE, self.lull, "import", "-q", "-f", "-o", self.path("out.lull"),
                           path])
        self.assertLess(int(done.stdout), MEMORY >> 10)
        os.unlink(path)
        return done

    def test_no_input_eats_memory(self):
        event = b'{"ph":"X","name":"n%d","pid":1,"tid":%d,"ts":%d,"dur":1}'
        # millions of lines, most of them empty
        done = self.limited("lines.json", [b"[" + event % (1, 1, 1) + b"\n" * 8_000_000 + b"]"])
        self.assertEqual(done.returncode, 0, done.stderr)
        # brackets to the bottom, and a string without an end
        done = self.limited("deep.json", [b"[" + event % (1, 1, 1) + b"," + b"[" * 30_000_000])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.limited("string.json", [b"[" + event % (1, 1, 1) + b',{"name":"', b"x" * 60_000_000])
        self.assertEqual(done.returncode, 0, done.stderr)
        # a name, a thread and an open range of its own for each event
        done = self.limited("names.json", [b"["] + [event % (i, 1, i) + b",\n" for i in range(300_000)])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.limited("threads.json", [b"["] + [event % (1, i, i) + b",\n" for i in range(100_000)])
        self.assertEqual(done.returncode, 0, done.stderr)
        begin = b'{"ph":"B","name":"b","pid":1,"tid":1,"ts":%d},\n'
        done = self.limited("open.json", [b"["] + [begin % i for i in range(400_000)])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_stats_and_info_take_the_file_as_it_is(self):
        stats = self.run_lull("stats", "-q", "-f", "csv", "-r", "cuda_gpu_kern_sum", self.trace)
        self.assertEqual(stats.returncode, 0, stats.stderr)
        self.assertGreater(len(stats.stdout.splitlines()), 10)
        info = self.run_lull("info", self.trace)
        self.assertEqual(info.returncode, 0, info.stderr)
        self.assertIn("NVIDIA H200", info.stdout)


def frame(line, name="step", file="/srv/train.py"):
    return {"filename": file, "line": line, "name": name}


INNER, OUTER, NATIVE = frame(41), frame(90, "<module>"), frame(0, "at::native::empty", "??")


def snapshot():
    """As torch.cuda.memory._snapshot() gives it: one block from before the history, one that it releases, two that it has."""
    def event(action, addr, size, time_us, frames=()):
        return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, "frames": list(frames)}

    events = [event("alloc", 0x7f0000002000, 2048, 1700000000000100, [NATIVE, INNER, OUTER]),
              event("segment_alloc", 0x7f0000100000, 1 << 20, 1700000000000150),
              event("free_requested", 0x7f0000001000, 4096, 1700000000000200),
              event("free_completed", 0x7f0000001000, 4096, 1700000000000200),
              event("alloc", 0x7f0000100000, 8192, 1700000000000300, [INNER, OUTER]),
              {**event("oom", 1, 1 << 40, 1700000000000310), "device_free": 12345},
              event("free_completed", 0x7f0000002000, 2048, 1700000000000400)]
    blocks = [{"address": 0x7f0000000000, "size": 512, "requested_size": 500, "state": "active_allocated",
               "frames": [frame(7, "build", "/srv/model.py")]},
              {"address": 0x7f0000000200, "size": 2096640, "requested_size": 0, "state": "inactive", "frames": []}]
    return {"segments": [
        {"device": 0, "address": 0x7f0000000000, "total_size": 2 << 20, "stream": 0, "segment_type": "small",
         "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks},
        {"device": 0, "address": 0x7f0000100000, "total_size": 1 << 20, "blocks": [
            {"address": 0x7f0000100000, "size": 8192, "state": "active_allocated", "frames": [INNER, OUTER]}]}],
        "device_traces": [events, []], "allocator_settings": {"max_split_size": -1, "fraction": 0.5, "none": None}}


class Snapshot(Case):
    """Memory snapshots of PyTorch, which are pickles: nothing in them is run."""

    def check(self, data):
        rows, _ = self.imported(self.path("snapshot.pickle", data))
        self.assertEqual([(r["size_bytes"], r["allocated_bytes"], r["reserved_bytes"]) for r in rows["alloc"]],
                         [(4096, 4096, 2 << 20), (512, 4608, 2 << 20), (2048, 6656, 2 << 20), (-4096, 2560, 3 << 20),
                          (8192, 10752, 3 << 20), (-2048, 8704, 3 << 20)])
        self.assertEqual([r["start_ns"] for r in rows["alloc"]][2:], [1000, 101000, 201000, 301000])
        return rows

    def test_every_protocol_of_python_is_read(self):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            with self.subTest(protocol):
                rows = self.check(pickle.dumps(snapshot(), protocol))
        self.assertEqual({(r["function"], r["file"], r["line"]) for r in rows["frame"]},
                         {("step", "/srv/train.py", 41), ("<module>", "/srv/train.py", 90), ("build", "/srv/model.py", 7)})
        self.assertEqual(len(rows["mark"]), 1)
        self.check(gzip.compress(pickle.dumps(snapshot())))

    def test_reports_of_memory_use_it(self):
        path = self.path("snapshot.pickle", pickle.dumps(snapshot()))
        peak = json.loads(self.run_lull("stats", "-r", "alloc_peak", "--format", "json", path).stdout)
        text = json.dumps(peak)
        self.assertIn("train.py:41", text)
        self.assertIn("model.py:7", text)
        self.assertIn("10752", text)

    def test_segments_alone_are_enough(self):
        rows, _ = self.imported(self.path("s.pickle", pickle.dumps(snapshot()["segments"])))
        self.assertEqual([r["size_bytes"] for r in rows["alloc"]], [512, 8192])
        old = [{"device": 0, "address": 4096, "total_size": 4096, "blocks": [
            {"size": 1024, "state": "inactive"},
            {"size": 512, "state": "active_allocated", "history": [{"addr": 0, "frames": [INNER]}]}]}]
        rows, _ = self.imported(self.path("old.pickle", pickle.dumps({"segments": old, "device_traces": []})))
        self.assertEqual([(r["address"], r["size_bytes"]) for r in rows["alloc"]], [(5120, 512)])

    def test_nothing_of_a_pickle_is_run(self):
        class Evil:
            def __reduce__(self):
                return os.mkdir, (os.path.join(os.getcwd(), "evil"),)

        os.chdir(self.dir.name)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            data = pickle.dumps({"segments": [], "x": Evil()}, protocol)
            self.refused(self.path("evil.pickle", data), "lull runs nothing of what a pickle says")
        self.assertFalse(os.path.exists("evil"))
        os.chdir("/")

    def test_what_is_no_snapshot_is_refused(self):
        self.refused(self.path("a.pickle", pickle.dumps([1, 2, 3])), "neither segments nor device_traces")
        self.refused(self.path("b.pickle", b"\x80\x04" + b"segments" * 9), "the pickle")
        whole = pickle.dumps(snapshot())
        self.refused(self.path("c.pickle", whole[:-10]), "ends early")
        loop = []
        loop.append(loop)
        self.imported(self.path("d.pickle", pickle.dumps({"segments": loop, "device_traces": loop})))

    def test_no_change_of_a_byte_does_harm(self):
        whole, rng = pickle.dumps(snapshot()), random.Random(7)
        for _ in range(60):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            done = self.run_lull("import", "-f", "-q", "-o", self.path("out.lull"), self.path("x.pickle", bytes(data)))
            self.assertIn(done.returncode, (0, 1), done.stderr)


if __name__ == "__main__":
    runner.main(__name__, sys.argv[3:])
