#!/usr/bin/env python3
"""SQL over reports, the export to SQLite, and the import of such files.

What lull says is held against Python's sqlite3, which reads the export on its own.
Usage: test_sqlite.py BUILD [NAME...]
"""
import contextlib
import csv
import gzip
import io
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = tempfile.TemporaryDirectory(prefix="lull-test-")
GOLDEN = os.path.join(ROOT, "test", "golden", "report")

# What the tables of nsys hold; other reports need what only tables LULL_* have.
NSYS_REPORTS = [
    "nvtx_sum", "nvtx_pushpop_sum", "nvtx_startend_sum", "nvtx_pushpop_trace", "osrt_sum", "cuda_api_sum",
    "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_sum",
    "cuda_api_gpu_sum", "cuda_api_trace", "cuda_gpu_trace", "cuda_kern_exec_sum", "cuda_kern_exec_trace",
    "nvtx_kern_sum", "nvtx_gpu_proj_sum", "nvtx_gpu_proj_trace", "gpu_idle", "overlap",
]


def all_reports():
    with open(os.path.join(ROOT, "src", "report", "reports.def")) as f:
        return [line[len("REPORT("):line.index(")")] for line in f if line.startswith("REPORT(")]


def run(*args, **kwargs):
    return runner.run([LULL, *args], **kwargs)


def of_nsys(status, text):
    """A report without columns about steps, which nsys does not know and which depend on the steps around."""
    rows = list(csv.reader(io.StringIO(text)))
    kept = [i for i, name in enumerate(rows[0]) if "Step" not in name] if rows else []
    return status, [[row[i] for i in kept] if len(row) == len(rows[0]) else row for row in rows]


class Case(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="lull-test-"))
        self.addCleanup(stack.close)

    def path(self, name):
        return os.path.join(self.dir, name)

    def lull(self, *args, status=0, **kwargs):
        done = run(*args, **kwargs)
        self.assertEqual(done.returncode, status, done.stderr or done.stdout)
        return done.stdout if status == 0 else done.stderr

    def golden(self, case):
        """The report of a golden test."""
        name = self.path(case + ".lull")
        self.lull("text", os.path.join(GOLDEN, case, "trace.txt"), name)
        return name

    def recording(self):
        """A program on the simulated device, recorded once."""
        name = os.path.join(SHARED.name, "sim")
        if not os.path.exists(name + ".lull"):
            env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"))
            self.lull("profile", "-q", "-o", name, os.path.join(BUILD, "examples", "train_cuda"), env=env)
        return name + ".lull"

    def export(self, report, name="out.sqlite"):
        self.lull("export", "-t", "sqlite", "-f", "-o", self.path(name), report)
        return self.path(name)

    def back(self, database):
        self.lull("import", "-q", "-f", "-o", self.path("back.lull"), database)
        return self.path("back.lull")

    def query(self, report, sql, **kwargs):
        """Rows as Python would read them."""
        rows = []
        for line in self.lull("query", "-f", "tsv:nohdr", report, sql, **kwargs).splitlines():
            rows.append(tuple(line.split("\t")))
        return rows

    def stats(self, report, name):
        done = run("stats", "-q", "-f", "csv", "-r", name, report)
        return done.returncode, done.stdout


def plain(rows):
    """Rows of sqlite3 as `lull query` prints them."""
    def cell(v):
        return "" if v is None else "%.15g" % v if isinstance(v, float) else str(v)
    return [tuple(cell(v) for v in row) for row in rows]


class Export(Case):
    def test_golden_reports_come_back_as_they_were(self):
        n = 0
        for case in sorted(os.listdir(GOLDEN)):
            report = case.split("-")[0]
            if report not in all_reports() or case.endswith("-empty"):
                continue
            original = self.golden(case)
            self.assertEqual(self.stats(original, report), self.stats(self.export(original), report), case)
            n += 1
        self.assertGreater(n, 20)

    def test_a_recording_gives_the_same_bytes_in_every_report(self):
        original = self.recording()
        expected = {report: self.stats(original, report) for report in all_reports()}
        exported = self.export(original)
        back = self.back(exported)
        self.assertEqual(expected, {report: self.stats(back, report) for report in all_reports()})
        # A report that was imported may be exported again, and is the same as the file is.
        again = self.export(back, "again.sqlite")
        for name in (exported, again):
            for report in ("cuda_gpu_trace", "nvtx_sum", "osrt_sum", "threads"):
                self.assertEqual(expected[report], self.stats(name, report), (name, report))
        back = self.back(again)
        self.assertEqual(expected, {report: self.stats(back, report) for report in all_reports()})

    def test_a_window_holds_what_the_reports_see_of_it(self):
        original = self.recording()
        name = self.path("window.sqlite")
        window = "--filter-time=20ms/80ms"
        self.assertEqual(run("export", "-t", "sqlite", "-o", name, window, original).returncode, 0)
        n_less = 0
        for report in ["cuda_api_sum", "cuda_gpu_kern_sum", "cuda_gpu_trace", "cuda_api_trace", "nvtx_sum", "osrt_sum"]:
            expected = run("stats", "-q", "-f", "csv", "-r", report, window, original)
            self.assertEqual(of_nsys(*self.stats(name, report)), of_nsys(expected.returncode, expected.stdout), report)
            n_less += self.stats(original, report) != self.stats(name, report)
        self.assertGreater(n_less, 3)

    def test_the_tables_of_nsys_alone_carry_what_nsys_knows(self):
        for original in [self.recording(), self.golden("cuda_gpu_trace"), self.golden("nvtx_gpu_proj_sum")]:
            name = self.export(original)
            with contextlib.closing(sqlite3.connect(name)) as db:
                tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                for table in tables:
                    if table.startswith("LULL_"):
                        db.execute(f"DROP TABLE {table}")
                        continue
                    for column in [r[1] for r in db.execute(f"PRAGMA table_info({table})")]:
                        if column.startswith("lull"):
                            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
                db.commit()
            back = self.back(name)
            for report in NSYS_REPORTS:
                self.assertEqual(of_nsys(*self.stats(original, report)), of_nsys(*self.stats(back, report)), report)

    def test_others_read_it(self):
        name = self.export(self.golden("cuda_gpu_trace"))
        with contextlib.closing(sqlite3.connect(name)) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            meta = dict(db.execute("SELECT name, value FROM META_DATA_EXPORT"))
            self.assertEqual(meta["EXPORT_SCHEMA_VERSION"].split(".")[0], meta["EXPORT_SCHEMA_VERSION_MAJOR"])
            self.assertEqual(db.execute("""
                SELECT value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL
                JOIN StringIds ON id = shortName GROUP BY 1 ORDER BY 3 DESC""").fetchall(),
                [("gemm", 2, 40000), ("relu", 1, 10000)])
            self.assertEqual(db.execute("""
                SELECT label, bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY
                JOIN ENUM_CUDA_MEMCPY_OPER ON copyKind = id""").fetchall(), [("Host-to-Device", 1000000)])
            self.assertEqual(db.execute("""
                SELECT globalTid / 0x1000000 % 0x1000000, globalTid % 0x1000000 FROM NVTX_EVENTS
                WHERE eventType = 59 ORDER BY 1, start LIMIT 1""").fetchall(), [(10, 10)])
            self.assertEqual(db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index'").fetchall(), [(0,)])

    def test_a_script_with_the_shell_reads_it(self):
        name = self.export(self.golden("cuda_gpu_trace"))
        if not shutil.which("sqlite3"):
            self.skipTest("no sqlite3 shell here")
        done = runner.run(["sqlite3", name, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"])
        self.assertEqual(done.stdout, "6\n")

    def test_what_is_there_is_kept(self):
        report = self.golden("cuda_gpu_trace")
        with open(self.path("mine.sqlite"), "w") as f:
            f.write("precious")
        message = self.lull("export", "-t", "sqlite", "-o", self.path("mine.sqlite"), report, status=1)
        self.assertIn("--force-overwrite", message)
        with open(self.path("mine.sqlite")) as f:
            self.assertEqual(f.read(), "precious")
        self.assertIn("cannot be streamed",
                      self.lull("export", "-t", "sqlite", "-o", "-", report, status=2))
        message = self.lull("export", "-t", "sqlite", "-o", self.path("no/folder.sqlite"), report, status=1)
        self.assertIn(f"there is no folder {self.path('no')}", message)
        self.assertEqual(sorted(os.listdir(self.dir)), ["cuda_gpu_trace.lull", "mine.sqlite"])


class Query(Case):
    def test_virtual_tables_say_what_the_export_says(self):
        report = self.recording()
        with contextlib.closing(sqlite3.connect(self.export(report))) as db:
            tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                if table.startswith(("LULL_", "META_DATA_CAPTURE")):
                    continue
                columns = ["quote(%s)" % r[1] for r in db.execute(f"PRAGMA table_info({table})")]
                sql = "SELECT count(*), sum(length(%s)) FROM %s" % (" || ".join(columns), table)
                self.assertEqual(self.query(report, sql), plain(db.execute(sql)), table)

    def check_bounds(self, table, has_end):
        """Conditions on times give the rows that a scan gives."""
        report = self.recording()
        dice = random.Random(table)
        with contextlib.closing(sqlite3.connect(self.export(report))) as db:
            if not db.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]:
                self.skipTest(f"nothing for {table} can be recorded here (lull doctor says why)")
            last = db.execute("SELECT max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
            sqls = []
            for _ in range(12):
                terms = []
                for _ in range(dice.randrange(1, 4)):
                    column = dice.choice(["start", "end"] if has_end else ["start"])
                    value = dice.choice([dice.randrange(last), dice.random() * last, -5, "'x'", "NULL", 0])
                    terms.append("%s %s %s" % (column, dice.choice(["<", "<=", ">", ">=", "="]), value))
                sqls.append("SELECT count(*), sum(start) FROM %s WHERE %s" % (table, " AND ".join(terms)))
            n = db.execute("SELECT count(*) FROM %s" % table).fetchone()[0]
            start = db.execute("SELECT start FROM %s LIMIT 1 OFFSET %d" % (table, n // 2)).fetchone()[0]
            sqls.append("SELECT count(*), sum(start) FROM %s WHERE start = %d" % (table, start))
            answers = self.lull("query", "-f", "tsv:nohdr", report, *sqls).splitlines()
            self.assertEqual(len(answers), len(sqls))
            for sql, answer in zip(sqls, answers):
                self.assertEqual([tuple(answer.split("\t"))], plain(db.execute(sql)), sql)

    def test_bounds_of_kernels(self):
        self.check_bounds("CUPTI_ACTIVITY_KIND_KERNEL", True)

    def test_bounds_of_ranges(self):
        self.check_bounds("NVTX_EVENTS", True)

    def test_bounds_of_context_switches(self):
        self.check_bounds("SCHED_EVENTS", False)

    def test_bounds_of_samples(self):
        self.check_bounds("COMPOSITE_EVENTS", False)

    def test_joins_are_those_of_sqlite(self):
        report = self.recording()
        sqls = [
            """SELECT count(*), sum(k.start - r.end) FROM CUPTI_ACTIVITY_KIND_KERNEL k
               JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON k.correlationId = r.correlationId""",
            """SELECT value, count(*), min(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k
               JOIN StringIds s ON s.id = k.demangledName GROUP BY 1 ORDER BY 1""",
            """SELECT n.text, count(*) FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
               ON r.start >= n.start AND r.end <= n.end AND r.globalTid = n.globalTid GROUP BY 1 ORDER BY 1""",
            """SELECT count(*), sum(stackDepth) FROM COMPOSITE_EVENTS e JOIN SAMPLING_CALLCHAINS c ON c.id = e.id""",
            "SELECT count(*) FROM OSRT_API o LEFT JOIN OSRT_CALLCHAINS c ON c.id = o.callchainId",
        ]
        with contextlib.closing(sqlite3.connect(self.export(report))) as db:
            for sql in sqls:
                self.assertEqual(self.query(report, sql), plain(db.execute(sql)), sql)

    def test_wrong_sql_is_told_where(self):
        report = self.golden("cuda_gpu_trace")
        for sql, words in [
            ("SELECT * FORM kernels", ["FORM", "column 10"]),
            ("SELECT *\nFROM kernels\nWHERE )", ["line 3, column 7"]),
            ("SELECT * FROM kernals", ["did you mean kernels"]),
            ("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNELS", ["did you mean CUPTI_ACTIVITY_KIND_KERNEL"]),
            ("SELECT nme FROM kernels", ["nme", "did you mean name"]),
            ("SELECT 1; SELECT", ["incomplete input"]),
        ]:
            message = self.lull("query", report, sql, status=2)
            for word in words:
                self.assertIn(word, message)
        message = self.lull("query", report, "SELECT * FROM OSRT_API", status=1)
        self.assertIn("has no rows for OSRT_API", message)

    def test_nothing_can_be_written_or_opened(self):
        report = self.golden("cuda_gpu_trace")
        aim = self.path("new.db")
        for sql in [f"ATTACH '{aim}' AS x", f"VACUUM INTO '{aim}'", "CREATE TABLE t (x)", "DROP TABLE kernels",
                    "DELETE FROM kernels", "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (99, 'x', 'y')",
                    "SELECT load_extension('x')", "PRAGMA writable_schema = 1", "PRAGMA temp_store_directory = '/'",
                    "CREATE TEMP TABLE t (x)", "SELECT readfile('/etc/passwd')", "BEGIN", "ANALYZE"]:
            self.lull("query", report, sql, status=2)
        self.assertEqual(os.listdir(self.dir), ["cuda_gpu_trace.lull"])
        self.assertEqual(len(self.query(report, "PRAGMA table_info(kernels)")), 20)

    ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT %s FROM c"

    def test_limits_end_a_query_with_a_sentence(self):
        report = self.golden("cuda_gpu_trace")
        message = self.lull("query", "--timeout", "0.2", report, self.ENDLESS % "count(*)", status=1)
        self.assertIn("--timeout", message)
        done = run("query", "-f", "csv:nohdr", "--max-rows", "3", report, self.ENDLESS % "x")
        self.assertEqual((done.returncode, done.stdout), (1, "1\n2\n3\n"))
        self.assertIn("stopped after 3 rows", done.stderr)
        # A result that is exactly as long is whole.
        self.assertEqual(len(self.query(report, "SELECT * FROM kernels LIMIT 3")), 3)
        self.lull("query", "--max-rows", "3", report, "SELECT * FROM kernels LIMIT 3")

    def test_ctrl_c_ends_the_statement(self):
        report = self.golden("cuda_gpu_trace")
        p = runner.start([LULL, "query", report, "SELECT 1", self.ENDLESS % "count(*)"], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)

        def ticks():
            with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
                return int(f.read().rsplit(")", 1)[1].split()[11])

        # The first answer is flushed at the end alone: wait until the second runs, by its CPU time.
        runner.until(lambda: ticks() > 10, "the second statement runs")
        p.send_signal(signal.SIGINT)
        _, message = runner.finish(p)
        self.assertEqual(p.returncode, 1)
        self.assertIn("interrupted", message)

    def test_a_script_on_standard_input(self):
        report = self.golden("cuda_gpu_trace")
        script = ".tables kernel%\n.schema idle\nSELECT count(*)\n  AS n\nFROM kernels;\nSELECT 'no semicolon' AS x\n"
        answer = self.lull("query", "-f", "csv", report, input=script)
        self.assertIn("one kernel, with its name and shape", answer)
        self.assertIn("CREATE TABLE idle", answer)
        self.assertIn("n\n3\n", answer)
        self.assertTrue(answer.endswith("x\nno semicolon\n"), answer)
        message = self.lull("query", report, input="SELECT oops;\nSELECT 1;\n.nonsense\n", status=2)
        self.assertIn("1 statement failed", message)
        self.assertIn(".nonsense", message)


class Import(Case):
    def refuse(self, name, data, *words):
        with open(self.path(name), "wb") as f:
            f.write(data)
        done = run("import", "-q", "-o", self.path("x.lull"), self.path(name))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.path("x.lull")))

    def bytes_of_export(self):
        with open(self.export(self.golden("cuda_gpu_trace")), "rb") as f:
            return f.read()

    def test_bad_files_get_one_sentence(self):
        data = self.bytes_of_export()
        self.refuse("cut.sqlite", data[:3000], "damaged or cut off")
        self.refuse("encrypted.sqlite", random.Random(1).randbytes(8192))
        self.refuse("encrypted2.sqlite", data[:16] + random.Random(1).randbytes(8192), "SQLite")
        with contextlib.closing(sqlite3.connect(self.path("other.db"))) as db:
            db.execute("CREATE TABLE t (x)")
        with open(self.path("other.db"), "rb") as f:
            self.refuse("other.sqlite", f.read(), "not an export of nsys")

    def test_a_locked_file_says_so(self):
        name = self.export(self.golden("cuda_gpu_trace"))
        with contextlib.closing(sqlite3.connect(name)) as db:
            db.execute("BEGIN EXCLUSIVE")
            message = self.lull("import", "-q", "-o", self.path("x.lull"), name, status=1)
        self.assertIn("locked", message)

    def test_damage_in_the_middle_gives_the_rest(self):
        name = self.export(self.recording())
        with contextlib.closing(sqlite3.connect(name)) as db:
            page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_MEMCPY'").fetchone()[0]
            kernels = db.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
        with open(name, "r+b") as f:
            f.seek((page - 1) * 4096)
            f.write(b"\xff" * 4096)
        back = self.back(name)
        self.assertEqual(self.query(back, "SELECT count(*) FROM kernels"), [(str(kernels),)])
        self.assertIn("import_cut", self.stats(back, "losses")[1])

    def test_packed_files_are_read(self):
        with gzip.open(self.path("p.sqlite.gz"), "wb") as f:
            f.write(self.bytes_of_export())
        back = self.back(self.path("p.sqlite.gz"))
        self.assertEqual(self.query(back, "SELECT count(*) FROM kernels"), [("3",)])
        self.assertEqual(self.query(self.path("p.sqlite.gz"), "SELECT count(*) FROM kernels"), [("3",)])

    def foreign(self, statements):
        with contextlib.closing(sqlite3.connect(self.path("foreign.sqlite"))) as db:
            db.executescript(statements)
        return self.back(self.path("foreign.sqlite"))

    TID = (1 << 48) + (10 << 24) + 11

    def test_old_and_new_schemas_are_read_by_name(self):
        # Columns of other versions: missing ones, others in between, a table of tomorrow.
        back = self.foreign(f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES (1, 'void gemm<float>(float*)'), (2, 'cudaLaunchKernel_v7000'), (3, 'named');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (end INT, tomorrow TEXT, start INT, deviceId INT, streamId INT,
                contextId INT, correlationId INT, demangledName INT, globalPid INT, gridX INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 'x', 1000, 1, 7, 1, 5, 1, {self.TID - 11}, 80);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 900, {self.TID}, 5, 2);
            CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT, contextId INT,
                streamId INT, correlationId INT, globalPid INT, syncType INT, eventId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (900, 2000, 0, 1, 7, 6, {self.TID - 11}, 3, 4294967295);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, domainId INT,
                globalTid INT, endGlobalTid INT, category INT, int64Value INT);
            INSERT INTO NVTX_EVENTS VALUES
                (0, NULL, 75, 'mine', NULL, 4, {self.TID}, NULL, NULL, NULL),
                (0, NULL, 33, 'io', NULL, 4, {self.TID}, NULL, 9, NULL),
                (200, 300, 59, 'inner', NULL, 0, {self.TID}, NULL, NULL, -3),
                (100, 400, 59, NULL, 3, 0, {self.TID}, NULL, NULL, NULL),
                (350, 800, 60, 'across', NULL, 4, {self.TID}, {self.TID + 1}, 9, NULL),
                (360, NULL, 59, 'open', NULL, 0, {self.TID}, NULL, NULL, NULL),
                (370, NULL, 34, 'mark', NULL, 0, {self.TID}, NULL, NULL, NULL),
                (380, NULL, 99, 'tomorrow', NULL, 0, {self.TID}, NULL, NULL, NULL);
            CREATE TABLE ANALYSIS_DETAILS (duration INT);
            INSERT INTO ANALYSIS_DETAILS VALUES (5000);
            CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp INT, eventId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (1, 2), (3, 4);
            """)
        self.assertEqual(self.query(back, """SELECT start, dur, name, device, stream, pid, grid_x, correlation
                                             FROM kernels"""),
                         [("1000", "1000", "void gemm<float>(float*)", "1", "7", "10", "80", "5")])
        self.assertEqual(self.query(back, "SELECT start, dur, name, pid, tid FROM calls"),
                         [("500", "400", "cudaLaunchKernel_v7000", "10", "11")])
        # The wait is on the stream of the kernel, although it names device 0.
        self.assertEqual(self.query(back, "SELECT s.lane = k.lane, kind, event_id FROM cuda_sync s, kernel k"),
                         [("1", "3", "0")])
        self.assertEqual(self.query(back, """SELECT start, dur, name, domain, category, r.depth, flags, payload_type
                                             FROM ranges r JOIN range g ON g.rowid = r.rowid ORDER BY start"""),
                         [("100", "300", "named", "", "", "0", "0", "0"),
                          ("200", "100", "inner", "", "", "1", "0", "2"),
                          ("350", "450", "across", "mine", "io", "0", "12", "0"),
                          ("360", "4640", "open", "", "", "1", "1", "0")])
        self.assertEqual(self.query(back, "SELECT start, name FROM marks"), [("370", "mark")])
        self.assertEqual(self.query(back, "SELECT count, detail FROM issue ORDER BY 2"),
                         [("2", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"), ("1", "NVTX_EVENTS of other types")])

    def test_ranges_of_emit_nvtx_have_the_name_of_their_operator(self):
        # PyTorch writes numbers of the call into the name: the text inline, or in StringIds.
        back = self.foreign(f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES (7, 'aten::mm, op_id = 13, sizes = [[2, 3], [3, 4]]');
            CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT,
                int64Value INT);
            INSERT INTO NVTX_EVENTS VALUES
                (100, 200, 59, 'aten::mm, seq = 4, op_id = 11', NULL, {self.TID}, NULL),
                (300, 400, 59, 'aten::mm, seq = 5, op_id = 12', NULL, {self.TID}, NULL),
                (500, 600, 59, NULL, 7, {self.TID}, NULL),
                (700, 800, 59, 'aten::mm, seq = 6, op_id = 14', NULL, {self.TID}, 9);
            """)
        self.assertEqual(self.query(back, """SELECT r.name, payload_type, g.data FROM ranges r
                                             JOIN range g ON g.rowid = r.rowid ORDER BY start"""),
                         [("aten::mm", "10", '{"seq":4,"op_id":11}'),
                          ("aten::mm", "10", '{"seq":5,"op_id":12}'),
                          ("aten::mm", "10", '{"op_id":13,"sizes":"[[2, 3], [3, 4]]"}'),
                          ("aten::mm", "2", "")])
        self.assertEqual(self.query(back, "SELECT count(*) FROM label"), [("1",)])

    def test_texts_in_utf16_are_read(self):
        # SQLite turns them into UTF-8 when it is asked how long they are.
        back = self.foreign(f"""
            PRAGMA encoding = 'UTF-16';
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, lullSchemaId INT,
                lullPayload);
            INSERT INTO NVTX_EVENTS VALUES (100, 400, 59, 'outer \u00e4', {self.TID}, 7, '{"payload " * 500}');
            """)
        self.assertEqual(self.query(back, "SELECT r.name, g.data FROM ranges r JOIN range g ON g.rowid = r.rowid"),
                         [("outer \u00e4", "payload " * 500)])

    def test_mpi_and_unified_memory(self):
        back = self.foreign(f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES (1, 'MPI_Send'), (2, 'MPI_Allreduce'), (3, 'MPI_Wait'), (4, 'MPI_Init');
            CREATE TABLE MPI_RANKS (globalTid INT, rank INT);
            INSERT INTO MPI_RANKS VALUES ({self.TID}, 3);
            CREATE TABLE MPI_P2P_EVENTS (start INT, end INT, globalTid INT, textId INT, commHandle INT, tag INT,
                remoteRank INT, size INT, requestHandle INT);
            INSERT INTO MPI_P2P_EVENTS VALUES (100, 150, {self.TID}, 1, 7, 42, 1, 4096, NULL);
            CREATE TABLE MPI_COLLECTIVES_EVENTS (start INT, end INT, globalTid INT, textId INT, commHandle INT,
                rootRank INT, size INT, recvSize INT);
            INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (200, 260, {self.TID}, 2, 7, NULL, 64, 128);
            CREATE TABLE MPI_START_WAIT_EVENTS (start INT, end INT, globalTid INT, textId INT);
            INSERT INTO MPI_START_WAIT_EVENTS VALUES (300, 310, {self.TID}, 3);
            CREATE TABLE MPI_OTHER_EVENTS (start INT, end INT, globalTid INT, textId INT);
            INSERT INTO MPI_OTHER_EVENTS VALUES (10, 20, {self.TID}, 4);
            CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INT, globalPid INT, address INT, originalFaultPc INT);
            INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES (400, {self.TID}, 65536, 12);
            CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INT, end INT, globalPid INT, deviceId INT, address INT,
                numberOfPageFaults INT, faultAccessType INT);
            INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (500, 520, {self.TID}, 0, 65536, 9, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT, streamId INT,
                globalPid INT, bytes INT, copyKind INT, migrationCause INT, virtualAddress INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (600, 700, 0, 1, 7, {self.TID}, 2000000, 11, 2, 65536),
                (800, 900, 0, 1, 7, {self.TID}, 1000000, 1, NULL, NULL);
            """)
        code, rows = self.stats(back, "mpi_event_trace")
        self.assertEqual(code, 0, rows)
        self.assertEqual([",".join(r.split(",")[2:4] + r.split(",")[6:]) for r in rows.splitlines()[1:]],
                         ["10,MPI_Init,,3,,,,,", "50,MPI_Send,42,3,1,,0.004,,", "60,MPI_Allreduce,,3,,,,0.000,0.000",
                          "10,MPI_Wait,,3,,,,,"])
        code, rows = self.stats(back, "um_sum")
        self.assertEqual((code, rows.splitlines()[1:]), (0, ["0x10000,2.000,0.000,1,9,20000000.000"]))
        self.assertEqual(self.query(back, "SELECT count(*) FROM issue"), [("0",)])

    def test_scheduling_and_samples(self):
        back = self.foreign(f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES (1, 'main'), (2, 'work'), (3, '/bin/x');
            CREATE TABLE SCHED_EVENTS (start INT, cpu INT, isSchedIn INT, globalTid INT, threadBlock INT);
            INSERT INTO SCHED_EVENTS VALUES (5, 1, 0, {self.TID}, NULL), (10, 1, 1, {self.TID}, NULL),
                (20, 1, 0, {self.TID}, 3), (20, 2, 1, {self.TID}, NULL), (30, 2, 0, {self.TID}, NULL),
                (30, 2, 1, {self.TID}, NULL), (30, 2, 0, {self.TID}, NULL), (40, 2, 1, {self.TID}, NULL);
            CREATE TABLE ANALYSIS_DETAILS (duration INT);
            INSERT INTO ANALYSIS_DETAILS VALUES (50);
            CREATE TABLE COMPOSITE_EVENTS (id INT, start INT, cpu INT, globalTid INT, cpuCycles INT);
            INSERT INTO COMPOSITE_EVENTS VALUES (7, 12, 1, {self.TID}, 1), (8, 14, 1, {self.TID}, 1);
            CREATE TABLE SAMPLING_CALLCHAINS (id INT, symbol INT, module INT, stackDepth INT, originalIP INT);
            INSERT INTO SAMPLING_CALLCHAINS VALUES (7, 2, 3, 0, 4096), (7, 1, 3, 1, 8192), (8, 1, 3, 0, 8200);
            """)
        self.assertEqual(self.query(back, "SELECT start_ns, dur_ns, cpu, end_reason FROM sched ORDER BY 1, 2 DESC"),
                         [("10", "10", "1", "1"), ("20", "10", "2", "2"), ("30", "0", "2", "2"), ("40", "10", "2", "4")])
        self.assertEqual(self.query(back, "SELECT start, function, module FROM samples"),
                         [("12", "work", "/bin/x"), ("14", "main", "/bin/x")])
        self.assertEqual(self.query(back, """SELECT f.function FROM sample s JOIN stack n ON n.id = s.stack
            JOIN stack p ON p.id = n.parent JOIN frame f ON f.id = p.frame"""), [("main",)])

    def test_what_is_no_table_is_not_run(self):
        back = self.foreign("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
                SELECT x AS start, x AS end, 59 AS eventType, 1 AS globalTid FROM c;
            CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1;
            """)
        self.assertEqual(self.query(back, "SELECT count(*) FROM ranges"), [("0",)])


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
