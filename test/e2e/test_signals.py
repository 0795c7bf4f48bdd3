#!/usr/bin/env python3
"""Signals, terminals and descriptors: what is meant for the program reaches it, and lull is in nobody's way.

Usage: test_signals.py BUILD [NAME...]
"""
import os
import pty
import re
import select
import signal
import shlex
import shutil
import subprocess
import sys
import time

import runner
from runner import expect, limit, until, until_file

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
CHEAP = ("-s", "none", "--cpuctxsw", "none", "--python-sampling=false", "-t", "nvtx", "-f", "true")


def usual():
    """What is started in the background of a shell ignores Ctrl-C, and under nohup the end of the terminal."""
    for s in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(s, signal.SIG_DFL)


def start(*words, options=("-q",), setup=usual, **how):
    return runner.start([LULL, "profile", *CHEAP, *options, "-o", "s", *words], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True, preexec_fn=setup, **how)


def end(p):
    out, err = runner.finish(p)
    return p.returncode, out, err


def until_read(pid, *signals):
    """Until none of these that were sent to the process waits to be looked at."""
    def pending():
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            return sum(int(word, 16) for word in re.findall(r"^(?:Shd|Sig)Pnd:\s+(\w+)$", f.read(), re.M))

    until(lambda: not any(pending() >> (s - 1) & 1 for s in signals), f"{pid} reads {signals}")


# It says which signals come, and ends with the last one.
LISTENER = """
import signal, sys, time
seen = []
for name in sys.argv[1].split(","):
    signal.signal(getattr(signal, name), lambda s, f: seen.append(signal.Signals(s).name))
open("ready", "w").close()
while len(seen) < int(sys.argv[2]):
    time.sleep(0.01)
    open("n-%d" % len(seen), "w").close()
print(*seen)
"""


def listen(names, n, **how):
    for name in os.listdir("."):
        if name == "ready" or name.startswith("n-"):
            os.unlink(name)
    p = start(sys.executable, "-c", LISTENER, names, str(n), **how)
    until_file("ready")
    return p


def what_lull_is_sent_reaches_the_program():
    names = ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGXCPU", "SIGRTMIN"]
    p = listen(",".join(names), len(names))
    for i, name in enumerate(names):
        until_file(f"n-{i}")
        p.send_signal(getattr(signal, name))
    status, out, err = end(p)
    expect("signals", status == 0 and out.split() == names, (status, out, err))


def what_is_for_the_group_comes_once():
    """Many times: a second one may come so soon that the kernel makes one of both."""
    sent = [(os.killpg, signal.SIGUSR1)] * 20 + [(os.killpg, signal.SIGINT), (os.kill, signal.SIGINT), (os.killpg, signal.SIGTERM)]
    p = listen("SIGUSR1,SIGINT,SIGTERM", len(sent))
    for i, (send, s) in enumerate(sent):
        until_file(f"n-{i}")
        until_read(p.pid, s)
        time.sleep(0.05)  # a second one would come now
        send(p.pid, s)
    status, out, err = end(p)
    expect("each once", status == 0 and out.split() == [s.name for _, s in sent], (status, out, err))


def witness_of(pid):
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{other}/stat", encoding="utf-8", errors="replace") as f:
                name, _, rest = f.read().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended
        if name == "lull-witness" and int(rest.split()[1]) == pid:
            return int(other)
    return None


ANSWER_S = 5  # lull waits for the witness so long, and then hands the signal on (src/record/session/witness.c)


def it_comes_once_on_a_busy_machine():
    """The witness does not get to run for a while, and two signals are one for it then."""
    p = listen("SIGUSR1,SIGTERM", 4)
    witness = until(lambda: witness_of(p.pid), "the witness has its name")
    os.kill(witness, signal.SIGSTOP)
    begin = time.monotonic()
    for i in range(1, 3):
        os.killpg(p.pid, signal.SIGUSR1)
        until_file(f"n-{i}")
        time.sleep(0.05)  # lull has read it and asks
    os.kill(witness, signal.SIGCONT)
    if time.monotonic() - begin > ANSWER_S - 1:
        runner.skip("the machine stood still for as long as lull waits for its witness")
    until_read(witness, signal.SIGUSR1)
    until_read(p.pid, signal.SIGUSR1)
    time.sleep(0.3)  # lull has heard the answers
    for i, s in ((3, signal.SIGUSR1), (4, signal.SIGTERM)):
        p.send_signal(s)
        until_file(f"n-{i}")
    status, out, err = end(p)
    expect("each once", status == 0 and out.split() == ["SIGUSR1"] * 3 + ["SIGTERM"], (status, out, err))


def the_program_alone_gets_it():
    """Its worker goes on until the program has got it."""
    p = start("sh", "-c", "trap 'echo told; touch got' TERM; sh -c 'while [ ! -e got ]; do sleep 0.05; done; echo worker ends' & "
              "touch told; while ! wait $!; do :; done; echo end")
    until_file("told")
    p.send_signal(signal.SIGTERM)
    status, out, err = end(p)
    expect("the worker", status == 0 and out == "told\nworker ends\nend\n", (status, out, err))


def what_the_program_sends_its_parent():
    """It says that it is ready; the parent would be who started lull."""
    parent = "trap 'echo ready' USR1; trap 'echo done' TERM; \"$@\"; echo status $?"
    command = [LULL, "profile", "-q", *CHEAP, "-o", "s", "sh", "-c", "kill -USR1 $PPID; kill -TERM $PPID; echo here; exit 4"]
    done = runner.run(["sh", "-c", parent, "sh", *command], preexec_fn=usual)
    expect("both are told", sorted(done.stdout.splitlines()) == ["done", "here", "ready", "status 4"], done)


def what_was_ignored_stays_so():
    def deaf():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)

    p = start("sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.05; done; exit 5", setup=deaf)
    until_file("begun")
    for s in (signal.SIGINT, signal.SIGUSR2, signal.SIGINT, signal.SIGINT):
        p.send_signal(s)
        time.sleep(0.05)
    open("go", "w").close()
    status, out, err = end(p)
    expect("nothing happens", status == 5, (status, out, err))


class Terminal:
    """A program on a terminal of its own; `shown` is all that came there."""

    def __init__(self, *command):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            usual()
            os.execvp(command[0], command)

    def read(self, until=None):
        """Until this is shown, or all has ended."""
        deadline = time.monotonic() + limit(120)
        while until is None or until not in self.shown:
            left = deadline - time.monotonic()
            if left <= 0:
                os.kill(self.pid, signal.SIGKILL)
                os.close(self.fd)  # a terminal that closes ends what is left on it
                raise AssertionError(f"{until!r} is not shown: {self.shown[-2000:]!r}")
            if not select.select([self.fd], [], [], left)[0]:
                continue
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                more = b""
            if not more:
                break
            self.shown += more.decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        self.read()
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


def profile_on_terminal(*words, options=()):
    return Terminal(LULL, "profile", *CHEAP, *options, "-o", "tty", *words)


CHECKPOINTS = """
import os, signal, time
n = 0
def on(s, f):
    global n
    n += 1
    os.write(1, b"checkpoint %d\\n" % n)
signal.signal(signal.SIGINT, on)
print("ready", flush=True)
while n < 4:
    time.sleep(0.01)
print("normal end", flush=True)
"""


def ctrl_c_is_the_programs():
    t = profile_on_terminal(sys.executable, "-c", CHECKPOINTS)
    t.read("ready")
    for i in range(1, 5):
        t.type("\x03")
        t.read(f"checkpoint {i}")
        if i < 4:
            until_read(t.pid, signal.SIGINT)
            time.sleep(0.8)  # three within a second are an order to lull
    status = t.end()
    expect("four of them", status == 0 and "normal end" in t.shown, (status, t.shown))


def who_insists_gets_out():
    t = profile_on_terminal("sh", "-c", "trap '' INT; echo ready; sleep 1000 & wait; exit 1")
    t.read("ready")
    # Three within a second; on a machine that is slow it takes more of them.
    deadline = time.monotonic() + limit(120)
    while "tty.lull" not in t.shown and time.monotonic() < deadline:
        t.type("\x03")
        time.sleep(0.1)
        if select.select([t.fd], [], [], 0)[0]:
            t.shown += os.read(t.fd, 65536).decode(errors="replace")
    status = t.end()
    expect("it has been ended", status in (128 + signal.SIGTERM, 128 + signal.SIGKILL), (status, t.shown))
    expect("a report", "tty.lull" in t.shown, t.shown)


def the_screen_is_the_programs():
    t = profile_on_terminal("sh", "-c", "printf 'name? '; read name; echo hello $name")
    t.read("name? ")
    time.sleep(1.5)  # the line of progress begins after one
    t.type("you\n")
    status = t.end()
    expect("as without lull", status == 0 and t.shown.startswith("name? you\r\nhello you\r\n"), (status, t.shown))
    expect("nothing is erased", "\x1b" not in t.shown, t.shown)
    # What writes elsewhere leaves the screen to us.
    t = profile_on_terminal("sh", "-c", "exec >/dev/null 2>&1; while [ ! -e shown ]; do sleep 0.1; done")
    t.read("lull: ")
    open("shown", "w").close()
    status = t.end()
    expect("a line of progress", status == 0 and re.search(r"\rlull: \d+\.\d+ s  ", t.shown.replace("\x1b[K", "")), t.shown)


def the_background_is_quiet():
    if not shutil.which("bash"):
        runner.skip("no bash here")
    line = shlex.join([LULL, "profile", *CHEAP, "-o", "tty", "sh", "-c", "exec >/dev/null 2>&1; sleep 1.5"])
    t = Terminal("bash", "--norc", "-i", "-c", f"set -m; stty tostop; {line} & sleep 0.1; wait %1; echo status $?")
    status = t.end()
    expect("it ends", status == 0 and "status 0" in t.shown and "tty.lull" in t.shown, (status, t.shown))
    expect("no line of progress", "\x1b[Klull" not in t.shown, t.shown)


def a_program_that_stops_itself_gives_the_terminal_back():
    if not shutil.which("bash"):
        runner.skip("no bash here")
    t = Terminal("bash", "--norc", "--noediting", "-i")
    t.type("PS1='pro''mpt '\n")
    t.read("prompt ")
    for signum in ("TSTP", "STOP", "TTOU"):
        t.shown = ""
        line = shlex.join([LULL, "profile", "-q", *CHEAP, "-o", "tty", "sh", "-c", f"kill -{signum} $$; echo ba''ck"])
        t.type(f"{line}\n")
        t.read("Stopped")
        t.read("prompt ")
        t.type("fg; echo status $?\n")
        t.read("\nback")
        t.read("status 0")
        t.read("prompt ")
    # Ctrl-Z, with which both are stopped.
    t.shown = ""
    t.type(shlex.join([LULL, "profile", "-q", *CHEAP, "-o", "tty", "sh", "-c", "while read x; do echo got $x; done"]) + "\n")
    for i in range(3):
        t.type(f"{i}\n")
        t.read(f"got {i}")
        t.shown = ""
        t.type("\x1a")
        t.read("Stopped")
        t.read("prompt ")
        t.type("fg\n")
    t.type("last\n")
    t.read("got last")
    t.type("\x04")
    t.read("prompt ")
    t.type("exit\n")
    t.end()


CATCHER = """
import os, signal
signal.signal(signal.SIGTSTP, lambda s, f: os.write(1, b"cau" + b"ght\\n"))
os.write(1, b"rea" + b"dy\\n")
print("got", input())
"""


def a_program_that_catches_ctrl_z_keeps_the_terminal():
    if not shutil.which("bash"):
        runner.skip("no bash here")
    t = Terminal("bash", "--norc", "--noediting", "-i")
    with open("catcher.py", "w", encoding="ascii") as f:
        f.write(CATCHER)
    t.type(shlex.join([LULL, "profile", "-q", *CHEAP, "-o", "tty", sys.executable, "catcher.py"]) + "\n")
    t.read("ready")
    for _ in range(2):
        t.shown = ""
        t.type("\x1a")
        t.read("caught")
    t.type("a line\n")
    t.read("got a line")
    t.type("exit\n")
    t.end()
    expect("nobody was stopped", "Stopped" not in t.shown, t.shown)


def what_stops_lull_stops_the_program():
    if not shutil.which("bash"):
        runner.skip("no bash here")
    t = Terminal("bash", "--norc", "--noediting", "-i")
    program = "echo pid $$ of $PPID end; while [ ! -e go ]; do sleep 0.05; done; exit 4"
    t.type(shlex.join([LULL, "profile", "-q", *CHEAP, "-o", "tty", "sh", "-c", program]) + "\n")
    t.read("end\r\n")
    found = re.search(r"pid (\d+) of (\d+) end\r\n", t.shown)
    os.kill(int(found[2]), signal.SIGTSTP)
    t.read("Stopped")
    with open(f"/proc/{found[1]}/stat", encoding="ascii") as f:
        state = f.read().rpartition(")")[2].split()[0]
    expect("both are stopped", state == "T", state)
    open("go", "w").close()
    t.type("fg; echo status $?\n")
    t.read("status 4")
    t.type("exit\n")
    t.end()


def a_stop_is_seen_and_ends_for_both():
    for other in (False, True):
        if os.path.exists("ready"):
            os.unlink("ready")
        p = start("sh", "-c", "echo $$ >pid; mv pid ready; kill -STOP $$; echo back; exit 4")
        until_file("ready")
        info = os.waitid(os.P_PID, p.pid, os.WSTOPPED)
        expect("lull is stopped", info.si_status == signal.SIGSTOP, info)
        with open("ready", encoding="ascii") as f:
            os.kill(int(f.read()) if other else p.pid, signal.SIGCONT)
        status, out, err = end(p)
        expect("it goes on", status == 4 and out == "back\n", (status, out, err))
    # Ended while it is stopped.
    os.unlink("ready")
    p = start("sh", "-c", "echo $$ >pid; mv pid ready; kill -STOP $$")
    until_file("ready")
    os.waitid(os.P_PID, p.pid, os.WSTOPPED)
    with open("ready", encoding="ascii") as f:
        os.kill(int(f.read()), signal.SIGKILL)
    status, out, err = end(p)
    expect("it has ended", status == 128 + signal.SIGKILL, (status, out, err))


def a_wait_is_told_and_can_be_ended():
    t = profile_on_terminal("sh", "-c", "sleep 1000 & echo pid $! end; exit 3")
    t.read("Ctrl-C ends")
    expect("how many", "waiting for 1 process that it started" in t.shown, t.shown)
    t.type("\x03")
    status = t.end()
    expect("the report", status == 3 and "tty.lull" in t.shown, (status, t.shown))
    # sh lets what it starts in the background ignore Ctrl-C: it goes on, as it does without lull. (Where the terminal
    # that closes has ended it, there is nothing to end.)
    try:
        os.kill(int(re.search(r"pid (\d+) end", t.shown)[1]), signal.SIGKILL)
    except ProcessLookupError:
        pass


def nothing_of_the_program_is_held_open():
    """Whoever waits for the end of a pipe hears of it when the program closes its end, not when it ends."""
    ready, theirs = os.pipe()
    p = runner.start([LULL, "profile", "-q", *CHEAP, "-o", "s", "sh", "-c", f"echo ready >&{theirs}; exec {theirs}>&- >&- <&-; "
                      "while [ ! -e close ]; do sleep 0.05; done; exit 6"],
                     pass_fds=[theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    os.close(theirs)
    expect("ready", read_all(ready) == b"ready\n")
    expect("standard output", read_all(p.stdout.fileno()) == b"")

    def is_closed():
        try:
            os.write(p.stdin.fileno(), b"x")
        except BrokenPipeError:
            return True
        return False

    until(is_closed, "standard input is not held")
    expect("the program goes on", p.poll() is None, p.returncode)
    open("close", "w").close()
    expect("status", p.wait(limit()) == 6, p.returncode)
    # What is printed after the run has its place.
    p = start("sh", "-c", "echo here; sleep 0.1", options=("-q", "-t", "osrt", "--stats=true"))
    status, out, err = end(p)
    expect("tables", status == 0 and out.startswith("here\n") and len(out) > 50, (status, out, err))


def read_all(fd):
    data = b""
    while True:
        expect("a pipe is closed", select.select([fd], [], [], limit())[0], data)
        more = os.read(fd, 4096)
        if not more:
            return data
        data += more


TESTS = (
    what_lull_is_sent_reaches_the_program,
    what_is_for_the_group_comes_once,
    it_comes_once_on_a_busy_machine,
    the_program_alone_gets_it,
    what_the_program_sends_its_parent,
    what_was_ignored_stays_so,
    ctrl_c_is_the_programs,
    who_insists_gets_out,
    a_program_that_stops_itself_gives_the_terminal_back,
    a_program_that_catches_ctrl_z_keeps_the_terminal,
    what_stops_lull_stops_the_program,
    a_stop_is_seen_and_ends_for_both,
    a_wait_is_told_and_can_be_ended,
    the_screen_is_the_programs,
    the_background_is_quiet,
    nothing_of_the_program_is_held_open,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
