#!/usr/bin/env python3
"""lull attach where something is short or strange: memory, disk, clocks, a recorder that sleeps, an update of lull, and programs
as people write them.

Usage: test_attach_places.py BUILD [NAME...]
"""
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types

import runner
from runner import expect, run, skip, until
from test_attach import (BUILD, CALM, LULL, attach, attach_until, compiled, end, guest, is_left, is_recording, maps, need_attach,
                         rows, said, threads, until_recording, words_of)

MIB = 1 << 20

# A thread works now and then, another one waits for it; no memory is taken after the start.
WORKS = """#include <pthread.h>
#include <unistd.h>
static volatile unsigned long n;
static void *work(void *unused)
{
	for (;;) {
		for (int i = 0; i < 1000; i++)
			n += (unsigned long)i;
		usleep(1000);
	}
	return unused;
}
int main(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, work, 0);
	for (;;)
		usleep(2000);
}
"""


def works():
    p = compiled("works", WORKS, "-lpthread")
    until(lambda: len(os.listdir(f"/proc/{p.pid}/task")) == 2, "it has its thread")
    return p


def query(text):
    return json.loads(run([LULL, "query", "-f", "json", "a.lull", text], check=True).stdout or "[]")


def goes_on(p):
    """It has used the CPU since, and has nothing of ours."""
    until(lambda: is_left(p), "the agent leaves")

    def switches():
        with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])

    before = switches()
    until(lambda: switches() > before + 5, "it goes on")
    ours = [[int(x, 16) for x in m.split()[0].split("-")] for m in maps(p) if "liblull-agent" in m]
    left = [w for w in words_of(p, "/works") for first, last in ours if first <= w < last]
    expect("no entry of ours", not left, left)


def works_as_before(p):
    goes_on(p)
    r, _ = attach_until(p, lambda: rows("oscall"), ms=100)
    expect("attached as usual", rows("oscall") > 0, r.stderr)
    goes_on(p)


def a_program_without_memory_goes_on():
    """Address space is limited to what it has and a little more: at each step of ours there is too little once."""
    p = works()
    ends = []
    for more in (0, 1, 4, 9, 12, 40, 300):
        with open(f"/proc/{p.pid}/statm", encoding="ascii") as f:
            now = int(f.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.prlimit(p.pid, resource.RLIMIT_AS, (now + more * MIB, resource.RLIM_INFINITY))
        r = attach(p, "-d", "50ms", "-q")
        expect(f"with {more} MiB", r.returncode in (0, 1) and r.stderr.count("\n") == r.returncode, (r.returncode, r.stderr))
        ends.append(r.returncode)
        goes_on(p)
    expect("both were seen", ends[0] == 1 and ends[-1] == 0, ends)
    resource.prlimit(p.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    works_as_before(p)


# Its children call what the agent records before the agent knows that they are children.
FORKS = """#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t is_over;
static void on_term(int signal)
{
	is_over = signal;
}
static void in_child(void)
{
	usleep(10);
}
int main(void)
{
	int n = 0, n_died = 0, status;
	FILE *f;

	signal(SIGTERM, on_term);
	pthread_atfork(0, 0, in_child);
	for (; !is_over; n++) {
		pid_t child = fork();

		if (!child) {
			usleep(1000);
			exit(0);
		}
		while (waitpid(child, &status, 0) < 0)
			;
		n_died += status != 0;
	}
	f = fopen("children", "w");
	fprintf(f, "%d %d", n, n_died);
	return fclose(f);
}
"""


def children_whose_own_handlers_come_first_live():
    """A handler of fork() that is older than the agent runs before the agent's, as in every child of Node.js."""
    p = compiled("forks", FORKS)
    for _ in range(3):
        r, _ = attach_until(p, lambda: query(f"SELECT count(*) AS n FROM process WHERE parent_pid = {p.pid}")[0]["n"] > 3, ms=100)
        expect("attached, with its children", query("SELECT count(*) AS n FROM process WHERE parent_pid = pid") == [{"n": 0}], r.stderr)
        until(lambda: is_left(p), "the agent leaves")
    p.terminate()
    p.wait()
    with open("children", encoding="ascii") as f:
        n, died = map(int, f.read().split())
    expect("none died", died == 0 < n, (died, n))


def a_recorder_without_memory_leaves():
    p = works()
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    with open(f"/proc/{a.pid}/statm", encoding="ascii") as f:
        now = int(f.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.prlimit(a.pid, resource.RLIMIT_AS, (now, now))
    a.send_signal(signal.SIGINT)  # the end of a report takes memory
    _, err = runner.finish(a)
    expect("it says so, or has made its report", a.returncode == 0 or "out of memory" in err, (a.returncode, err))
    works_as_before(p)


def children_leave_nothing_after_the_recorder_was_killed():
    """A program that forks all the time must not fill memory with images that nobody reads."""
    p = runner.start([os.path.join(BUILD, "e2e/lively")], stdout=subprocess.DEVNULL)
    until(lambda: os.path.exists("ready"), "it is ready")
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.DEVNULL)
    until_recording(p)
    folder = os.path.dirname(next(m.split()[-1] for m in maps(p) if m.endswith("/control")))
    a.kill()
    a.wait()
    looks = []

    def is_the_same():
        """Nothing has come in the last ten looks."""
        looks.append(set(os.listdir(folder)))
        time.sleep(0.1)
        return len(looks) > 10 and looks[-1] <= looks[-11]

    until(is_the_same, "no image comes")
    shutil.rmtree(folder, ignore_errors=True)
    more = looks[-1] - looks[0]
    expect("no image came but of a child that was about to make one", len(more) <= 2, more)
    until(lambda: is_left(p), "the agent leaves")


def a_full_disk_harms_only_the_report():
    if run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]).returncode != 0:
        skip("no mounts here")
    p = works()
    os.makedirs("full", exist_ok=True)
    for ms in (300, 1200, 4800):  # until there is more than fits
        script = f"mount -t tmpfs -o size=16k none full && exec {shlex.quote(LULL)} attach -q -d {ms}ms -o full/a {p.pid}"
        r = run(["unshare", "-m", "sh", "-c", script])
        if r.returncode:
            break
    is_said = "No space left" in r.stderr and "events lost" in r.stderr
    expect("what is said", r.returncode == 1 and is_said, (r.returncode, r.stderr))
    works_as_before(p)


CLOCK = """#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) { return access("back", F_OK) == 0 ? 7200 : 0; }
int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);

	t->tv_sec -= clock == CLOCK_REALTIME ? shift() : 0;
	return (int)r;
}
time_t time(time_t *to)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (to)
		*to = t.tv_sec;
	return t.tv_sec;
}
int gettimeofday(struct timeval *to, void *zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*to = (struct timeval){ t.tv_sec, t.tv_nsec / 1000 };
	return 0;
}
"""


def a_clock_that_is_set_back_does_not_matter():
    """The time of day goes back by two hours for the recorder; no rights are needed for that if it is told so."""
    p = works()
    with open("clock.c", "w", encoding="ascii") as f:
        f.write(CLOCK)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "clock.so", "clock.c"], check=True)
    env = {**os.environ, "LD_PRELOAD": os.path.abspath("clock.so")}
    for seconds in (2, 8, 32):  # until the clock was set while it recorded, and the program ran after that
        a = runner.start([LULL, "attach", "-f", "-o", "a", "-d", f"{seconds}s", str(p.pid)], stderr=subprocess.PIPE, text=True,
                         env=env)
        until(lambda: is_recording(p) or a.poll() is not None, "it records")
        is_set_in_time = a.poll() is None
        open("back", "w").close()
        _, err = runner.finish(a)
        expect("it ends by itself", a.returncode == 0 and "none lost" in err, (a.returncode, err))
        times = query("select min(start_ns) as low, max(start_ns) as high, max(dur_ns) as dur from oscall")[0]
        os.unlink("back")
        if is_set_in_time and (times["high"] or 0) > 10**9:
            break
    expect("times", 0 <= times["low"] and 10**9 < times["high"] < 600 * 10**9 and times["dur"] < 600 * 10**9, times)
    goes_on(p)


def a_recorder_that_sleeps_goes_on():
    """As when a machine is suspended: longer than an agent waits for a sign of life."""
    p = works()
    a = runner.start([LULL, "attach", "-f", "-o", "a", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    a.send_signal(signal.SIGSTOP)
    time.sleep(6)
    expect("the agent waits for it", not is_left(p), threads(p))
    a.send_signal(signal.SIGCONT)
    r = run([LULL, "detach", str(p.pid)])
    expect("detached", r.returncode == 0, said(r))
    _, err = runner.finish(a)
    expect("the report", a.returncode == 0 and "none lost" in err, (a.returncode, err))
    found = query("select count(*) as n from oscall where start_ns between 2000000000 and 6000000000")
    expect("what was done meanwhile", found[0]["n"] > 10, found)
    works_as_before(p)


def another_build(folder):
    """lull as it is after an update: another agent, at another place."""
    os.makedirs(folder, exist_ok=True)
    shutil.copy(LULL, folder)
    with open(os.path.join(BUILD, "liblull-agent.so"), "rb") as f:
        text = bytearray(f.read())
    text[text.index(b"GNU\0") + 4] ^= 0xff  # the first byte of the build id
    with open(os.path.join(folder, "liblull-agent.so"), "wb") as f:
        f.write(text)
    return os.path.abspath(os.path.join(folder, "lull"))


def an_update_of_lull_finds_the_program():
    p = works()
    new = another_build("new")
    for lull in (LULL, new, LULL, new):
        r, _ = attach_until(p, lambda: rows("oscall"), "-q", ms=100, lull=lull)
        expect("attached", rows("oscall") > 0, r.stderr)
        goes_on(p)
    a = runner.start([LULL, "attach", "-f", "-o", "old", str(p.pid)], stderr=subprocess.PIPE, text=True)
    until_recording(p)
    r = run([new, "attach", "-d", "100ms", "-o", "n", "--session-new", "other", str(p.pid)])
    expect("not both at once", r.returncode == 1 and "is recorded by lull already" in r.stderr, (r.returncode, r.stderr))
    expect("by the new one", run([new, "detach", str(p.pid)]).returncode == 0)
    runner.finish(a)
    works_as_before(p)


def a_program_of_a_session_is_refused_by_another_build():
    new = another_build("new")
    p = runner.start([LULL, "profile", "-q", "-f", "true", "-o", "s", "sleep", "100"])
    inside = until(lambda: [c for c in runner.children(p.pid) if runner.program_of(c) == os.path.realpath(shutil.which("sleep"))], "it runs")[0]
    r = run([new, "attach", "-d", "100ms", "-o", "n", str(inside)])
    expect("the refusal", r.returncode == 1 and "is recorded by lull already" in r.stderr, (r.returncode, r.stderr))
    os.kill(inside, signal.SIGTERM)
    runner.finish(p)


def a_loop_without_system_calls_is_recorded():
    p = compiled("tight", "int main(void) { volatile unsigned long n = 0; for (;;) n++; }\n", "-O1")
    is_enough = lambda: rows("sched") > 0 or not runner.can(LULL, "switches")
    r, _ = attach_until(p, is_enough, ms=200)
    expect("when it ran", is_enough(), r.stderr)
    until(lambda: is_left(p) and p.poll() is None, "it goes on")


def a_program_that_blocks_all_signals_is_recorded():
    p = compiled("blocks", "#include <signal.h>\n#include <unistd.h>\nint main(void) { sigset_t all; sigfillset(&all); "
                           "sigprocmask(SIG_SETMASK, &all, 0); for (;;) pause(); }\n")

    def masks():
        """Blocked, ignored, caught; without those that the C library keeps for its threads."""
        with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
            return [int(m, 16) & ~(3 << 31) for m in re.findall(r"^Sig(?:Blk|Ign|Cgt):\s+(\w+)", f.read(), re.M)]

    until(lambda: masks()[0] >> 33 == (1 << 31) - 1, "its signals are blocked")
    before = masks()
    for _ in range(2):
        r = attach(p, "-d", "100ms")
        expect("the status", r.returncode == 0, r.stderr)
    until(lambda: is_left(p), "the agent leaves")
    expect("its signals are as they were", masks() == before and p.poll() is None, (before, masks()))


def the_shell_that_waits_for_us_is_recorded():
    r = run(["sh", "-c", f"{shlex.quote(LULL)} attach -f -o a -d 100ms $$; echo status $?; exit 4"])
    expect("it goes on", r.returncode == 4 and r.stdout == "status 0\n", (r.returncode, said(r)))
    r = run(["sh", "-c", f"exec {shlex.quote(LULL)} attach -d 100ms $$"])
    is_said = re.fullmatch(r"lull attach: process \d+ \(lull\) is lull itself\n", r.stderr)
    expect("but not lull itself", r.returncode == 1 and is_said, (r.returncode, r.stderr))


def the_first_process_of_a_container_is_recorded_from_inside():
    script = f"{shlex.quote(LULL)} attach -f -q -o a -d 100ms 1; echo status $?"
    if run(["unshare", "--pid", "--fork", "--mount-proc", "true"]).returncode != 0:
        skip("no namespaces here")
    r = run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script])
    expect("the status", r.returncode == 0 and r.stdout == "status 0\n", (r.returncode, said(r)))


# A loader with two processes that fetch, and one that consumes.
LOADER = CALM.replace("import os, sys, threading, time\n", """import multiprocessing, os, sys, threading, time
def fetch(queue):
    while True:
        queue.put(sum(range(2000)))
        time.sleep(0.002)
fetched = multiprocessing.get_context("fork").Queue(4)
for _ in range(2):
    multiprocessing.get_context("fork").Process(target=fetch, args=(fetched,), daemon=True).start()
""").replace("    n += 1\n", "    n += fetched.get() > 0\n", 1)


def a_loader_and_its_processes_are_recorded():
    p = guest(LOADER)
    children = until(lambda: len(runner.children(p.pid)) == 2 and runner.children(p.pid), "it has its children")

    def sampled():
        found = query("select distinct p.pid as pid from pysample s join lane l on l.id = s.lane "
                      "join process p on p.id = l.process")
        return {row["pid"] for row in found}

    for _ in range(2):
        r, _ = attach_until(p, lambda: {p.pid, *children} <= sampled(), "--tree", ms=500)
        expect("what is said", "none lost" in r.stderr, r.stderr)
        expect("Python stacks of each", {p.pid, *children} <= sampled(), (p.pid, children, sampled()))
    for child in children:
        until(lambda: is_left(types.SimpleNamespace(pid=child)), "the agent leaves the child")
    end(p)


TESTS = (
    a_program_without_memory_goes_on,
    a_recorder_without_memory_leaves,
    children_leave_nothing_after_the_recorder_was_killed,
    children_whose_own_handlers_come_first_live,
    a_full_disk_harms_only_the_report,
    a_clock_that_is_set_back_does_not_matter,
    a_recorder_that_sleeps_goes_on,
    an_update_of_lull_finds_the_program,
    a_program_of_a_session_is_refused_by_another_build,
    a_loop_without_system_calls_is_recorded,
    a_program_that_blocks_all_signals_is_recorded,
    the_shell_that_waits_for_us_is_recorded,
    the_first_process_of_a_container_is_recorded_from_inside,
    a_loader_and_its_processes_are_recorded,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:], before=need_attach)
