#!/usr/bin/env python3
"""The Python package as somebody uses it who reads reports: numbers of the commands, memory that is shared, errors.

Usage: test_python.py BUILD [NAME...]
"""
import csv
import ctypes
import glob
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings

import runner

BUILD = os.path.abspath(sys.argv[1])
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["LULL_READ_LIBRARY"] = os.environ["LULL_COMMAND"] = BUILD
PACKAGE = os.path.join(os.path.dirname(TEST), "python")
sys.path.insert(0, PACKAGE)
import lull  # noqa: E402: the package is not installed

REPORTS = sorted(glob.glob(os.path.join(TEST, "data", "**", "*.lull"), recursive=True))
TRAIN = os.path.join(TEST, "data/torch/train.lull")
# Debian's Python has numpy, because torch needs it.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
READABLE = ("kernels", "copies", "calls", "ranges", "marks", "oscalls", "samples", "ops", "counters", "idle", "steps")


def command(*words):
    return runner.run([os.path.join(BUILD, "lull"), *words], check=True).stdout


def opened(path=TRAIN):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lull.ReportWarning)
        return lull.open(path)


def python(code, *words, **how):
    """Run a piece of Python with the package; its output."""
    env = {**os.environ, "PYTHONPATH": PACKAGE, **how.pop("env", {})}
    return runner.run([PYTHON, "-c", code, *words], env=env, **how)


def is_same(mine, theirs):
    """Numbers of JSON have fewer digits, and a null in a column of texts is an empty text there."""
    if mine is None and theirs == "":
        return True
    if isinstance(mine, float) or isinstance(theirs, float):
        return isinstance(mine, (int, float)) and abs(mine - theirs) <= 1e-9 * max(abs(mine), abs(theirs))
    return mine == theirs


# ---- the same numbers ----


def tables_have_the_rows_of_query():
    """Each report with some tables, so that all tables and all reports have their turn."""
    n_rows = 0
    for i, path in enumerate(REPORTS):
        report = opened(path)
        names = [name for name in report.tables if not name.startswith("sqlite")]
        chosen = {READABLE[i % len(READABLE)], READABLE[(i + 4) % len(READABLE)], names[i % len(names)]}
        for name in sorted(chosen):
            table = report.tables[name]
            rows = json.loads(command("query", "-f", "json", "--max-rows", "0", path, f'SELECT * FROM "{name}"'))
            mine = list(table)
            runner.expect(f"{path}: rows of {name}", len(mine) == len(rows) == len(table), (len(mine), len(rows)))
            for row, theirs in zip(mine, rows):
                for column, value in zip(table.columns, row):
                    runner.expect(f"{path}: {name}.{column}", is_same(value, theirs[column]), (value, theirs[column]))
            n_rows += len(rows)
    runner.expect("rows were compared", n_rows > 10000, n_rows)


def sql_has_the_result_of_query():
    sql = ("SELECT name, count(*) AS n, sum(dur) / 3.0 AS third, NULL AS absent, x'00ff' AS bytes, "
           "CASE WHEN count(*) > 20 THEN 'many' ELSE count(*) END AS mixed, "
           "CASE WHEN count(*) > 20 THEN 1.5 ELSE 1 END AS number, min(graph_id) AS graph "
           "FROM kernels GROUP BY name ORDER BY name")
    frame = opened().sql(sql)
    rows = json.loads(command("query", "-f", "json", TRAIN, sql))
    runner.expect("there are many rows", len(rows) > 10, len(rows))
    for row, theirs in zip(frame, rows):
        for column, value in zip(frame.columns, row):
            # A column has one type: what is text in one row is text in all.
            theirs_now = str(theirs[column]) if column == "mixed" else theirs[column]
            runner.expect(column, is_same(value, theirs_now), (value, theirs[column]))
    kinds = [frame.column(name).kind for name in frame.columns]
    runner.expect("types", kinds == ["text", "int64", "float64", "null", "text", "text", "float64", "null"], kinds)


def stats_are_those_of_the_command():
    report = opened()
    for name in ("phases", "cuda_gpu_kern_sum", "cuda_api_sum", "step_use", "mfu", "osrt_sum"):
        rows = json.loads(command("stats", "-q", "-f", "json", "-r", name, TRAIN))
        frame = report.stats(name)
        runner.expect(f"columns of {name}", frame.columns == list(rows[0]), frame.columns)
        for row, theirs in zip(frame, rows, strict=True) if sys.version_info >= (3, 10) else zip(frame, rows):
            for value, other in zip(row, theirs.values()):
                value = "" if value is None else value
                # The command rounds what has decimals.
                same = value == other or not isinstance(value, str) and abs(value - other) <= 0.051
                runner.expect(f"{name}", same, (value, other))


def requests_are_those_of_the_command():
    path = os.path.join(TEST, "corpus/data/http_embedder.lull")
    rows = list(csv.DictReader(io.StringIO(command("requests", "-f", "csv", path))))
    mine = opened(path).requests
    runner.expect("as many", len(mine) == len(rows) == 66, (len(mine), len(rows)))
    for of_mine, of_theirs in (("id", "ID"), ("name", "Name"), ("start", "Start (ns)"), ("dur", "Latency (ns)"),
                               ("queue", "queue (ns)"), ("host", "host (ns)"), ("launch", "launch (ns)")):
        told = [str(value) for value in mine.column(of_mine).to_list()]
        runner.expect(of_mine, told == [row[of_theirs] for row in rows], told[:3])
    runner.expect("none of a program that trains", len(opened().requests) == 0)


def why_info_and_diff_are_those_of_the_commands():
    other = os.path.join(TEST, "data/torch/dataloader_cpu.lull")
    for path in (TRAIN, other):
        report = opened(path)
        why = report.why(what_if=["input-pipeline=0.5"])
        runner.expect("why", why == json.loads(command("why", "-f", "json", "--what-if", "input-pipeline=0.5", path)), why)
        runner.expect("why as text", str(report.why(width=80)).split() == command("why", path).split(), str(why))
        runner.expect("info", report.info == json.loads(command("info", "--json", path)), report.info)
    diff = opened().diff(other)
    runner.expect("diff", diff == json.loads(command("diff", "--format", "json", "--top", "0", TRAIN, other)), diff)
    runner.expect("diff by report", opened().diff(opened(other)) == diff, diff)
    runner.expect("too few steps for a change", diff.change is None, diff.change)
    planted = os.path.join(TEST, "data/planted-native")
    sure = opened(os.path.join(planted, "sync_item.lull")).diff(os.path.join(planted, "sync_item-fixed.lull"))
    runner.expect("change", sure.change == sure["step_time_ns"]["change"] != 0, sure.change)


# ---- memory ----


def columns_are_read_one_by_one():
    report = opened()
    kernels = report.kernels
    dur = kernels["dur"]
    report.close()  # what was read stays
    runner.expect("a column is the same object in memory", kernels.column("dur").values == kernels.column("dur").values)
    runner.expect("sum", sum(dur) == opened().sql("SELECT sum(dur) AS s FROM kernels")["s"][0], sum(dur))
    try:
        kernels["start"]
    except lull.UsageError as error:
        runner.expect("a closed report says so", "is closed" in str(error), error)
    else:
        raise AssertionError("a column of a closed report was read")


def numpy_shares_the_memory():
    code = """
import sys, gc, lull
try:
    import numpy
except ImportError:
    print("no numpy"); sys.exit()
report = lull.open(sys.argv[1])
column = report.kernels.column("dur")
array = report.kernels["dur"]
assert isinstance(array, numpy.ndarray) and array.dtype == numpy.int64 and not array.flags.writeable
assert array.__array_interface__["data"][0] == numpy.frombuffer(column.values, dtype=numpy.int64).__array_interface__["data"][0]
total = int(array.sum())
del column, report
gc.collect()
assert int(array.sum()) == total          # the array keeps the memory
report = lull.open(sys.argv[1])
names = report.kernels["name"]
assert names.dtype == object and names[0] == report.kernels.column("name").to_list()[0]
some = report.sql("SELECT CASE WHEN dur > 10000 THEN dur END AS d, CASE WHEN dur > 10000 THEN name END AS n FROM kernels")
assert isinstance(some["d"], numpy.ma.MaskedArray)
assert some["d"].count() == sum(v is not None for v in some.column("d").to_list()) < len(some)
assert [v for v in some["n"]] == some.column("n").to_list()
assert report.sql("SELECT NULL AS x FROM kernels")["x"][0] is None
assert len(report.sql("SELECT dur FROM kernels WHERE dur < 0")["dur"]) == 0
print(total)
"""
    got = python(code, TRAIN)
    if got.stdout.strip() == "no numpy":
        runner.skip("this Python has no numpy")
    runner.expect("status", got.returncode == 0, got.stderr)
    runner.expect("sum", int(got.stdout) == sum(opened().kernels.column("dur").to_list()), got.stdout)


def pandas_gets_tables():
    code = """
import sys, lull
try:
    import pandas
except ImportError:
    print("no pandas"); sys.exit()
report = lull.open(sys.argv[1])
frame = report.to_pandas()
assert list(frame.columns) == report.kernels.columns and len(frame) == len(report.kernels)
assert frame["dur"].tolist() == report.kernels.column("dur").to_list()
assert frame["name"].astype(str).tolist() == report.kernels.column("name").to_list()
some = report.sql("SELECT CASE WHEN dur > 10000 THEN dur END AS d, dur AS d2 FROM kernels").to_pandas()
assert some["d"].isna().sum() == (some["d2"] <= 10000).sum() and str(some["d"].dtype) == "Int64"
"""
    got = python(code, TRAIN)
    if got.stdout.strip() == "no pandas":
        runner.skip("this Python has no pandas")
    runner.expect("status", got.returncode == 0, got.stderr)


# ---- Arrow, as its specification has it ----


class Schema(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
                   ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]


class Array(ctypes.Structure):
    pass


Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.POINTER(Array)), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]


class Stream(ctypes.Structure):
    _fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Schema))),
                ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))),
                ("get_last_error", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p)]


def release(of):
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(of.release)(ctypes.addressof(of))
    runner.expect("released", not of.release)


def texts_of(array):
    offsets = ctypes.cast(array.buffers[1], ctypes.POINTER(ctypes.c_int64))
    return [ctypes.string_at(array.buffers[2] + offsets[i], offsets[i + 1] - offsets[i]).decode() for i in range(array.length)]


def values_of(schema, array):
    """The values of one column, by nothing but the specification."""
    if schema.format == b"n":
        return [None] * array.length
    ctype = {b"l": ctypes.c_int64, b"g": ctypes.c_double, b"I": ctypes.c_uint32}[schema.format]
    values = list((ctype * array.length).from_address(array.buffers[1]))
    if schema.dictionary:
        runner.expect("a dictionary of texts", schema.dictionary.contents.format == b"U")
        texts = texts_of(array.dictionary.contents)
        values = [texts[v] if texts else None for v in values]
    if array.null_count:
        bits = ctypes.string_at(array.buffers[0], (array.length + 7) // 8)
        values = [v if bits[i >> 3] >> (i & 7) & 1 else None for i, v in enumerate(values)]
        runner.expect("nulls are counted", values.count(None) == array.null_count, array.null_count)
    return values


def pointer(capsule, name, ctype):
    get = ctypes.PyDLL(None).PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctype.from_address(get(capsule, name))


def frames():
    report = opened()
    return (report.kernels, report.steps, report.stats("phases"), report.sql("SELECT dur FROM kernels WHERE dur < 0"),
            report.sql("SELECT CASE WHEN dur % 3 THEN dur END AS d, CASE WHEN dur % 3 THEN name END AS n, NULL AS x, "
                       "dur / 7.0 AS r FROM kernels LIMIT 13"))


def arrow_has_the_same_values():
    for frame in frames():
        stream_capsule = frame.__arrow_c_stream__()
        stream = pointer(stream_capsule, b"arrow_array_stream", Stream)
        schema, array = Schema(), Array()
        at = ctypes.addressof(stream)
        runner.expect("schema", stream.get_schema(at, ctypes.byref(schema)) == 0)
        runner.expect("batch", stream.get_next(at, ctypes.byref(array)) == 0)
        runner.expect("a struct", schema.format == b"+s" and schema.n_children == array.n_children)
        end = Array()
        runner.expect("end", stream.get_next(at, ctypes.byref(end)) == 0 and not end.release)
        release(stream)
        del stream_capsule
        theirs = {}
        for i in range(schema.n_children):
            child = schema.children[i].contents
            theirs[child.name.decode()] = values_of(child, array.children[i].contents)
        runner.expect("columns", theirs == frame.to_dict(), (theirs, frame.to_dict()))
        release(array)
        release(schema)


def an_arrow_column_outlives_the_rest():
    """A consumer may move a child out of its parent and release the parent."""
    report = opened()
    mine = report.kernels.column("dur").to_list()
    schema_capsule, capsule = report.kernels.__arrow_c_array__()
    array = pointer(capsule, b"arrow_array", Array)
    names = [pointer(schema_capsule, b"arrow_schema", Schema).children[i].contents.name for i in range(array.n_children)]
    moved = Array.from_buffer_copy(array.children[names.index(b"dur")].contents)
    array.children[names.index(b"dur")].contents.release = None
    release(array)
    report.close()
    del report, capsule, schema_capsule
    runner.expect("values", list((ctypes.c_int64 * moved.length).from_address(moved.buffers[1])) == mine)
    release(moved)


def capsules_that_nobody_takes_are_freed():
    """The memory of what is exported again and again does not grow."""
    code = """
import sys, resource, lull
frame = lull.open(sys.argv[1]).sql("SELECT a.dur, a.name FROM kernels a, kernels b LIMIT 300000")
def used():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
frame.__arrow_c_stream__(), frame.__arrow_c_array__()
before = used()
for i in range(200):
    frame.__arrow_c_stream__(), frame.__arrow_c_array__()
    lull.open(sys.argv[1]).kernels["dur"]
assert used() < before + (64 << 20), (before, used())
"""
    got = python(code, TRAIN)
    runner.expect("status", got.returncode == 0, got.stderr)


# ---- errors ----


def errors_are_sentences():
    report = opened()
    for call, kind, words in (
        (lambda: lull.open("/nonexistent.lull"), lull.ReadError, "No such file"),
        (lambda: lull.open(__file__), lull.FormatError, "none of the formats"),
        (lambda: lull.open(os.path.dirname(TRAIN)), lull.FormatError, "is a folder"),
        (lambda: report.sql("SELECT durr FROM kernels"), lull.UsageError, "did you mean dur?"),
        (lambda: report.sql("SELECT * FROM kernel_s"), lull.UsageError, "did you mean kernels?"),
        (lambda: report.sql("DROP TABLE kernels"), lull.UsageError, "read-only"),
        (lambda: report.sql("SELECT 1; SELECT 2"), lull.UsageError, "one by one"),
        (lambda: report.sql("SELECT count(*) FROM calls a, calls b, calls c, calls d", timeout=0.05), lull.ReadError,
         "took too long"),
        (lambda: report.table("kernles"), lull.UsageError, "did you mean kernels?"),
        (lambda: report.kernels["durr"], lull.UsageError, "there is no column durr"),
        (lambda: report.kernles, AttributeError, "did you mean kernels?"),
        (lambda: report.stats("phase"), lull.UsageError, "did you mean phases?"),
        (lambda: report.stats("mpi_event_sum"), lull.NotFound, "MPI event data"),
        (lambda: report.why(what_if="nonsense"), lull.UsageError, "nonsense"),
        (lambda: report.diff("/nonexistent.lull"), lull.ReadError, "No such file"),
    ):
        try:
            call()
        except kind as error:
            runner.expect("sentence", words in str(error), error)
        else:
            raise AssertionError(f"no {kind} with {words!r}")
    runner.expect("the report still answers", len(report.kernels) > 0)


def what_a_command_warns_of_is_a_warning():
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cut = os.path.join(folder, "cut.lull")
        with open(TRAIN, "rb") as f, open(cut, "wb") as to:
            data = f.read()
            to.write(data[:len(data) * 2 // 3])
        len(lull.open(cut).kernels)
        said = [str(w.message) for w in caught if w.category is lull.ReportWarning]
        runner.expect("once", len([text for text in said if "has no end" in text]) == 1, said)
        broken = os.path.join(folder, "broken.lull")
        with open(os.path.join(os.path.dirname(TEST), "examples/reports/sync_item.lull"), "rb") as f, open(broken, "wb") as to:
            data = f.read()
            to.write(data[:45000] + b"X" * 16 + data[45016:])
        lull.open(broken).why()
        said = [str(w.message) for w in caught if "the file is damaged: 1 of 33 blocks" in str(w.message)]
        runner.expect("damage", len(said) == 1, said)


# Everything that reads, on a file that may be damaged.
USE = """
import sys, warnings, lull
warnings.simplefilter("ignore")
def use(path):
    try:
        report = lull.open(path)
    except lull.Error:
        return 1
    n = 0
    for call in (lambda: report.why(), lambda: report.info, lambda: report.phases(),
                 lambda: report.stats("cuda_gpu_kern_sum"), lambda: report.sql("SELECT name, count(*) FROM kernels GROUP BY 1"),
                 lambda: report.diff(report), *(lambda t=t: t.to_dict() for t in report.tables.values())):
        try:
            call()
        except lull.Error:
            n += 1
    return n
"""


def damaged_files_are_errors():
    """Bytes that changed, pieces that are missing: no crash, and no end of the process."""
    code = USE + """
import random, os
data = open(sys.argv[1], "rb").read()
rand = random.Random(7)
n_errors = 0
for i in range(60):
    bad = bytearray(data)
    if i % 3 == 0:
        bad = bad[:rand.randrange(len(bad))]
    elif i % 3 == 1:
        for _ in range(1 + i):
            bad[rand.randrange(len(bad))] = rand.randrange(256)
    else:
        at = rand.randrange(len(bad))
        bad[at:at + rand.randrange(1, 4000)] = os.urandom(rand.randrange(1, 200)) if i % 2 else b""
    with open(sys.argv[2], "wb") as f:
        f.write(bad)
    n_errors += use(sys.argv[2]) > 0
print(n_errors)
"""
    with tempfile.TemporaryDirectory() as folder:
        small = min(REPORTS, key=os.path.getsize)
        got = python(code, small, os.path.join(folder, "bad.lull"), seconds=300)
        runner.expect("status", got.returncode == 0, (got.returncode, got.stderr[-2000:]))
        runner.expect("some were refused", int(got.stdout) > 0, got.stdout)


def a_file_that_shrinks_is_no_crash():
    code = USE + """
import os
report = lull.open(sys.argv[1])
os.truncate(sys.argv[1], 5000)
for name in ("kernels", "calls", "ranges", "samples"):
    try:
        report.tables[name].to_dict()
    except lull.Error:
        pass
"""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(TRAIN, os.path.join(folder, "r.lull"))
        got = python(code, copy)
        runner.expect("status", got.returncode == 0, (got.returncode, got.stderr))


def without_memory_there_is_an_exception():
    """Less and less memory: each time an exception or an answer, and the process goes on."""
    code = USE + """
import resource
report = lull.open(sys.argv[1])
report.why()
n_gone = 0
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for more in (64, 16, 4, 1):
    resource.setrlimit(resource.RLIMIT_AS, (size + int(more * (1 << 20)), resource.RLIM_INFINITY))
    for call in ("report.sql('SELECT a.dur, b.dur FROM kernels a, kernels b').columns", "report.kernels._read()",
                 "report.why()", "report.info"):
        try:
            report = lull.open(sys.argv[1])
            eval(call)
        except lull.MemoryGone as error:
            assert "memory" in str(error), error
            n_gone += 1
        except (lull.Error, MemoryError):
            pass
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert len(lull.open(sys.argv[1]).kernels) > 0
print(n_gone)
"""
    got = python(code, TRAIN, seconds=60, env={"MALLOC_ARENA_MAX": "1"})
    runner.expect("status", got.returncode == 0, (got.returncode, got.stderr[-2000:]))
    runner.expect("memory ran out", int(got.stdout) > 0, got.stdout)


# ---- in programs ----


def threads_wait_for_each_other():
    report, wrong = opened(), []
    n = report.sql("SELECT count(*) AS n FROM kernels")["n"][0]

    def work(seed):
        rand = random.Random(seed)
        for _ in range(8):
            got = rand.choice((lambda: report.sql("SELECT count(*) AS n FROM kernels")["n"][0],
                               lambda: len(list(opened().kernels["dur"])), lambda: len(report.table("kernels")["name"])))()
            if got != n:
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runner.expect("answers", not wrong, wrong)


# The signal comes after the handler is there, and before the query begins.
EARLY = """
rows = report._rows
def late(*arguments):
    report._rows = rows
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)
    return rows(*arguments)
report._rows = late
threading.Timer = lambda *arguments: threading.Thread()
"""


def ctrl_c_ends_a_query():
    code = """
import sys, os, signal, threading, time, lull
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs that ignore it
report = lull.open(sys.argv[1])
# HERE
try:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    report.sql("SELECT count(*) FROM calls a, calls b, calls c, calls d, calls e", timeout=0)
except KeyboardInterrupt:
    print("interrupted", len(report.kernels) > 0)
"""
    for when in ("", EARLY):
        got = python(code.replace("# HERE", when), TRAIN)
        runner.expect("interrupted", got.stdout.strip() == "interrupted True", (when, got.stdout, got.stderr))


def c_and_cpp_programs_use_the_library():
    """The header alone, as C99 and as C++, with all warnings."""
    code = r"""
#include <lull_read.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct lull_read_error error;
    struct lull_read *report;
    struct lull_read_rows *rows;
    struct lull_read_column dur;
    const char *names[1];
    int64_t sum = 0;
    uint64_t i;

    names[0] = "dur";
    if (argc < 2 || lull_read_open(argv[1], &report, &error))
        return puts(error.text), 1;
    if (lull_read_table(report, "kernels", names, 1, &rows, &error))
        return puts(error.text), 1;
    lull_read_close(report);
    lull_read_column(rows, 0, &dur);
    for (i = 0; i < dur.n_rows; i++)
        sum += ((const int64_t *)dur.values)[i];
    lull_read_rows_free(rows);
    printf("%lld\n", (long long)sum);
    return 0;
}
"""
    expected = sum(opened().kernels.column("dur").values)
    with tempfile.TemporaryDirectory() as folder:
        for compiler, flags, name in (("gcc", "-std=c99", "use.c"), ("g++", "-std=c++11", "use.cc")):
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                f.write(code)
            runner.run([compiler, flags, "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", os.path.join(os.path.dirname(TEST), "include"),
                        "-o", "use", name, f"-L{BUILD}", "-llull-read", f"-Wl,-rpath,{BUILD}"], cwd=folder, check=True)
            got = runner.run([os.path.join(folder, "use"), TRAIN], check=True).stdout
            runner.expect(compiler, int(got) == expected, got)
            got = runner.run([os.path.join(folder, "use"), __file__])
            runner.expect("an error is a sentence", got.returncode == 1 and "none of the formats" in got.stdout, got)


def the_library_exports_its_interface_alone():
    got = runner.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "liblull-read.so")], check=True).stdout
    names = {line.split()[-1] for line in got.splitlines()}
    with open(os.path.join(os.path.dirname(TEST), "include/lull_read.h"), encoding="utf-8") as f:
        declared = set(re.findall(r"\b(lull_read_\w+)\(", re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)))
    runner.expect("symbols", names == declared, names ^ declared)


def the_examples_of_the_package_hold():
    code = "import doctest, lull._report; r = doctest.testmod(lull._report); print(r); assert r.attempted > 5 and not r.failed"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(TRAIN, os.path.join(folder, "train.lull"))
        got = python(code, cwd=folder)
        runner.expect("doctests", got.returncode == 0, got.stdout + got.stderr)


def a_program_that_only_marks_loads_little():
    got = python("import sys, lull; lull.step(); print('ctypes' in sys.modules, 'lull._report' in sys.modules)")
    runner.expect("modules", got.stdout.split() == ["False", "False"], got.stdout + got.stderr)


def ranges_are_decorators():
    code = """
import lull
@lull.range
def alone(x):
    return x + 1
@lull.range("named")
def named(x):
    return x + 2
with lull.range("block"):
    assert alone(1) == 2 and named(1) == 3 and alone.__name__ == "alone"
"""
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "marks.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(code)
        out = os.path.join(folder, "r.lull")
        command("profile", "-o", out, "-s", "none", PYTHON, script)
        names = sorted(set(opened(out).ranges["name"]))
        runner.expect("ranges", [n for n in names if n in ("alone", "named", "block")] == ["alone", "block", "named"], names)


def a_folder_of_this_name_is_not_the_package():
    """Such as a checkout of lull beside the program; a package of the program is."""
    code = "import lull\nlull.step()\nwith lull.range('mine'): pass\nlull.step()"
    with tempfile.TemporaryDirectory() as folder:
        script, out = os.path.join(folder, "marks.py"), os.path.join(folder, "r.lull")
        with open(script, "w", encoding="utf-8") as f:
            f.write(code)
        os.makedirs(os.path.join(folder, "lull/python"))
        command("profile", "-o", out, "-s", "none", PYTHON, script)
        runner.expect("the range", "mine" in set(opened(out).ranges["name"]))
        with open(os.path.join(folder, "lull/__init__.py"), "w", encoding="utf-8") as f:
            f.write("def step(): pass\nclass range:\n    def __init__(self, name): print('their own')\n"
                    "    def __enter__(self): pass\n    def __exit__(self, *exc): pass\n")
        said = command("profile", "-f", "-o", out, "-s", "none", PYTHON, script)
        runner.expect("a package of the program", "their own" in said, said)


def a_program_records_a_part_of_itself():
    code = """
import sys, lull
with lull.profile("first.lull") as part:
    with lull.record("inside"):
        sum(range(1000))
with lull.record("outside"):
    pass
print(part.path)
assert set(part.open().ranges["name"]) == {"inside"}, set(part.open().ranges["name"])
with lull.profile():
    try:
        with lull.profile("second.lull"):
            pass
    except lull.RecordError as error:
        print(error)
"""
    with tempfile.TemporaryDirectory() as folder:
        words = [os.path.join(BUILD, "lull"), "launch", "-s", "none", "-t", "nvtx", PYTHON, "-c", code]
        got = runner.run(words, cwd=folder, env={**os.environ, "PYTHONPATH": PACKAGE})
        runner.expect("status", got.returncode == 0, got.stdout + got.stderr)
        lines = got.stdout.splitlines()
        runner.expect("the report of the part", lines[0] == os.path.join(os.path.realpath(folder), "first.lull"), lines)
        runner.expect("what is on cannot be started", "recording" in lines[1], lines)


def a_program_that_lull_did_not_start_records_itself():
    """It attaches to itself, twice; marks of the package reach the recordings, and those alone."""
    if not runner.can(os.path.join(BUILD, "lull"), "attach"):
        runner.skip("programs that run must not be traced here (lull doctor says why)")
    code = """
import os, threading, time, lull
with lull.profile("first.lull") as part:
    lull.step()
    with lull.record("inside"):
        sum(range(1000))
    lull.step()
with lull.record("outside"):
    pass
print(part.path)
report = part.open()
assert set(report.ranges["name"]) == {"inside"} and list(report.steps["number"]) == [0, 1]
assert [p["pid"] for p in report.info["processes"]] == [os.getpid()], report.info["processes"]

@lull.profile("second.lull")
def again():
    with lull.range("again"):
        try:
            with lull.profile("third.lull"):
                pass
        except lull.RecordError as error:
            print(error)
again()
assert list(lull.open("second.lull").ranges["name"]) == ["again"]
try:
    again()
except lull.RecordError as error:
    print(error)
# The last thread of the agent says that it leaves a moment before it ends.
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(0.01)
assert lull._agent is None
print([t.name for t in threading.enumerate()])
"""
    with tempfile.TemporaryDirectory() as folder:
        got = python("import warnings\nwarnings.simplefilter('ignore')\n" + code, cwd=folder)
        runner.expect("status", got.returncode == 0, got.stdout + got.stderr)
        path, twice, exists, threads = got.stdout.splitlines()
        runner.expect("the report of the part", path == os.path.join(os.path.realpath(folder), "first.lull"), path)
        runner.expect("what is recorded", twice.startswith("lull.profile: process ") and "recorded by lull already" in twice, twice)
        runner.expect("what is there already", "second.lull exists already" in exists, exists)
        runner.expect("no thread stays", threads == "['MainThread']", threads)


def a_program_that_ignores_ctrl_c_records_itself():
    """As scripts start programs in the background; the recorder, its child, ignores it as well."""
    if not runner.can(os.path.join(BUILD, "lull"), "attach"):
        runner.skip("programs that run must not be traced here (lull doctor says why)")
    code = """
import signal, warnings
signal.signal(signal.SIGINT, signal.SIG_IGN)
warnings.simplefilter("ignore")
import lull
with lull.profile("first.lull") as part:
    lull.step()
print(len(part.open().steps))
"""
    with tempfile.TemporaryDirectory() as folder:
        got = python(code, cwd=folder)
        runner.expect("a step", got.returncode == 0 and got.stdout == "1\n", got.stdout + got.stderr)


def what_cannot_be_recorded_is_an_error():
    """With the sentence of the command, whichever that is."""
    code = "import lull\ntry:\n    with lull.profile('x.lull'): print('inside')\nexcept lull.Error as e: print(type(e).__name__, e)"
    with tempfile.TemporaryDirectory() as folder:
        refuses = os.path.join(folder, "refuses")
        with open(refuses, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho 'lull attach: not in this house' >&2\nexit 1\n")
        os.chmod(refuses, 0o755)
        got = python(code, cwd=folder, env={"LULL_COMMAND": refuses})
        runner.expect("refused", got.stdout.strip() == "RecordError lull.profile: not in this house", got.stdout + got.stderr)
        got = python(code, cwd=folder, env={"LULL_COMMAND": os.path.join(folder, "absent")})
        runner.expect("no command", got.stdout.startswith("RecordError ") and "absent" in got.stdout, got.stdout + got.stderr)


TESTS = (
    tables_have_the_rows_of_query,
    sql_has_the_result_of_query,
    stats_are_those_of_the_command,
    requests_are_those_of_the_command,
    why_info_and_diff_are_those_of_the_commands,
    columns_are_read_one_by_one,
    numpy_shares_the_memory,
    pandas_gets_tables,
    arrow_has_the_same_values,
    an_arrow_column_outlives_the_rest,
    capsules_that_nobody_takes_are_freed,
    errors_are_sentences,
    what_a_command_warns_of_is_a_warning,
    damaged_files_are_errors,
    a_file_that_shrinks_is_no_crash,
    without_memory_there_is_an_exception,
    threads_wait_for_each_other,
    ctrl_c_ends_a_query,
    c_and_cpp_programs_use_the_library,
    the_library_exports_its_interface_alone,
    the_examples_of_the_package_hold,
    a_program_that_only_marks_loads_little,
    ranges_are_decorators,
    a_folder_of_this_name_is_not_the_package,
    a_program_records_a_part_of_itself,
    a_program_that_lull_did_not_start_records_itself,
    a_program_that_ignores_ctrl_c_records_itself,
    what_cannot_be_recorded_is_an_error,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
