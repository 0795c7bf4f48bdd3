"""How lull.profile() records a part of this program: through the session it was started in, or by `lull attach`.

What it starts is the command beside this package. While it waits, it sleeps in short naps: the agent enters and leaves an
interpreter between two instructions of its main thread, which may be this one.
"""
from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import threading
import time
from glob import glob

import lull

from ._library import RecordError, command

# Of prctl(2): who may trace this process, where the kernel lets only parents do so (Yama).
PR_SET_PTRACER = 0x59616D61
NAP_S = 0.005
# The hooks come with the next instruction of the main thread. If it is another one, it may wait for something for long.
HOOKS_S, HOOKS_ELSEWHERE_S = 5.0, 0.2
# A program must not wait for its recorder for ever: for an answer, and until it has begun or ended.
ANSWER_S, CHANGE_S = 10.0, 60.0


def ask(folder: str, request: str) -> str:
    """One line to the recorder whose session has this folder, one line back; OSError if nobody is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(ANSWER_S)
        s.connect(os.path.join(folder, "socket"))
        s.send(request.encode("utf-8", "surrogateescape"))
        word, _, text = s.recv(8192).decode("utf-8", "surrogateescape").partition(" ")
    if word != "ok":
        raise RecordError(f"lull.profile: {text.strip()}")
    return text.strip()


def await_hooks(are_in: bool) -> None:
    """Give the agent the moment in which it puts its hooks in, or takes them out (_attach.py)."""
    is_main = threading.current_thread() is threading.main_thread()
    until = time.monotonic() + (HOOKS_S if is_main else HOOKS_ELSEWHERE_S)
    while (lull._agent is not None) != are_in and time.monotonic() < until:
        time.sleep(NAP_S)


class Session:
    """`lull launch` has started this program: its recorder is asked as `lull start` and `lull stop` ask it."""

    @staticmethod
    def _ask(request: str) -> str:
        try:
            return ask(os.environ["LULL_SESSION"], request)
        except OSError as error:
            raise RecordError(f"lull.profile: the recorder of this program does not answer: {error}") from None

    def start(self, output: str | None) -> str:
        return self._ask("start " + output if output else "start")

    def stop(self) -> str:
        return self._ask("stop")


class Attached:
    """This program was started without lull: `lull attach` records it from outside, as a child of it."""

    def __init__(self) -> None:
        self.lull = command()
        self.path = ""

    def start(self, output: str | None) -> str:
        was_in = lull._agent is not None
        words = [self.lull, "attach", "-q", *(["-o", output] if output else []), str(os.getpid())]
        # It waits until it may trace us. Ctrl-C is for the program, which ends the recording, too.
        self.child = subprocess.Popen(["/bin/sh", "-c", 'read -r go && exec "$@"', "sh", *words], stdin=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(self.child.pid), 0, 0, 0)
        assert self.child.stdin is not None
        self.child.stdin.write(b"go\n")
        self.child.stdin.close()
        try:
            self._until_recording()
        except BaseException:
            self._end()
            await_hooks(was_in)  # it may have come in before it saw that it cannot record
            raise
        return self.path

    def _ask(self, request: str) -> str:
        """Its session, "" if that does not answer; folders are named by user and recorder (src/record/session/session.c)."""
        places = ("/dev/shm", os.environ.get("TMPDIR") or "/tmp", "/tmp")
        for folder in (path for place in places for path in glob(f"{place}/lull-*-{self.child.pid}-*")):
            try:
                return ask(folder, request) or "yes"
            except OSError:
                pass  # not yet, or no more
        return ""

    def _until_recording(self) -> None:
        before, status, until = "recording to ", "", time.monotonic() + CHANGE_S
        while not status.startswith(before):
            if self.child.poll() is not None:
                raise RecordError(f"lull.profile: {self._said()}")
            if time.monotonic() > until:
                raise RecordError(f"lull.profile: the recorder has not begun in {CHANGE_S:.0f} s ({status or 'no answer'})")
            time.sleep(NAP_S)
            status = self._ask("status")
        self.path = os.path.abspath(status[len(before):].rsplit(": ", 1)[0])
        await_hooks(True)

    def _said(self) -> str:
        """Its last sentence, without the name of the command."""
        assert self.child.stderr is not None
        lines = self.child.stderr.read().decode("utf-8", "replace").strip().splitlines()
        text = lines[-1] if lines else f"lull attach ended with status {self.child.returncode}"
        return text[len("lull attach: "):] if text.startswith("lull attach: ") else text

    def _end(self) -> None:
        # Not by a signal alone: what is started in the background by a script may ignore Ctrl-C, and so do its children.
        if self.child.poll() is None and not self._ask("detach"):
            self.child.terminate()
        until = time.monotonic() + CHANGE_S
        while self.child.poll() is None:
            # What it has written can be read, and the agent leaves by itself when its recorder is gone.
            if time.monotonic() > until:
                self.child.kill()
            time.sleep(NAP_S)

    def stop(self) -> str:
        self._end()
        if self.child.returncode < 0:
            raise RecordError(f"lull.profile: the recorder did not end; `lull recover` reads what it wrote to {self.path}")
        if self.child.returncode:
            raise RecordError(f"lull.profile: {self._said()}")
        await_hooks(False)
        return self.path


def open_part() -> Session | Attached:
    """By whom this program can be recorded."""
    return Session() if "LULL_SESSION" in os.environ and "_lull" in sys.modules else Attached()
