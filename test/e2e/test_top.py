#!/usr/bin/env python3
"""`lull top`: what a session and the devices did in the last second, on the simulated device.

Usage: test_top.py BUILD [NAME...]

How much that was depends on the machine: only what has to be there, and how numbers fit each other, is looked at.
"""
import os
import re
import signal
import subprocess
import sys

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.abspath(os.environ.get("LULL", os.path.join(BUILD, "lull")))
TRAIN = os.path.join(BUILD, "examples/train_cuda")
SESSION = f"top-{os.getpid()}"
SIM = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "sim"), LC_ALL="C.UTF-8", NO_COLOR="1")
NO_DRIVER = dict(os.environ, LULL_NVML_PATH="/nonexistent/libnvidia-ml.so.1")


def top(*words, env=SIM):
    return subprocess.run([LULL, "top", *words], env=env, capture_output=True, text=True, timeout=runner.limit())


def session(*options):
    """A program that trains until it is told to end, and its recorder."""
    p = runner.start([LULL, "profile", "-q", "-t", "cuda,nvtx", f"--session-new={SESSION}", "-o", "r.lull", *options, TRAIN, "--steps=1000000"],
                     env=SIM, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return p, frame(SESSION)


def frame(word):
    """What is said of a second in which a step ended: on a busy machine that is not each one."""
    said = []

    def has_step():
        said.append(top("--once", word))
        return re.search(r"^step .* busy \d+ %$", said[-1].stdout, re.M | re.S)

    runner.until(has_step, "a step ended while the device had work")
    return said[-1]


def end(p):
    [guest] = [pid for pid in runner.children(p.pid) if runner.program_of(pid) == os.path.realpath(TRAIN)]
    os.kill(guest, signal.SIGTERM)
    runner.finish(p)
    return guest


def percents(text):
    return [int(n) for n in re.findall(r"(\d+) %", text)]


def one_frame_of_a_session():
    p, said = session()
    runner.expect("status", said.returncode == 0, said)
    lines = said.stdout.splitlines()
    runner.expect("session", re.match(rf"{SESSION}, process \d+, .* s: recording, [\d,]+ events$", lines[0]), lines)
    runner.expect("steps", re.match(r"step [\d.]+ (us|ms|s) on average, .* the last, .* a second$", lines[1]), lines)
    runner.expect("launches", re.match(r"[\d.]+( k| M)? launches a second$", lines[2]), lines)
    device = said.stdout[said.stdout.index("device 0 of process"):said.stdout.index("GPU 0 ")]
    runner.expect("busy and idle are all of the time", 93 <= sum(percents(device)) <= 104, device)
    runner.expect("the device", re.search(r"GPU 0 Simulated GPU: SM active \d+ %, .*power \d+ of 700\s+W,\s+memory", said.stdout), said.stdout)
    pid = re.search(r"process (\d+),", lines[0]).group(1)
    by_pid = frame(pid)
    runner.expect("the same by the process", by_pid.stdout.startswith(f"{SESSION}, process {pid},"), by_pid)
    end(p)


def it_goes_on_until_the_session_ends():
    p, _ = session()
    watcher = runner.start([LULL, "top", SESSION], env=SIM, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2):
        line = ""
        while not line.startswith(SESSION):
            line = watcher.stdout.readline()
    end(p)
    out, err = watcher.communicate(timeout=runner.limit())
    runner.expect("the end", (watcher.returncode, err) == (0, "") and out.endswith("the session has ended\n"), (watcher.returncode, out, err))


def what_is_not_there_is_said_in_a_sentence():
    said = top("--once", "no-such-session")
    runner.expect("session", (said.returncode, said.stdout) == (1, "") and "no session or program 'no-such-session'" in said.stderr, said)
    said = top("--once", "a", "b")
    runner.expect("words", said.returncode == 2, said)
    if "LULL_TEST_APART" in os.environ:  # else sessions of others come and go
        said = top("--once", env=NO_DRIVER)
        runner.expect("nothing", said.returncode == 1 and len(said.stderr.splitlines()) == 1 and
                      "no session is running, and the devices cannot be asked" in said.stderr, said)


if __name__ == "__main__":
    runner.main([one_frame_of_a_session, it_goes_on_until_the_session_ends, what_is_not_there_is_said_in_a_sentence], sys.argv[2:])
