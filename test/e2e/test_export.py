#!/usr/bin/env python3
"""Exports, read by programs that are not ours: python's json and csv, protoc, hyparquet, awk.

Usage: test_export.py BUILD [NAME...]
"""
import collections
import csv
import glob
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "proto")
TRACE = os.path.join(HERE, "..", "golden", "export", "chrome", "trace.txt")
STACKS = os.path.join(HERE, "..", "golden", "export", "folded", "trace.txt")
LULL = os.path.join(BUILD, "lull")
NPM = os.path.join(BUILD, "npm")


def has_parquet_reader():
    return shutil.which("node") and os.path.isdir(os.path.join(NPM, "node_modules", "hyparquet"))


def lull(*words, status=0, **kwargs):
    done = runner.run([LULL, *words], text=False, **kwargs)
    if done.returncode != status:
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr.decode()}")
    return done


def rows_of(report, *words):
    """All rows by table, as jsonlines has them."""
    tables = collections.defaultdict(list)
    for line in lull("export", "-t", "jsonlines", "-o", "-", *words, report).stdout.splitlines():
        row = json.loads(line)
        tables[row.pop("table")].append(row)
    return tables


def random_trace(seed):
    """Nested and overlapping ranges, kernels that overlap, values of all sizes, in blocks out of order."""
    r = random.Random(seed)
    lines = ["file epoch=1s utc=1700000000s", "process pid=7 name=p", "device process=1 device_id=0"]
    for lane in range(3):
        lines.append(f"lane kind=1 process=1 tid={10 + lane} name=t{lane}")
    lines.append("lane kind=2 process=1 device=1 stream_id=7")
    for i in range(20):
        lines.append(f'label name="label {i}, \\"{"x" * i}\\"" api=1')
        lines.append(f"launch name=k{i % 7} grid_x={i}")
    facts = []

    def nest(lane, start, dur, depth):
        facts.append(f"range start={start} dur={dur} depth={depth} lane={lane} label={r.randint(1, 20)} "
                     f"flags={r.choice([0, 0, 0, 4])} payload_type=1 payload={r.getrandbits(r.choice([1, 8, 63, 64]))}")
        at = start
        while depth < 4 and at < start + dur:
            part = r.randint(0, max(1, dur // 2))
            if at + part > start + dur:
                break
            nest(lane, at, part, depth + 1)
            at += part + r.choice([0, 0, r.randint(0, dur)])

    for lane in (1, 2, 3):
        at = 0
        for _ in range(20):
            dur = r.choice([0, 1, 1000, 200000000])
            nest(lane, at, dur, 0)
            at += dur + r.randint(0, 1000)
    for i in range(3000):
        at = r.randint(0, 10**9)
        facts.append(f"cuda_call start={at} dur={r.randint(0, 5000)} lane={r.randint(1, 3)} name=call{i % 5} "
                     f"correlation={i + 1} ret={r.choice([0, 0, 7])}")
        if i % 3:
            facts.append(f"kernel start={at + 5000} dur={r.randint(0, 10**6)} lane=4 launch={r.randint(1, 20)} "
                         f"correlation={i + 1} process=1")
        facts.append(f"oscall start={r.randint(0, 10**9)} dur={r.randint(0, 99)} lane={r.randint(0, 3)} "
                     f"name=os{r.randint(0, 9)} ret={r.choice([0, -1, 2**62, -2**62])}")
        facts.append(f"counter start={r.randint(0, 10**9)} process=1 value={r.random()}")
    r.shuffle(facts)
    for i in range(500, len(facts), 500):
        facts[i] += "\nflush"
    return "\n".join(lines + facts) + "\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lull-export-")
        self.addCleanup(shutil.rmtree, self.folder)

    def at(self, *parts):
        return os.path.join(self.folder, *parts)

    def report(self, source):
        """A report of a readable trace: a path, or its text."""
        if "\n" in source:
            with open(self.at("trace.txt"), "w") as f:
                f.write(source)
            source = self.at("trace.txt")
        path = self.at("r.lull")
        if os.path.exists(path):
            os.unlink(path)
        lull("text", source, path)
        return path


def check_nesting(test, tracks):
    """On no track does a slice begin inside another and end after it."""
    for track, slices in tracks.items():
        open_ends = []
        for start, dur, name in sorted(slices, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if open_ends:
                test.assertLessEqual(start + dur, open_ends[-1], f"{name} on track {track}")
            open_ends.append(start + dur)


def ns(us):
    return round(us * 1000)


# ---- pytorch ----


class PyTorch(Case):
    """What lull reads back from the trace is what the report says; the reader of PyTorch's traces is another piece of code."""

    def test_it_comes_back(self):
        report = os.path.join(HERE, "..", "data", "torch", "train.lull")
        trace = self.at("train.pt.trace.json")
        lull("export", "-t", "pytorch", "-o", trace, report)
        for what in ("SELECT count(*), sum(dur), min(name), max(grid_x), max(registers) FROM kernels",
                     "SELECT count(*), sum(dur), sum(bytes) FROM copies",
                     "SELECT count(*), sum(dur), count(DISTINCT name) FROM calls",
                     "SELECT number, dur, launches, bytes FROM steps"):
            self.assertEqual(lull("query", "-f", "csv", trace, what).stdout,
                             lull("query", "-f", "csv", report, what).stdout)
        ops = [{row["Name"]: (row["# of Calls"], row["Self CUDA (ns)"]) for row in json.loads(
            lull("stats", "-q", "-r", "ops:shape", "-f", "json", path).stdout) if row["Name"].startswith("aten::")}
            for path in (trace, report)]
        self.assertGreater(len(ops[1]), 20)
        self.assertEqual(*ops)

    def test_one_process_and_names_that_are_no_text(self):
        trace = self.at("t.json")
        lull("export", "-t", "pytorch", "-o", trace, self.report(TRACE))
        with open(trace) as f:
            events = json.load(f)["traceEvents"]
        self.assertEqual({e["pid"] for e in events if e["cat" if "cat" in e else "name"] in ("cpu_op", "cuda_runtime")}, {10})
        self.assertEqual([e["name"] for e in events if e.get("cat") == "kernel" and e["args"].get("grid") == [128, 1, 1]],
                         ["void gemm<float>(float*)"])
        self.assertIn("CUDA graph", " ".join(e["name"] for e in events if e.get("cat") == "kernel" and "graph id" in e["args"]))
        self.assertIn([[2, 3], [3, 4]], [e["args"].get("Input Dims") for e in events if e.get("cat") == "cpu_op"])


# ---- chrome ----


def read_chrome(report, *words):
    out = report + ".json"
    lull("export", "-f", "-t", "chrome", "-o", out, *words, report)
    with open(out) as f:
        return json.load(f, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))


SLICES = ["range", "op", "pycall", "cuda_call", "oscall", "gil_wait", "collective", "step", "sched", "kernel",
          "memcpy", "memset", "graph", "cuda_sync", "overhead"]


class Chrome(Case):
    def check(self, report):
        trace = read_chrome(report)
        rows = rows_of(report)
        events = trace["traceEvents"]
        slices = [e for e in events if e["ph"] == "X"]
        tracks = collections.defaultdict(list)
        for e in slices:
            tracks[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["dur"]), e["name"]))
        check_nesting(self, tracks)
        wanted = sorted((row["start_ns"], row["dur_ns"]) for t in SLICES for row in rows[t])
        self.assertEqual(wanted, sorted((ns(e["ts"]), ns(e["dur"])) for e in slices))
        self.check_names(events, tracks)
        self.check_flows(events, tracks, rows)
        return trace, rows

    def check_names(self, events, tracks):
        named = collections.Counter((e["pid"], e["tid"]) for e in events if e["name"] == "thread_name")
        processes = collections.Counter(e["pid"] for e in events if e["name"] == "process_name")
        self.assertEqual(set(tracks) - set(named), set())
        self.assertEqual({pid for pid, _ in named} - set(processes), set())
        self.assertEqual(max(named.values()), 1)
        self.assertEqual(max(processes.values()), 1)

    def check_flows(self, events, tracks, rows):
        """Every arrow leads from a slice that begins there to one that does, and from each call with work."""
        begins = {(track, start) for track, slices in tracks.items() for start, _, _ in slices}
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = [e for e in events if e["ph"] == "f"]
        for e in [*starts.values(), *ends]:
            self.assertIn(((e["pid"], e["tid"]), ns(e["ts"])), begins)
        for e in ends:
            self.assertLessEqual(starts[e["id"]]["ts"], e["ts"])
        self.assertEqual({e["id"] for e in ends}, set(starts))
        work = [row["correlation"] for t in ("kernel", "memcpy", "memset", "graph") for row in rows[t]]
        calls = {row["correlation"] for row in rows["cuda_call"]}
        self.assertEqual(len(ends), sum(c in calls for c in work))

    def test_every_table_is_on_the_timeline_and_nothing_overlaps(self):
        trace, rows = self.check(self.report(TRACE))
        kinds = collections.Counter(e["ph"] for e in trace["traceEvents"])
        self.assertEqual(kinds["i"], len(rows["mark"]))
        counters = {e["name"] for e in trace["traceEvents"] if e["ph"] == "C"}
        self.assertEqual(counters, {"power (W)", "resident memory (B)", "CPU time (CPUs)", "threads",
                                    "allocated by the framework, GPU 0 (B)", "reserved by the framework, GPU 0 (B)",
                                    "memory allocated with CUDA: Device (B)"})

    def test_blocks_out_of_order_and_rows_that_overlap(self):
        for seed in range(3):
            self.check(self.report(random_trace(seed)))

    def test_packed_and_plain_hold_the_same(self):
        report = self.report(TRACE)
        plain = read_chrome(report)
        lull("export", "-t", "chrome", report)
        with gzip.open(self.at("r.json.gz")) as f:
            self.assertEqual(json.load(f), plain)

    def test_names_that_are_no_text(self):
        report = self.report('process pid=1 name=p\nlane kind=1 process=1 tid=1\nlabel name="tab\\t\\\\ quote\\" \x01 '
                             'é"\nrange start=1 dur=1 lane=1 label=1\n')
        names = [e["name"] for e in read_chrome(report)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(names, ['tab\t\\ quote" \x01 é'])

    def test_window_and_tables(self):
        report = self.report(TRACE)
        trace = read_chrome(report, "--filter-time", "50us/170us", "--tables", "kernel,cuda_call")
        cats = collections.Counter(e["cat"] for e in trace["traceEvents"] if e["ph"] == "X")
        self.assertEqual(cats, {"kernel": 3, "cuda": 3})
        # Of the calls with work only the launch of the graph lies in the window, with two kernels.
        self.assertEqual(sum(e["ph"] == "s" for e in trace["traceEvents"]), 1)
        self.assertEqual(sum(e["ph"] == "f" for e in trace["traceEvents"]), 2)

    def test_an_empty_report(self):
        report = self.report("process pid=1\n")
        self.assertEqual(read_chrome(report)["traceEvents"], [])


# ---- protocol buffers ----


def parse_text(text):
    """What protoc prints, as nested dicts of lists."""
    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            message = collections.defaultdict(list)
            stack[-1][line[:-1].strip()].append(message)
            stack.append(message)
        elif line == "}":
            stack.pop()
        else:
            key, value = line.split(": ", 1)
            if value.startswith('"'):
                value = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]),
                               value[1:-1].replace('\\"', '"').replace("\\'", "'").encode()).decode()
            stack[-1][key].append(value)
    return stack[0]


def decode(proto, message, data):
    done = runner.run(["protoc", f"--proto_path={DATA}", f"--decode={message}", proto], input=data, text=False)
    if done.returncode:
        raise AssertionError(done.stderr.decode())
    text = done.stdout.decode()
    # A field that the description lacks shows as a bare number.
    unknown = re.findall(r"^\s*\d+(?::| \{)", text, re.M)
    if unknown:
        raise AssertionError(f"fields that are not in {proto}: {unknown[:5]}")
    return parse_text(text)


def one(message, key, default=None):
    return message[key][0] if message[key] else default


@unittest.skipUnless(shutil.which("protoc"), "no protoc here")
class Perfetto(Case):
    def read(self, report):
        """Slices by track as a reader of the format puts them together; checks what it relies on."""
        out = lull("export", "-t", "perfetto", "-o", "-", report).stdout
        packets = decode("perfetto.proto", "Trace", out)["packet"]
        names = {"event_names": {}, "event_categories": {}, "debug_annotation_names": {}}
        self.tracks, events, has_state = {}, [], False
        for p in packets:
            self.assertEqual(p["trusted_packet_sequence_id"], ["1"])
            flags = int(one(p, "sequence_flags", 0))
            self.assertTrue(has_state or not flags & 2)
            has_state |= bool(flags & 1)
            for data in p["interned_data"]:
                for kind, index in names.items():
                    for entry in data[kind]:
                        self.assertNotIn(one(entry, "iid"), index)
                        index[one(entry, "iid")] = one(entry, "name", "")
            for track in p["track_descriptor"]:
                parent = one(track, "parent_uuid")
                self.assertTrue(parent is None or parent in self.tracks)
                self.assertNotIn(one(track, "uuid"), self.tracks)
                self.tracks[one(track, "uuid")] = track
            for event in p["track_event"]:
                self.assertIn(one(event, "track_uuid"), self.tracks)
                event["name"] = names["event_names"].get(one(event, "name_iid"))
                for arg in event["debug_annotations"]:
                    self.assertIn(one(arg, "name_iid"), names["debug_annotation_names"])
                events.append((int(one(p, "timestamp")), event))
        self.clocks = one(packets[0], "clock_snapshot")
        return self.put_together(sorted(events, key=lambda e: e[0]))

    def put_together(self, events):
        open_slices, slices = collections.defaultdict(list), []
        self.flows, self.moments, self.counters = collections.defaultdict(list), [], []
        epoch = int(one(one(self.clocks, "clocks"), "timestamp"))
        for time, e in events:
            kind, track = one(e, "type"), one(e, "track_uuid")
            for flow in e["flow_ids"] + e["terminating_flow_ids"]:
                self.flows[flow].append(e["name"])
            if kind == "TYPE_SLICE_BEGIN":
                open_slices[track].append((time - epoch, e))
            elif kind == "TYPE_SLICE_END":
                start, begun = open_slices[track].pop()
                slices.append((track, start, time - epoch - start, begun["name"]))
            elif kind == "TYPE_INSTANT":
                self.moments.append((time - epoch, e["name"]))
            else:
                self.counters.append((time - epoch, track, float(one(e, "double_counter_value"))))
        self.assertFalse(any(open_slices.values()))
        return slices

    def check(self, report):
        slices = self.read(report)
        tracks = collections.defaultdict(list)
        for track, start, dur, name in slices:
            tracks[track].append((start, dur, name))
        check_nesting(self, tracks)
        chrome = [(ns(e["ts"]), ns(e["dur"]), e["name"]) for e in read_chrome(report)["traceEvents"]
                  if e["ph"] == "X"]
        self.assertEqual(sorted(s[1:] for s in slices), sorted(chrome))

    def test_the_same_slices_as_in_chrome_json(self):
        report = self.report(TRACE)
        self.check(report)
        self.assertEqual(self.moments, [(250000, "loss")])
        self.assertEqual(len(self.counters), 11)
        self.assertEqual(sorted(map(tuple, self.flows.values())),
                         [("cuGraphLaunch", "relu", "relu", "[CUDA graph 4]"),
                          ("cudaLaunchKernel", "void gemm<float>(float*)", "relu"),
                          ("cudaMemcpyAsync", "[CUDA memcpy Host-to-Device]")])
        clocks = {one(c, "clock_id"): one(c, "timestamp") for c in self.clocks["clocks"]}
        self.assertEqual(clocks, {"3": "5000000000", "1": "1700000000000000000"})

    def test_tracks_have_parents_and_threads_their_numbers(self):
        self.read(self.report(TRACE))
        names = {one(t, "name"): t for t in self.tracks.values()}
        parent = self.tracks[one(names["context 2 stream 7"], "parent_uuid")]
        self.assertEqual(one(parent, "name"), "GPU 0 Test GPU")
        self.assertEqual(one(self.tracks[one(parent, "parent_uuid")], "name"), "train")
        thread = one(names["main"], "thread")
        self.assertEqual((one(thread, "pid"), one(thread, "tid")), ("10", "10"))
        self.assertEqual(one(one(names["power"], "counter"), "unit_name"), "W")

    def test_blocks_out_of_order_and_rows_that_overlap(self):
        self.check(self.report(random_trace(4)))


@unittest.skipUnless(shutil.which("protoc"), "no protoc here")
class Pprof(Case):
    def read(self, report, *words):
        lull("export", "-f", "-t", "pprof", *words, report)
        with gzip.open(self.at("r.pb.gz")) as f:
            return decode("profile.proto", "Profile", f.read())

    def test_stacks_have_names_files_and_lines(self):
        profile = self.read(self.report(STACKS))
        texts = profile["string_table"]
        self.assertEqual(texts[0], "")
        self.assertEqual(len(texts), len(set(texts)))
        functions = {one(f, "id"): texts[int(one(f, "name"))] for f in profile["function"]}
        locations = {one(l, "id"): l for l in profile["location"]}
        modules = {one(m, "id"): m for m in profile["mapping"]}
        self.assertEqual([texts[int(one(t, "type"))] for t in profile["sample_type"]], ["samples", "cpu"])
        stacks = {}
        for sample in profile["sample"]:
            names = []
            for id_ in sample["location_id"]:
                location = locations[id_]
                self.assertTrue(not location["mapping_id"] or one(location, "mapping_id") in modules)
                names += [functions[one(line, "function_id")] for line in location["line"]]
            stacks[tuple(names)] = [int(v) for v in sample["value"]]
        self.assertEqual(stacks, {
            ("do_sys", "inner", "outer", "compute<a;b>", "main"): [2, 2000000],
            (): [1, 500000],
            ("libx.so+0x1300", "inner", "outer", "compute<a;b>", "main"): [1, 500000],
        })
        labels = {texts[int(one(l, "key"))]: l for l in profile["sample"][0]["label"]}
        self.assertEqual(texts[int(one(labels["thread"], "str"))], "main thread 10")
        self.assertEqual(one(labels["tid"], "num"), "10")
        self.assertEqual(texts[int(one(modules["1"], "filename"))], "/usr/lib/libx.so")

    def test_python_samples(self):
        profile = self.read(self.report(STACKS), "--tables", "pysample")
        self.assertEqual([s["value"] for s in profile["sample"]], [["2"]])


class Folded(Case):
    def test_weights_add_up(self):
        report = self.report(STACKS)
        for table, weight, wanted in (("sample", "weight_ns", 3000000), ("pysample", None, 2)):
            folded = lull("export", "-t", "folded", "--tables", table, "-o", "-", report).stdout
            done = runner.run(["awk", "{ sum += $NF } END { print sum }"], input=folded, text=False, check=True)
            rows = rows_of(report, "--tables", table)[table]
            counted = sum(row[weight] if weight else not row["is_idle"] for row in rows)
            self.assertEqual((int(done.stdout), counted), (wanted, wanted))


# ---- tables ----


class Tables(Case):
    def test_csv_is_what_jsonlines_is(self):
        report = self.report(random_trace(5))
        lull("export", "-t", "csv", report)
        rows = rows_of(report)
        files = sorted(os.listdir(self.at("r-csv")))
        self.assertEqual(files, sorted(t + ".csv" for t in rows))
        for name in files:
            with open(self.at("r-csv", name), newline="") as f:
                read = list(csv.DictReader(f))
            wanted = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows[name[:-4]]]
            for row in read + wanted:
                if "value" in row and name == "counter.csv":
                    row["value"] = float(row["value"])
            self.assertEqual(read, wanted)

    def test_one_table_is_a_file(self):
        report = self.report(TRACE)
        lull("export", "-t", "csv", "--tables", "kernel", report)
        with open(self.at("r.csv"), newline="") as f:
            self.assertEqual(len(list(csv.DictReader(f))), 4)

    def run_reader(self, *words):
        # Node looks for packages beside the script.
        folder = self.at("npm")
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.symlink(os.path.join(NPM, "node_modules"), os.path.join(folder, "node_modules"))
            for name in ("parquet_rows.js", "package.json"):
                shutil.copy(os.path.join(HERE, "..", "npm", name), folder)
        done = runner.run(["node", os.path.join(folder, "parquet_rows.js"), *words], 300, text=False, check=True)
        return done.stdout

    def read_parquet(self, *paths):
        rows = collections.defaultdict(list)
        for line in self.run_reader(*paths).splitlines():
            read = json.loads(line)
            rows[os.path.basename(read["file"])[:-len(".parquet")]].append(read["row"])
        return rows

    @unittest.skipUnless(has_parquet_reader(), "hyparquet, which reads Parquet, did not come from npm")
    def test_parquet_is_what_jsonlines_is(self):
        for source in (TRACE, STACKS, random_trace(6)):
            report = self.report(source)
            lull("export", "-f", "-t", "parquet", report)
            read = self.read_parquet(*sorted(glob.glob(self.at("r-parquet", "*.parquet"))))
            self.compare(rows_of(report), read)

    def compare(self, rows, read, tables=None):
        self.assertEqual(sorted(rows), sorted(read))
        for table in tables or rows:
            wanted = rows[table]
            self.assertEqual(len(read[table]), len(wanted))
            for got, row in zip(read[table], wanted):
                for key, value in row.items():
                    self.assertEqual(type(value)(got[key]) if value is not None else got[key], value,
                                     f"{table}.{key}")
                self.check_reference(rows, table, got)

    def check_reference(self, rows, table, got):
        for column, target, name in (("launch", "launch", "name"), ("label", "label", "name"),
                                     ("process", "process", "name"), ("lane", "lane", "name")):
            if column + "_name" in got and (column != "label" or table == "range"):
                wanted = rows[target][got[column] - 1][name] if got[column] else None
                self.assertEqual(got[column + "_name"], wanted, f"{table}.{column}_name")

    @unittest.skipUnless(has_parquet_reader(), "hyparquet, which reads Parquet, did not come from npm")
    def test_several_row_groups_with_their_ranges(self):
        report = self.at("big.lull")
        runner.run([os.path.join(BUILD, "bench", "bench_make"), report, "600000", "bare"], check=True)
        lull("export", "-t", "parquet", "--tables", "kernel", report)
        columns = "start_ns,dur_ns,lane,launch,correlation"
        *read, groups = self.run_reader("--csv=" + columns, self.at("big-parquet", "kernel.parquet")).splitlines()
        wanted = lull("export", "-t", "csv", "--tables", "kernel", "-o", "-", report).stdout.splitlines()[1:]
        self.assertTrue(read == [line.rsplit(b",", 3)[0] for line in wanted])
        groups = json.loads(groups)
        self.assertEqual(len(groups), 2)
        for group in groups:
            for column, ranges in group.items():
                self.assertEqual(ranges["said"], ranges["is"], column)

    @unittest.skipUnless(has_parquet_reader(), "hyparquet, which reads Parquet, did not come from npm")
    def test_values_of_all_sizes(self):
        r = random.Random(7)
        lines = ["process pid=1", "lane kind=1 process=1 tid=1"]
        at = 0
        for i in range(66000):  # more than a page
            at += r.choice([0, 1, 5, 2**33])
            payload = r.getrandbits(r.choice([0, 1, 7, 31, 32, 63, 64])) if i > 2000 else 0
            data = f" data=d{r.randint(0, 9)}" if r.random() < 0.2 else ""
            lines.append(f"range start={at} dur={r.getrandbits(r.choice([1, 40]))} lane=1 payload={payload}{data} "
                         f"flags={int(i % 1000 > 300)}")
            if i % 20 == 0:
                lines.append(f"oscall start={at} lane=1 ret={r.choice([1, -1]) * r.getrandbits(r.choice([2, 62]))}")
        report = self.report("\n".join(lines) + "\n")
        lull("export", "-t", "parquet", "--tables", "range,oscall", report)
        read = self.read_parquet(*sorted(glob.glob(self.at("r-parquet", "*.parquet"))))
        for row in read["range"]:
            row["data"] = bytes.fromhex(row["data"]).decode() if row["data"] else row["data"]
        rows = rows_of(report)
        self.compare(rows, {**{t: [] for t in rows}, **read}, ["range", "oscall"])


# ---- sarif ----


class Sarif(Case):
    REPORTS = [os.path.join(HERE, "../../examples/reports", name + ".lull")
               for name in ("dataloader_cpu", "gil_thread", "launch_bound", "sync_item", "dataloader_cpu-fixed")]

    def log(self, report):
        return json.loads(lull("export", "-t", "sarif", "-o", "-", report).stdout)

    def test_results_are_the_findings_of_why(self):
        n_places = 0
        for report in self.REPORTS:
            run, = self.log(report)["runs"]
            why = json.loads(lull("why", "-f", "json", report).stdout)
            found = [f for f in why["findings"] if f["cause"] not in ("gpu-bound", "unknown", "throttled")]
            self.assertEqual([r["ruleId"] for r in run["results"]], [f["cause"] for f in found])
            for i, (result, finding) in enumerate(zip(run["results"], found)):
                self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], finding["cause"])
                self.assertEqual(result["level"], "warning" if finding["cause"] == why["first"] else "note")
                self.assertEqual(result["properties"]["cost_ns"], finding["cost_ns"])
                self.assertIn(finding["fix"], result["message"]["text"])
                place = finding["location"]
                for location in result["locations"]:
                    if place["file"]:
                        self.assertEqual(location["physicalLocation"]["region"]["startLine"], place["line"])
                        self.assertTrue(location["physicalLocation"]["artifactLocation"]["uri"].endswith(place["file"]))
                        n_places += 1
        self.assertGreaterEqual(n_places, 2)

    def test_paths_are_relative_to_where_the_program_ran(self):
        trace = os.path.join(HERE, "../golden/cause/input-pipeline-sampled/trace.txt")
        with open(trace) as f:
            text = f.read()
        for folder, uri, base in (("/home/u", "train.py", "%SRCROOT%"), ("/home", "u/train.py", "%SRCROOT%"),
                                  ("/home/us", "file:///home/u/train.py", None), ("/", "file:///home/u/train.py", None)):
            report = self.report(f"meta key=environment.PWD value={folder}\n" + text)
            place = self.log(report)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
            self.assertEqual((place["uri"], place.get("uriBaseId")), (uri, base))
        report = self.report(text.replace("/home/u/train.py", '"/home/u/my 50% #1.py"'))
        place = self.log(report)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        self.assertEqual(place["uri"], "file:///home/u/my%2050%25%20%231.py")

    def test_a_part_of_the_report_has_no_causes(self):
        done = lull("export", "-t", "sarif", "-o", "-", "--filter-time", "1ms/2ms", self.REPORTS[0], status=2)
        self.assertIn(b"sarif has the causes of the whole report", done.stderr)

    @unittest.skipUnless(shutil.which("tsc") and os.path.isdir(os.path.join(NPM, "node_modules/@types/sarif")),
                         "the types of SARIF did not come from npm, or there is no tsc")
    def test_it_has_the_types_of_sarif(self):
        """The published types as a schema: unknown keys, missing ones, wrong types and wrong words do not compile."""
        folder = tempfile.mkdtemp(dir=NPM, prefix="sarif-")
        self.addCleanup(shutil.rmtree, folder)
        logs = [json.dumps(self.log(report)) for report in self.REPORTS]
        bad = [logs[0].replace('"ruleId"', '"rule"'), logs[0].replace('"note"', '"remark"'), logs[0].replace('"version"', '"v"')]
        with open(os.path.join(folder, "logs.ts"), "w") as f:
            f.write('import type { Log } from "sarif";\n')
            for i, log in enumerate(logs):
                f.write(f"export const log{i}: Log = {log};\n")
            for i, log in enumerate(bad):
                f.write(f"// @ts-expect-error\nexport const bad{i}: Log = {log};\n")
        done = runner.run(["tsc", "--noEmit", "--strict", "--skipLibCheck", "--types", "sarif", "logs.ts"], cwd=folder)
        self.assertEqual(done.returncode, 0, done.stdout)


# ---- what cannot work ----


class Trouble(Case):
    FORMATS = ["jsonlines", "csv", "chrome", "perfetto", "parquet"]

    def test_a_full_disk_leaves_nothing_behind(self):
        report = self.report(random_trace(8))
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for name in self.FORMATS:
            done = lull("export", "-t", name, "-o", self.at("out"), report, status=1, preexec_fn=limit)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertIn(b"File too large", done.stderr)
            self.assertEqual(sorted(os.listdir(self.folder)), ["r.lull", "trace.txt"])

    def test_a_full_stream_is_told(self):
        report = self.report(TRACE)
        for name in ("jsonlines", "csv", "chrome", "perfetto"):
            with open("/dev/full", "w") as full:
                done = runner.run([LULL, "export", "-t", name, "-o", "-", report], stdout=full, text=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"No space left", done.stderr)

    def test_what_is_there_stays_unless_it_may_go(self):
        report = self.report(TRACE)
        for name in self.FORMATS:
            out = self.at("out-" + name)
            lull("export", "-t", name, "-o", out, report)
            before = os.stat(out).st_ino
            lull("export", "-t", name, "-o", out, report, status=1)
            self.assertEqual(os.stat(out).st_ino, before)
            lull("export", "-f", "-t", name, "-o", out, report)

    def test_a_file_that_is_no_report(self):
        with open(self.at("x.lull"), "w") as f:
            f.write("nonsense\n" * 100)
        for name in self.FORMATS + ["folded", "pprof"]:
            done = lull("export", "-t", name, self.at("x.lull"), status=1)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertEqual(os.listdir(self.folder), ["x.lull"])


REFERENCES = ("process", "lane", "module", "frame", "stack", "parent", "label", "device", "launch", "op_label", "metric")


def resolved(tables):
    """Facts with the rows that they refer to instead of ids, so that reports with other ids compare."""
    def row(table, values):
        if isinstance(values, int):
            values = known[table].get(values)
        return values and {k: row(table if k == "parent" else k, v) if k in REFERENCES and isinstance(v, int) else v
                           for k, v in values.items() if k != "id"}
    known = collections.defaultdict(dict)
    for name, rows in tables.items():
        known[name] = {r["id"]: r for r in rows if "id" in r}
    return {name: sorted(json.dumps(row(name, r), sort_keys=True) for r in rows)
            for name, rows in tables.items() if rows and "id" not in rows[0]}


class Part(Case):
    def cut(self, report, *words):
        out = self.at("part.lull")
        lull("export", "-f", "-t", "lull", "-o", out, *words, report)
        return out

    def test_the_whole_of_a_report_is_the_same_report(self):
        for trace in (TRACE, STACKS):
            report = self.report(trace)
            self.assertEqual(resolved(rows_of(self.cut(report))), resolved(rows_of(report)))

    def test_random_reports(self):
        for seed in range(5):
            with open(self.at("random.txt"), "w") as f:
                f.write(random_trace(seed))
            report = self.report(self.at("random.txt"))
            self.assertEqual(resolved(rows_of(self.cut(report))), resolved(rows_of(report)))
            window = ("--filter-time", "100us/300us")
            self.assertEqual(resolved(rows_of(self.cut(report, *window))), resolved(rows_of(report, *window)))

    def test_only_what_events_need_is_kept(self):
        report = self.report(STACKS)
        whole = rows_of(report)
        part = rows_of(self.cut(report, "--tables", "kernel"))
        self.assertTrue(whole["stack"])
        self.assertFalse(part["stack"] or part["frame"] or part["sample"])
        self.assertEqual(len(part["process"]), len(whole["process"]))

    def test_answers_stay_the_same(self):
        report = os.path.join(HERE, "..", "data", "unseen", "few_workers.lull")
        part = self.cut(report)
        self.assertLess(os.path.getsize(part), os.path.getsize(report))
        for words in (("why",), ("stats", "-r", "steps"), ("stats", "-r", "cuda_gpu_kern_sum")):
            self.assertEqual(lull(*words, part).stdout.replace(part.encode(), b""),
                             lull(*words, report).stdout.replace(report.encode(), b""))


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
