"""What `make test` runs. Files are found by their names: a new test needs no line here.

    test/unit/F/test_X.c     unit/X       with ASan and UBSan; ARCH/unit/X for the other architecture, emulated
    test/golden/AREA/        golden/AREA, ARCH/golden/AREA
    test/property/test_X.py  property/X, ARCH/property/X
    test/e2e/test_X.c, .py   e2e/X        san/X: some of them once more, with a recorder under ASan and UBSan
    test/browser/test_X.mjs  browser/X
    test/tsan/test_X.c       tsan/X       test/fuzz/fuzz_X.c       fuzz/X
    tools/check-X            check/X

What has to be built first is a target of the Makefile for each program: need/KIND/NAME, or the program itself.
"""
import functools
import glob
import os
import re
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ARCH = os.environ.get("FOREIGN_ARCH", "x86_64" if os.uname().machine == "aarch64" else "aarch64")
EMULATOR = os.environ.get("EMULATOR", f"/usr/bin/qemu-{ARCH}-static")

# Arguments of Python tests that take others than the build folder.
PYTHON_ARGS = {
    "import": ["{build}/lull", "test/data/pytorch/kineto-h200.json.gz"],
    "ops": ["{build}/lull", "test/data/pytorch/kineto-h200.json.gz", "test/data/pytorch/kineto-h200.table.txt"],
    "tutorial": ["{build}/lull"],
}

# Once more with a sanitized recorder; leaks are not looked for, since that takes minutes where reading another process's
# memory is slow.
SANITIZED = {
    "kills": ([], {"KILLS": "20"}),
    "sessions": ([], {}),
    "job": (["dumps_come_when_asked_and_are_numbered", "metrics_are_told_while_it_runs"], {}),
}


class Program:
    """One test program: how to build it, how to run it, and how heavy it is; the heaviest start first."""

    def __init__(self, name, argv, needs=(), env=None, weight=1, is_one_case=False, chooses_by_env=False):
        self.name, self.argv, self.needs, self.env = name, argv, list(needs), env or {}
        self.weight, self.is_one_case, self.chooses_by_env = weight, is_one_case, chooses_by_env

    def command(self, case):
        """Arguments and environment to run it, or one case of it."""
        if not case:
            return self.argv, self.env
        if self.chooses_by_env:
            return self.argv, {**self.env, "LULL_TEST_CASE": case}
        return self.argv + [case], self.env


def names(pattern):
    """What stands for the last * in the paths of the tree that match."""
    expr = re.compile(re.escape(pattern.rstrip("/")).replace(r"\*", "(.*)") + "$")
    return sorted(expr.match(os.path.relpath(path, TOP)).groups()[-1] for path in glob.glob(os.path.join(TOP, pattern)))


def cmocka(name, path, needs, env=None, weight=1, before=()):
    return Program(name, [*before, path], needs, env, weight, chooses_by_env=True)


@functools.lru_cache()
def has_version(tool, version):
    """Whether the installed version of a program is this one."""
    try:
        said = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    except OSError:
        return False
    return re.search(rf"\b(version )?{re.escape(version)}\b", said) is not None


class Suite:
    def __init__(self, build):
        self.build = build
        self.san = os.environ.get("SAN_BUILD", f"{build}-san")  # elsewhere where programs were brought along
        self.native = (f"BUILD={build}",)
        self.sanitizing = (f"BUILD={self.san}", "SAN=1")

    def need(self, name):
        return [(self.native, f"need/{name}")]

    def unit(self):
        for x in names("test/unit/*/test_*.c"):
            program = f"{self.san}/unit/test_{x}"
            yield cmocka(f"unit/{x}", program, [(self.sanitizing, program)], weight=5)

    def golden(self):
        for area in names("test/golden/*/"):
            yield Program(f"golden/{area}", ["test/golden/run", f"{self.build}/lull", area], self.need("lull"), weight=10)

    def property(self):
        for x in names("test/property/test_*.py"):
            yield Program(f"property/{x}", ["python3", f"test/property/test_{x}.py", self.build], self.need("lull"), weight=40)

    def e2e(self):
        for x in names("test/e2e/test_*.c"):
            yield cmocka(f"e2e/{x}", f"{self.build}/e2e/test_{x}", self.need(f"e2e/{x}"), weight=60)
        for x in names("test/e2e/test_*.py"):
            args = [a.format(build=self.build) for a in PYTHON_ARGS.get(x, ["{build}"])]
            yield Program(f"e2e/{x}", ["python3", f"test/e2e/test_{x}.py", *args], self.need(f"e2e/{x}"), weight=60)

    def sanitized(self):
        for x, (cases, env) in SANITIZED.items():
            env = {**env, "LULL": f"{self.san}/lull", "ASAN_OPTIONS": "detect_leaks=0",
                   "UBSAN_OPTIONS": "print_stacktrace=1"}
            needs = self.need(f"e2e/{x}") + [(self.sanitizing, "all")]
            if os.path.exists(os.path.join(TOP, f"test/e2e/test_{x}.c")):
                yield cmocka(f"san/{x}", f"{self.build}/e2e/test_{x}", needs, env, weight=60)
            else:
                yield Program(f"san/{x}", ["python3", f"test/e2e/test_{x}.py", self.build, *cases], needs, env, weight=60)

    def browser(self):
        yield Program("browser/types", ["tsc", "-p", "ui"], is_one_case=True, weight=10)
        for x in names("test/browser/test_*.mjs"):
            yield Program(f"browser/{x}", ["node", f"test/browser/test_{x}.mjs"], self.need("browser"),
                          {"BUILD": self.build}, weight=90)

    def gpu(self):
        """The scripts for machines with a GPU, tried on the simulated device."""
        sim = ["--lull", f"{self.build}/lull", "--sim", f"{self.build}/sim", "--short"]
        yield Program("gpu/test", ["test/gpu/run.py", *sim, "--only", "count,copies,runtime"], self.need("sim"),
                      weight=40, is_one_case=True)
        yield Program("gpu/bench", ["bench/gpu/run.py", *sim, "--only", "parts,loop,after", "--rounds", "1"],
                      self.need("sim"), weight=40, is_one_case=True)

    def tsan(self):
        for x in names("test/tsan/test_*.c"):
            yield Program(f"tsan/{x}", [f"build-tsan/test_{x}"], [(self.native, f"build-tsan/test_{x}")],
                          {"TSAN_OPTIONS": "halt_on_error=1"}, is_one_case=True)

    def fuzz(self):
        seconds = os.environ.get("FUZZ_SECONDS", "10")
        for x in names("test/fuzz/fuzz_*.c"):
            program = f"{self.san}/fuzz/fuzz_{x}"
            yield Program(f"fuzz/{x}", [program, seconds], [(self.sanitizing, program)], weight=10, is_one_case=True)

    def check(self):
        args = {"agent": [self.build], "docs": [f"{self.build}/lull"]}
        for x in names("tools/check-*"):
            if x != "glibc":  # a check of releases
                yield Program(f"check/{x}", [f"tools/check-{x}", *args.get(x, [])], self.need("lull"), is_one_case=True)
        yield Program("check/gen-docs", ["tools/gen-docs", "--check", f"{self.build}/lull"], self.need("lull"),
                      is_one_case=True)
        yield self.lint("cppcheck", "cppcheck", 100)
        for part in [*names("src/*/"), "rest"]:
            yield self.lint(f"tidy-{part}", part, 30)

    def lint(self, name, part, weight):
        """Every version of a linter finds something else; the tree is clean for those of Debian 12."""
        tool, version = ("cppcheck", "2.10") if part == "cppcheck" else ("clang-tidy", "14")
        if has_version(tool, version):
            return Program(f"check/{name}", ["make", "--no-print-directory", "-k", f"lint/{part}"], weight=weight,
                           is_one_case=True)
        return Program(f"check/{name}", ["echo", f"skipped: no {tool} {version} here; 'make lint' tries what there is"],
                       is_one_case=True)

    def foreign(self):
        """Unit, golden and property tests for the other architecture."""
        missing = no_foreign()
        if missing:
            yield Program(f"{ARCH}/all", ["echo", f"skipped: {missing}"], is_one_case=True)
            return
        build = f"build-{ARCH}"
        make = (f"BUILD={build}", f"CC={ARCH}-linux-gnu-gcc", f"CXX={ARCH}-linux-gnu-g++", "CFLAGS=")
        for x in names("test/unit/*/test_*.c"):
            program = f"{build}/unit/test_{x}"
            yield cmocka(f"{ARCH}/unit/{x}", program, [(make, program)], {"LULL_EMULATED": ARCH}, before=[EMULATOR],
                         weight=6)
        needs = [(make, f"{build}/emulated/lull")]
        for area in names("test/golden/*/"):
            yield Program(f"{ARCH}/golden/{area}", ["test/golden/run", f"{build}/emulated/lull", area], needs + self.need("lull"),
                          {"LULL_EMULATED": ARCH, "LULL_TEXT": f"{self.build}/lull"}, weight=20)
        for x in names("test/property/test_*.py"):
            yield Program(f"{ARCH}/property/{x}", ["python3", f"test/property/test_{x}.py", f"{build}/emulated", "seed_2", "seed_3", "seed_4"], needs,
                          {"LULL_EMULATED": ARCH}, weight=50)


def no_foreign():
    """What is missing to build and run programs of the other architecture, or None."""
    for path in (EMULATOR, f"/usr/bin/{ARCH}-linux-gnu-g++", f"/usr/lib/{ARCH}-linux-gnu/libdw.so",
                 f"/usr/lib/{ARCH}-linux-gnu/libcmocka.so"):
        if not os.path.exists(path):
            return f"no {path} for tests of {ARCH}; 'make setup' installs it where it can"
    return None


def programs(build, kind=None):
    """All of them, or those of some kinds, separated by commas."""
    suite = Suite(build)
    kinds = {"unit": suite.unit, "golden": suite.golden, "property": suite.property, "e2e": suite.e2e,
             "san": suite.sanitized, "browser": suite.browser, "gpu-sim": suite.gpu, "tsan": suite.tsan,
             "fuzz": suite.fuzz, "check": suite.check, "foreign": suite.foreign}
    return [program for name, make in kinds.items() if not kind or name in kind.split(",") for program in make()]
