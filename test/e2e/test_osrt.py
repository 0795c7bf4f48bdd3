#!/usr/bin/env python3
"""The C library wrappers, process following, GIL waits and timer samples, end to end.

    test_osrt.py BUILD [NAME...]     BUILD has liblull-agent.so and e2e/{listen,osrt_guest,process_guest,...}

Each test runs a program plainly and under the agent; what the program can see must be the same, and what the agent
emitted (see listen.c for the lines) must be what the program did.
"""
import collections
import itertools
import math
import os
import shutil
import subprocess
import sys
import tempfile

import runner

BUILD = os.path.abspath(sys.argv[1])
LINKS = tempfile.TemporaryDirectory(prefix="lull-test-")
AGENT = LINKS.name + "/agent.so"  # LD_PRELOAD takes no blanks, which the folder of the tree may have
os.symlink(BUILD + "/liblull-agent.so", AGENT)
E2E = BUILD + "/e2e/"
HERE = os.path.dirname(os.path.abspath(__file__))
OSRT, GIL, TIMER = 2, 4, 8
LIVE, EXITED, EXECED = 1, 2, 3
US, MS = 1000, 1000000


Call = collections.namedtuple("Call", "tid start end ret arg stack_bytes")


class Recording:
    """What a program printed and emitted under the agent."""

    def __init__(self, argv, sources=OSRT, threshold_ns=1000, env=None):
        with tempfile.NamedTemporaryFile(mode="r") as out:
            command = [E2E + "listen", out.name, AGENT, str(sources), str(threshold_ns), "80000"]
            done = run(command + argv, env)
            self.rc, self.stdout = done.returncode, done.stdout
            self.lines = [line.split() for line in out]
        self.hz = int(self.of("hz")[0][1]) if self.lines else 0

    def of(self, kind):
        return [line for line in self.lines if line[0] == kind]

    def ns(self, ticks):
        return ticks * 10**9 / self.hz

    def calls(self, name):
        """Each recorded call of that name; times are as in the events."""
        found = [[int(x) for x in (l[2], *l[4:9])] for l in self.of("oscall") if l[3] == name]
        return [Call(tid, start, start + dur, ret, arg, stack) for tid, start, dur, ret, arg, stack in found]


def run(argv, env=None):
    return runner.run(argv, 300, stderr=subprocess.STDOUT, errors="replace", env=dict(os.environ, **env) if env else None)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def same(argv, **how):
    """Run with and without the agent; what the program prints and returns must not differ."""
    plain, recorded = run(argv), Recording(argv, **how)
    check(plain.returncode == recorded.rc, f"exit code {plain.returncode} became {recorded.rc}")
    check(plain.stdout == recorded.stdout, f"output\n{plain.stdout}became\n{recorded.stdout}")
    check(not recorded.of("broken"), "a stack without its event")
    return recorded


def check_lengths(env):
    """Each call lies between what its caller read before and after it, and is not shorter than what it waited for."""
    r = Recording([E2E + "osrt_guest", "lengths"], env=env)
    lines = [l.split() for l in r.stdout.splitlines() if l.startswith("expect")]
    check(len(lines) == 10, r.stdout)
    for name, *numbers in (line[1:] for line in lines):
        tid, before, after, min_ns, moment = map(int, numbers)
        found = [c for c in r.calls(name) if c.tid == tid and before <= c.start and c.end <= after]
        check(len(found) == 1, f"{name} between {before} and {after}: {found} of {r.calls(name)}")
        call = found[0]
        # The counter and the clock differ by their rates: the kernel corrects the clock by up to 0.05 %.
        check(r.ns(call.end - call.start) >= min_ns * 0.999, f"{name} of {min_ns} ns is {call}")
        check(not moment or call.start <= moment <= call.end, f"{name} was let go at {moment}, but is {call}")
        check(call.stack_bytes >= 256, f"{name} has a stack of {call.stack_bytes} bytes only")


def calls_have_their_length():
    check_lengths(None)


def calls_have_their_length_without_a_counter():
    check_lengths({"LISTEN_CLOCK": "1"})


def sleeps_tell_what_was_asked_for():
    r = Recording([E2E + "osrt_guest", "lengths"])
    check(5 * MS in [c.arg for c in r.calls("nanosleep")], r.calls("nanosleep"))
    check(3 * MS in [c.arg for c in r.calls("usleep")], r.calls("usleep"))


def short_calls_are_not_recorded():
    r = same([E2E + "osrt_guest", "shorts"], threshold_ns=1000000 * MS)
    check(not r.of("oscall"), r.of("oscall"))
    r = same([E2E + "osrt_guest", "shorts"], threshold_ns=0)
    check(len(r.calls("read")) == 20000, len(r.calls("read")))
    check(len(r.calls("pthread_mutex_lock")) == 0, "a free lock was recorded")


def nothing_is_recorded_when_off():
    r = Recording([E2E + "osrt_guest", "lengths"], env={"LISTEN_RECORD": "0"})
    check(r.rc == 0 and not r.of("oscall"), r.lines)


def results_and_errno_are_the_same():
    same([E2E + "osrt_guest", "errors"])
    same([E2E + "osrt_guest", "errors"], threshold_ns=0)
    same([E2E + "osrt_guest", "owner_died"])


def interrupted_calls_are_the_same():
    same([E2E + "osrt_guest", "interrupts"])


def cancelled_threads_end_and_others_record():
    r = same([E2E + "osrt_guest", "cancel"])
    check(len([c for c in r.calls("usleep") if c.arg == 2500 * US]) == 4, "calls of cleanup handlers")
    check(len([c for c in r.calls("usleep") if c.arg == 3500 * US]) == 1, "call of a later thread")


def jumping_out_does_not_silence_the_thread():
    r = same([E2E + "osrt_guest", "longjmps"])
    check(len([c for c in r.calls("usleep") if c.arg == 2500 * US]) == 4, r.calls("usleep"))


def threads_give_their_slots_back():
    r = same([E2E + "osrt_guest", "threads"], sources=OSRT | TIMER)
    image = r.of("image")[0]
    check(int(image[5]) <= 1, f"{image[5]} slots left")
    check(int(image[6]) == 0, f"{image[6]} events dropped")
    check(not r.of("issue"), r.of("issue"))


def children_keep_the_agent():
    r = same([E2E + "process_guest", "family"])
    images = {(int(l[2]), int(l[3])) for l in r.of("image")}
    for state, code in [(EXITED, 3), (EXITED, 5), (EXITED, 6), (EXITED, 7), (EXITED, 0)]:
        check((state, code) in images, f"no image with state {state} and exit code {code} in {images}")
    check(len(r.of("image")) == 7, r.of("image"))
    # Of the four that fork, two execute a program at once and one is killed: these have no image of their own.
    pids = {l[1] for l in r.of("image")}
    forks = r.of("fork")
    main = next(l[1] for l in r.of("image") if "process_guest" in l[-1] and l[1] not in {f[1] for f in forks})
    check(len(forks) == 4 and all(l[2] == main for l in forks), forks)
    check(sum(l[1] in pids for l in forks) == 3, (forks, r.of("image")))
    statuses = [int(l[4]) for l in r.of("child")]
    check(statuses == [3 << 8, 5 << 8, 126 << 8, 5 << 8, 5 << 8, 6 << 8, 7 << 8, 9], statuses)
    check(int(r.of("image")[0][2]) == EXITED, "a failed exec left the image EXECED")
    r = same(["sh", "-c", "exec true"])
    check({int(l[2]) for l in r.of("image")} == {EXECED, EXITED}, r.of("image"))


def a_forked_child_that_waits_for_its_image_has_all():
    """Its events, its modules, its start and its end; also after a fork of its own, and what it executes in a vfork."""
    r = same([E2E + "process_guest", "forks"])
    check(len(r.of("fork")) >= 4, r.of("fork"))
    images = {int(l[1]): l for l in r.of("image")}
    told = [l for l in r.of("oscall") if l[3] == "usleep"]
    check(len(told) == 2, told)
    for line in told:
        pid = int(line[1])
        check(int(images[pid][2]) == EXITED, images[pid])
        check(any(int(l[1]) == pid and "process_guest" in l[-1] for l in r.of("module")), f"modules of {pid}")
    parents = {l[1]: l[2] for l in r.of("fork")}
    check(all(images[int(line[1])][4] == parents[line[1]] for line in told), (parents, r.of("image")))
    check(any(l[-1].endswith("sh") and int(l[3]) == 5 for l in r.of("image")), r.of("image"))


def many_forks_at_once_are_all_told():
    """More than the parent's image has room for: the others make an image at once."""
    r = same([E2E + "process_guest", "many"])
    known = {l[1] for l in r.of("fork")} | {l[1] for l in r.of("image")}
    check(len(r.of("child")) == 100 and {l[3] for l in r.of("child")} <= known, len(known))


def threads_tell_their_names():
    r = same([E2E + "process_guest", "names"])
    check([l[4] for l in r.of("thread_name")] == ["by-prctl", "by-pthread"], r.of("thread_name"))


def libraries_are_found_where_the_caller_looks():
    r = same([E2E + "process_guest", "runpath"])
    check(any("process_guest_part" in l[-1] for l in r.of("module")), "the library's module event")


def many_threads_do_not_hide_a_library():
    """The next thread that is started looks for it."""
    r = same([E2E + "process_guest", "runpath_late"])
    events = [l[4] if l[0] == "thread_name" else l[-1] for l in r.lines if l[0] in ("module", "thread_name")]
    at = [i for i, text in enumerate(events) if "process_guest_part" in text]
    check(at and at[0] < events.index("after"), events)


def locks_of_the_driver_are_spared():
    """The same library under two names; the driver's semaphores are seen, its locks are not. Loading may be slow."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("", "_mixed", "_needy", "_now", "_slow", "_slow_now"):
            source = "libwaits%s.so" % kind
            paths = [os.path.join(folder, source + end) for end in ("", "/libcudart.so.99")]
            os.mkdir(paths[0])
            paths[0] += "/libplain.so"
            for path in paths:
                shutil.copy(E2E + "part/" + source, path)
            r = same([E2E + "osrt_guest", "libraries", *paths])
            # They are held for longer than this, once somebody waits.
            long = {name: len([c for c in r.calls(name) if r.ns(c.end - c.start) > 2 * MS])
                    for name in ("pthread_mutex_lock", "pthread_rwlock_wrlock", "sem_wait")}
            check(long == {"pthread_mutex_lock": 1, "pthread_rwlock_wrlock": 1, "sem_wait": 2}, (source, long))


def locks_that_the_user_asks_for_are_seen():
    """Although the agent wraps them, and spares them in the driver."""
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in itertools.product(("libplain.so", "libcudart.so.99"), ("", "_now", "_mixed")):
            path, report = os.path.join(folder, name), os.path.join(folder, "r.lull")
            shutil.copy(E2E + "part/libwaits%s.so" % kind, path)
            done = run([BUILD + "/lull", "profile", "-q", "-f", "true", "-o", report, "-s", "none", "--cpuctxsw=none",
                        "--trace-library=libc.so.6:pthread_mutex_lock", E2E + "osrt_guest", "lazy_calls", path])
            check(done.returncode == 0, done.stdout)
            table = run([BUILD + "/lull", "stats", "-q", "-r", "lib_sum", "-f", "csv", report]).stdout
            calls = [line.split(",")[2] for line in table.splitlines() if line.endswith(",pthread_mutex_lock")]
            check(calls == ["1000"], (name, kind, table))


IDLE_NS = 10_000_000


class Burner:
    """A thread of process_guest: what it says of itself, and the samples that were taken of it."""

    def __init__(self, recorded, line):
        self.pid, self.tid = line[1:3]
        self.a, self.b = (int(x, 16) for x in line[3:5])
        self.a_ns, self.b_ns, self.cpu_ns = map(int, line[5:8])
        self.samples = [(int(l[4]), int(l[5], 16)) for l in recorded.of("sample") if l[1:3] == [self.pid, self.tid]]
        self.weight = sum(w for w, _ in self.samples)

    def is_in_a(self, pc):
        return self.a <= pc < self.b if self.a < self.b else self.a <= pc < self.a + 64

    def check_weight(self, is_whole):
        """
        All CPU time of the thread has a weight, but for what came after the last sample, and before the first: a timer
        that was armed before the recording ticks slowly at first (IDLE_PERIOD_NS of source_timer.c).
        """
        longest = max(w for w, _ in self.samples)
        check(self.weight <= self.cpu_ns + longest, f"samples weigh {self.weight} ns of {self.cpu_ns}")
        least = self.a_ns + self.b_ns - IDLE_NS - 3 * longest
        check(not is_whole or self.weight >= least, f"samples weigh {self.weight} ns of at least {least}")


def timer_samples_tell_the_split():
    burners = []
    for env in (None, {"LISTEN_LATE": "1"}):
        r = Recording([E2E + "process_guest", "sampled"], sources=TIMER, env=env)
        check(r.rc == 0, r.stdout)
        check(all(int(l[6]) >= 64 for l in r.of("sample")), "samples without a stack")
        found = [Burner(r, l.split()) for l in r.stdout.splitlines() if l.startswith("burn")]
        check(len(found) == 3 and all(b.samples for b in found), f"main, thread and child expected: {r.stdout}")
        is_whole = all(int(l[6]) == 0 for l in r.of("image"))  # nothing was dropped
        for burner in found:
            burner.check_weight(is_whole)
        burners += found
    weights = [w for b in burners for w, _ in b.samples]
    in_a = sum(w for b in burners for w, pc in b.samples if b.is_in_a(pc)) / sum(weights)
    truth = sum(b.a_ns for b in burners) / sum(b.a_ns + b.b_ns for b in burners)
    # As far off as chance allows with so many samples: five standard deviations are one in a million.
    n = sum(weights) ** 2 / sum(w * w for w in weights)
    # Timers of a busy machine come at the ticks of its kernel, and these are not by chance.
    is_ticking = max(weights) > 20_000_000
    check(abs(in_a - truth) < 5 * math.sqrt(truth * (1 - truth) / n) or is_ticking and in_a > 0.5,
          f"{100 * in_a:.1f} % instead of {100 * truth:.1f} in {len(weights)} samples")


def a_program_with_its_own_sigprof_is_left_alone():
    r = same([E2E + "process_guest", "own_sigprof"], sources=OSRT | TIMER)
    check([l[2] for l in r.of("issue")] == ["11"], r.of("issue"))


def who_waits_for_sigprof_gets_what_was_sent():
    for sources in (TIMER, OSRT | TIMER):
        r = same([E2E + "process_guest", "wait_sigprof"], sources=sources)
        check(not r.of("issue"), r.of("issue"))
        r = same([E2E + "process_guest", "read_sigprof"], sources=sources)
        check([l[2] for l in r.of("issue")] == ["11"], r.of("issue"))


def too_short_waits(sources):
    """Threads that waited for less than they must have; none waited for more than it can have."""
    r = Recording([sys.executable, HERE + "/guests/gil_guest.py"], sources=sources, env={"LISTEN_CLOCK": "1"})
    check(r.rc == 0, r.stdout)
    lines = [l.split()[1:] for l in r.stdout.splitlines() if l.startswith("thread")]
    check(len(lines) == 3, r.stdout)
    check(int(r.of("image")[0][7], 16) >> 16 == sys.version_info[0] << 8 | sys.version_info[1], "version")
    short = []
    for tid, begin, end, cpu, delay in lines:
        begin, end, cpu = int(begin), int(end), int(cpu)
        waits = [(int(l[3]), int(l[4])) for l in r.of("gil_wait") if l[2] == tid]
        waited = sum(dur for start, dur in waits if begin <= start and start + dur <= end)
        # A thread runs, is ready to run, or waits, and it waits for nothing but the lock. Some of what it runs for is
        # what it takes to wait.
        most = end - begin - 0.9 * cpu
        # On a virtual machine the host takes its part, and no clock tells: half of the rest is asked for.
        least = (end - begin - cpu - int(delay)) / 2 if delay != "?" else 1
        check(waited <= most, f"thread {tid} waited {waited} ns, which is more than {most}")
        if waited < least:
            short.append(f"thread {tid} waited {waited} ns, which is less than {least}")
    return short


def check_gil_waits(sources):
    # Time in which the whole machine stood still is in none of the clocks: then once more.
    for _ in range(5):
        short = too_short_waits(sources)
        if not short:
            break
    check(not short, short)


def gil_waits_add_up():
    check_gil_waits(GIL)
    check_gil_waits(OSRT | GIL)


def a_static_program_is_unaffected():
    same([E2E + "static_guest"])


ORDINARY = {
    "bash": ["bash", "-c", "for i in 1 2 3; do echo $i | (read x; echo got $x); done; exit 4"],
    "git": ["git", "--version"],
    "gcc": ["gcc", "-x", "c", "-o", "/dev/null", "hello.c"],
    "sh": ["sh", "-c", "seq 100000 | sort -rn | head -3; ls /no/such; env -i /bin/echo clean"],
    "python": [sys.executable, "-c", "import json, subprocess, threading, multiprocessing as m\n"
               "print(subprocess.check_output(['echo', 'hi']), m.Pool(2).map(abs, [-1, -2]))"],
}


def check_ordinary(name):
    if not shutil.which(ORDINARY[name][0]):
        runner.skip(f"no {ORDINARY[name][0]} here")
    with open("hello.c", "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    same(ORDINARY[name], sources=OSRT | GIL | TIMER)


TESTS = [calls_have_their_length, calls_have_their_length_without_a_counter, sleeps_tell_what_was_asked_for,
         short_calls_are_not_recorded, nothing_is_recorded_when_off, results_and_errno_are_the_same,
         interrupted_calls_are_the_same, cancelled_threads_end_and_others_record, jumping_out_does_not_silence_the_thread,
         threads_give_their_slots_back, children_keep_the_agent, a_forked_child_that_waits_for_its_image_has_all,
         many_forks_at_once_are_all_told, threads_tell_their_names,
         libraries_are_found_where_the_caller_looks, many_threads_do_not_hide_a_library, locks_of_the_driver_are_spared,
         locks_that_the_user_asks_for_are_seen, timer_samples_tell_the_split,
         a_program_with_its_own_sigprof_is_left_alone, who_waits_for_sigprof_gets_what_was_sent, gil_waits_add_up, a_static_program_is_unaffected,
         *(runner.named(name + "_is_unaffected", check_ordinary, name) for name in ORDINARY)]

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
