"""What the tests in Python share: running cases one by one, and waiting without a look at the machine's speed.

A test program prints a line on standard output for each case when it ends, and nothing else:

    ok NAME
    FAILED NAME                 what was wrong is on standard error, before it
    skipped NAME: REASON

It goes on after a case that failed, and ends with status 1 then. Arguments after those that a program needs choose cases:
those whose name contains one of them. Limits are there for what hangs: they are long, LULL_TEST_PATIENCE=N makes them N
times as long, and no test passes or fails by how long something took.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import urllib.request

PATIENCE = int(os.environ.get("LULL_TEST_PATIENCE") or 1)
_started = []  # processes of the present case
_MARK = "LULL_TEST_CASE"  # a variable that what is started here has, and what that starts
os.environ[_MARK] = f"{os.getpid()}-{time.monotonic_ns()}"


def limit(seconds=60):
    """Seconds after which something hangs."""
    return max(seconds, 60) * PATIENCE


def expect(what, is_so, got=""):
    if not is_so:
        raise AssertionError(f"{what}: {got}")


def skip(why):
    raise unittest.SkipTest(why)


def until(is_so, what, seconds=60):
    """Wait until something holds; what it was in the end."""
    deadline = time.monotonic() + limit(seconds)
    while True:
        found = is_so()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: still not so after {limit(seconds)} s")
        time.sleep(0.01)


def until_file(path, seconds=60):
    until(lambda: os.path.exists(path), f"{path} comes", seconds)


def start(words, **how):
    """A process in a session of its own, which is killed with its children when the case ends."""
    p = subprocess.Popen(words, **{"start_new_session": True, **how})
    _started.append(p)
    return p


def finish(p, seconds=600):
    """(output, errors) of a process once it has ended."""
    try:
        return p.communicate(timeout=limit(seconds))
    except subprocess.TimeoutExpired:
        _kill(p)
        raise AssertionError(f"{p.args} did not end within {limit(seconds)} s: {p.communicate()}") from None


def run(words, seconds=600, input=None, check=False, **how):
    """Like subprocess.run() with text captured, in a session of its own, of which nothing is left if it hangs."""
    if input is not None:
        how["stdin"] = subprocess.PIPE
    p = start(words, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **how})
    try:
        out, err = p.communicate(input=input, timeout=limit(seconds))
    except subprocess.TimeoutExpired:
        _kill(p)
        raise AssertionError(f"{words} did not end within {limit(seconds)} s: {p.communicate()}") from None
    _started.remove(p)
    if check:
        expect(f"status of {words}", p.returncode == 0, f"{p.returncode}\n{err}")
    return subprocess.CompletedProcess(words, p.returncode, out, err)


_said = {}  # what lull doctor finds, by check


def can(lull, check):
    """Whether lull doctor says that this can be recorded here."""
    if not _said:
        done = run([lull, "doctor", "--json"])
        _said.update((f["check"], f) for f in json.loads(done.stdout))
    return _said[check]["state"] != "no"


def free_port():
    """A port that nobody listens at, and that is nobody's by chance: ports that the system hands out begin at 32768."""
    for port in range(20000 + os.getpid() % 10000, 32768):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def children(pid):
    """Processes that the threads of this one have started and not waited for."""
    found = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as f:
                found += [int(n) for n in f.read().split()]
    except OSError:
        pass  # it has ended
    return found


def has_ended(pid):
    """Whether a process is no longer there, or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def program_of(pid):
    """The file that the process runs, as it is after links; None if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def _kill(p):
    """The process and all of its session."""
    try:
        if os.getsid(p.pid) == p.pid:
            os.killpg(p.pid, signal.SIGKILL)
    except OSError:
        pass
    p.kill()


def _left_over():
    """Processes that a case has started, also by others that have ended."""
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0") and int(pid) != os.getpid():
                    yield int(pid)
        except OSError:
            pass  # it has ended, or is another user's


def _end_all():
    """Nothing of a case goes on after it."""
    for p in _started:
        if p.poll() is None:
            _kill(p)
    for pid in _left_over():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    while _started:
        p = _started.pop()
        p.wait()
        for stream in (p.stdin, p.stdout, p.stderr):
            if stream:
                stream.close()


def url_of_metrics(p):
    """Where a recorder that was started with --metrics-port=0 tells them; it says so first."""
    line = p.stderr.readline()
    found = re.search(r"http://127.0.0.1:\d+/metrics", line)
    expect("the address of the metrics", found, line)
    return found[0]


def metric(url, name):
    """The value of a metric without labels."""
    with urllib.request.urlopen(url, timeout=limit()) as f:
        return float(re.search(rf"^{name} (\S+)$", f.read().decode(), re.M)[1])


def named(name, function, *args):
    """A case of a function that is tried with several arguments."""
    def case():
        return function(*args)

    case.__name__ = name
    return case


def slug(name):
    """The name of a case as it is printed: without blanks and the like."""
    return re.sub(r"[^\w./+-]+", "_", name).strip("_")


class Lines:
    """The lines on standard output; whatever else is printed, also by programs that are started, goes to standard error."""

    def __init__(self):
        sys.stdout.flush()
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.n_failed = 0

    def end(self, name, skipped=None, is_failed=False):
        sys.stdout.flush()
        sys.stderr.flush()
        name = slug(name)
        self.n_failed += is_failed
        if is_failed:
            self.out.write(f"FAILED {name}\n")
        elif skipped is not None:
            self.out.write(f"skipped {name}: {' '.join(skipped.split())}\n")
        else:
            self.out.write(f"ok {name}\n")
        self.out.flush()

    def run(self, name, function):
        """Run a case that is a function, here."""
        try:
            function()
        except unittest.SkipTest as why:
            self.end(name, skipped=str(why))
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            self.end(name, is_failed=True)
        else:
            self.end(name)
        finally:
            _end_all()


class _Result(unittest.TestResult):
    """A line for each test of a class."""

    def __init__(self, lines):
        super().__init__()
        self.lines = lines

    def startTest(self, test):
        super().startTest(test)
        self.is_bad, self.why = False, None

    def problem(self, test, text):
        sys.stderr.write(f"{test}\n{text}\n")
        self.is_bad = True

    def addError(self, test, err):
        self.problem(test, self._exc_info_to_string(err, test))
        if not isinstance(test, unittest.TestCase):  # setUpClass and the like
            self.lines.end(str(test), is_failed=True)

    def addFailure(self, test, err):
        self.problem(test, self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.problem(subtest, self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.why = reason

    def stopTest(self, test):
        super().stopTest(test)
        _end_all()
        self.lines.end(_name_of(test), self.why, self.is_bad)


def _name_of(test):
    return type(test).__name__ + "." + test._testMethodName[len("test_"):]


def _in_folder(function, before, after):
    """In a folder of its own."""
    def case():
        folder = tempfile.mkdtemp(prefix="lull-test-")
        os.chdir(folder)
        try:
            if before:
                before()
            function()
            if after:
                after()
        finally:
            _end_all()
            os.chdir("/")
            shutil.rmtree(folder, ignore_errors=True)

    return case


def _tests_of(module):
    loader = unittest.TestLoader()
    for kind in vars(sys.modules[module]).values():
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase) and kind.__module__ == module:
            yield from loader.loadTestsFromTestCase(kind)


def main(tests, words, after=None, before=None):
    """
    Run all tests, or those that `words` choose, and end. Tests are the name of a module with classes of unittest, or a list
    of functions; each of these gets an empty folder to run in, where `before` is called first, which may skip it, and
    `after` when it has passed.
    """
    lines = Lines()
    words = [w for w in words if not w.startswith("-")]
    cases = ([(_name_of(t), t) for t in _tests_of(tests)] if isinstance(tests, str) else
             [(slug(t.__name__), t) for t in tests])
    chosen = [(name, t) for name, t in cases if not words or any(w in name for w in words)]
    if not chosen:
        sys.exit(f"no case is named {' or '.join(words)}")
    result = _Result(lines)
    try:
        if isinstance(tests, str):
            unittest.TestSuite(t for _, t in chosen).run(result)
        else:
            for name, test in chosen:
                lines.run(name, _in_folder(test, before, after))
    finally:
        _end_all()
    sys.exit(lines.n_failed > 0)
