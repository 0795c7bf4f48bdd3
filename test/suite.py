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

# Leaks are looked for where that takes milliseconds. The allocator of GCC's sanitizer on aarch64 walks 2^28 possible
# regions when a program ends, which takes more than 4 s of CPU for each of the unit tests: there LEAKS=1 asks for it.
LEAKS = {} if os.uname().machine == "x86_64" or os.environ.get("LEAKS") else {"ASAN_OPTIONS": "detect_leaks=0"}

# Once more with a sanitized recorder; leaks are not looked for, since that takes minutes where reading another process's
# memory is slow.
SANITIZED = {
    "kills": ([], {"KILLS": "20"}),
    "sessions": ([], {}),
    "top": ([], {}),
    "job": (["dumps_come_when_asked_and_are_numbered", "metrics_are_told_while_it_runs"], {}),
}


# The longest programs and their seconds on two cores, so that none is left alone at the end; the weights of others are those
# of their kind. A new one that takes half a minute belongs here.
LONG = {
    "check/cppcheck": 250, "e2e/try": 180, "browser/page": 140, "e2e/agree": 90, "e2e/promises": 58, "e2e/torch": 50,
    "e2e/ranks": 48, "e2e/corpus": 48, "unit/damage": 47, "e2e/timeline": 45, "unit/thresholds": 43, "e2e/fleetd": 42,
    "e2e/recipes": 38, "browser/numbers": 70, "browser/opening": 34, "browser/depth": 33, "e2e/requests": 32, "browser/reach": 31,
    f"{ARCH}/unit/thresholds": 30, "e2e/export": 30, "check/tidy-agent": 28, "e2e/attach": 28, "e2e/kills": 27, "e2e/duty": 25,
    f"{ARCH}/property/stats": 24, f"{ARCH}/unit/gate": 22, "e2e/python": 20, "e2e/torch_loops": 20, f"{ARCH}/unit/report": 19,
    "property/stats": 18, f"{ARCH}/golden/query": 18, f"{ARCH}/unit/forecast": 17, f"{ARCH}/unit/planted": 17,
    f"{ARCH}/unit/out": 17, "unit/agree": 16, f"{ARCH}/unit/contest": 15, "unit/forecast": 14, "check/headers": 14,
    "check/agent": 12, "unit/unwind": 9,
}


class Program:
    """One test program: how to build it, how to run it, and how heavy it is; the heaviest start first."""

    def __init__(self, name, argv, needs=(), env=None, weight=1, is_one_case=False, chooses_by_env=False):
        self.name, self.argv, self.needs, self.env = name, argv, list(needs), env or {}
        self.weight, self.is_one_case, self.chooses_by_env = LONG.get(name, weight), is_one_case, chooses_by_env

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
            yield cmocka(f"unit/{x}", program, [(self.sanitizing, program)], LEAKS, weight=2)

    def golden(self):
        for area in names("test/golden/*/"):
            yield Program(f"golden/{area}", ["test/golden/run", f"{self.build}/lull", area], self.need("lull"), weight=2)

    def property(self):
        for x in names("test/property/test_*.py"):
            yield Program(f"property/{x}", ["python3", f"test/property/test_{x}.py", self.build], self.need("lull"), weight=18)

    def e2e(self):
        for x in names("test/e2e/test_*.c"):
            yield cmocka(f"e2e/{x}", f"{self.build}/e2e/test_{x}", self.need(f"e2e/{x}"), weight=10)
        for x in names("test/e2e/test_*.py"):
            args = [a.format(build=self.build) for a in PYTHON_ARGS.get(x, ["{build}"])]
            yield Program(f"e2e/{x}", ["python3", f"test/e2e/test_{x}.py", *args], self.need(f"e2e/{x}"), weight=10)

    def sanitized(self):
        for x, (cases, env) in SANITIZED.items():
            env = {**env, "LULL": f"{self.san}/lull", "ASAN_OPTIONS": "detect_leaks=0",
                   "UBSAN_OPTIONS": "print_stacktrace=1"}
            needs = self.need(f"e2e/{x}") + [(self.sanitizing, "all")]
            if os.path.exists(os.path.join(TOP, f"test/e2e/test_{x}.c")):
                yield cmocka(f"san/{x}", f"{self.build}/e2e/test_{x}", needs, env, weight=10)
            else:
                yield Program(f"san/{x}", ["python3", f"test/e2e/test_{x}.py", self.build, *cases], needs, env, weight=10)

    def browser(self):
        yield Program("browser/types", ["tsc", "-p", "ui"], is_one_case=True, weight=14)
        for x in names("test/browser/test_*.mjs"):
            yield Program(f"browser/{x}", ["node", f"test/browser/test_{x}.mjs"], self.need("browser"),
                          {"BUILD": self.build}, weight=13)

    def gpu(self):
        """The scripts for machines with a GPU, tried on the simulated device."""
        sim = ["--lull", f"{self.build}/lull", "--sim", f"{self.build}/sim", "--short"]
        yield Program("gpu/test", ["test/gpu/run.py", *sim, "--only", "count,copies,parts,runtime"], self.need("sim"),
                      weight=6, is_one_case=True)
        yield Program("gpu/bench", ["bench/gpu/run.py", *sim, "--only", "parts,loop,after", "--rounds", "1"],
                      self.need("sim"), weight=6, is_one_case=True)

    def tsan(self):
        for x in names("test/tsan/test_*.c"):
            yield Program(f"tsan/{x}", [f"build-tsan/test_{x}"], [(self.native, f"build-tsan/test_{x}")],
                          {"TSAN_OPTIONS": "halt_on_error=1"}, is_one_case=True)

    def fuzz(self):
        seconds = os.environ.get("FUZZ_SECONDS", "10")
        for x in names("test/fuzz/fuzz_*.c"):
            program = f"{self.san}/fuzz/fuzz_{x}"
            yield Program(f"fuzz/{x}", [program, seconds], [(self.sanitizing, program)], weight=15, is_one_case=True)

    def check(self):
        args = {"agent": [self.build], "docs": [f"{self.build}/lull"]}
        for x in names("tools/check-*"):
            if x != "glibc":  # a check of releases
                yield Program(f"check/{x}", [f"tools/check-{x}", *args.get(x, [])], self.need("lull"), is_one_case=True)
        yield Program("check/gen-docs", ["tools/gen-docs", "--check", f"{self.build}/lull"], self.need("lull"),
                      is_one_case=True)
        yield self.lint("cppcheck", "cppcheck")
        for part in [*names("src/*/"), "rest"]:
            yield self.lint(f"tidy-{part}", part)

    def lint(self, name, part):
        """Every version of a linter finds something else; the tree is clean for those of Debian 12."""
        tool, version = ("cppcheck", "2.10") if part == "cppcheck" else ("clang-tidy", "14")
        if has_version(tool, version):
            return Program(f"check/{name}", ["make", "--no-print-directory", "-k", f"lint/{part}"], weight=8,
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
                         weight=3)
        needs = [(make, f"{build}/emulated/lull")]
        for area in names("test/golden/*/"):
            yield Program(f"{ARCH}/golden/{area}", ["test/golden/run", f"{build}/emulated/lull", area], needs + self.need("lull"),
                          {"LULL_EMULATED": ARCH, "LULL_TEXT": f"{self.build}/lull"}, weight=6)
        for x in names("test/property/test_*.py"):
            yield Program(f"{ARCH}/property/{x}", ["python3", f"test/property/test_{x}.py", f"{build}/emulated", "seed_2", "seed_3"], needs,
                          {"LULL_EMULATED": ARCH}, weight=20)


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
