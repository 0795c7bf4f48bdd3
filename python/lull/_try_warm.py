"""Runs of `lull try` that share one `import torch`, which takes seconds and is the same in each of them.

The process stops where the import ends, and stays; each run is a fork of it. So that a forked run is what
a fresh one would be:

1. What comes before the fork is the program's own: its first lines and its own imports.
2. The process is not used once it has more than its memory to share: other threads, children, files that
   it opened, temporary files that the first run would remove, CUDA.
3. src/try/warm.h forks only runs with the same environment, and with remedies that need not be there
   before PyTorch is.

Messages go over the socket LULL_TRY_WARM:

    ready PID                       to lull: a run can be forked
    no                              to the process: go on, as if nothing had been asked
    run\\nFOLDER\\nNUMBERS\\nFILES     to the process: as LULL_TRY, LULL_TRY_STEPS and LULL_TRY_REMEDIES say it
    load NAME...                    to the process: modules that each run imports
    pid PID                         to lull: the run has started
    end STATUS KIB                  to lull: it has ended; wait status and peak memory

The process ends when the socket is closed.
"""
import os
import random
import select
import signal
import socket
import stat
import sys
import time
import warnings

PAUSE_S = 0.02
MOST_BYTES = 1 << 16

# Variables that PyTorch sets for itself.
OWN = ("CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")

# What runs of many programs import after PyTorch, and what takes long. Each optimizer imports the first one.
SLOW = ("torch._dynamo", "torchvision", "torchaudio")


def open_files():
    """Descriptors of this process, each with what it is."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass  # the folder itself
    return found


def is_harmless(fd):
    """Whether processes can share this descriptor: a file that is only read."""
    import fcntl
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        return is_file and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except OSError:
        return True


def has_children():
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children", encoding="ascii") as f:
            if f.read().strip():
                return True
    return False


def environment():
    return {name: value for name, value in os.environ.items() if name not in OWN}


def fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that threads may be lost is checked by reason()
        return os.fork()


class Warm:
    """The process that runs are forked from."""

    def __init__(self, trial, channel, load_remedies):
        self.trial = trial
        self.channel = channel
        self.load_remedies = load_remedies
        self.before = open_files()

    def reason(self):
        """Why more than memory would be shared with a fork; None if it would not."""
        try:
            if has_children():
                return "it has child processes"
            for fd, name in open_files().items():
                if self.before.get(fd) != name and not is_harmless(fd):
                    return f"it has opened {name}"
            if any(os.path.lexists(path) for path in self.trial.saves.own):
                return "it has made temporary files"
            # Threads of some libraries end before a fork and start again when they are needed, so one tells.
            pid = fork()
            if pid == 0:
                self.trial.real_exit(0)
            os.waitpid(pid, 0)
            n = len(os.listdir("/proc/self/task"))
            return None if n == 1 else f"it has {n} threads"
        except OSError as e:
            return str(e)

    def at_import(self, module):
        """torch is loaded, and all but the remedies have put their hooks in."""
        if self.channel is None:
            return
        import threading
        is_main = threading.current_thread() is threading.main_thread()
        reason = self.reason() if is_main else "another thread imports PyTorch"
        if reason:
            self.trial.write(f"f {reason}")
            self.leave()
            return
        # The socket is closed if lull has ended, and then so does this.
        self.channel.send(f"ready {os.getpid()}".encode())
        while True:
            words = self.channel.recv(MOST_BYTES).decode()
            if words == "no":
                self.leave()
                return
            if words.startswith("load "):
                self.load(words.split()[1:])
            elif words.startswith("run\n"):
                if self.run(*words.split("\n")[1:]):
                    return
            else:
                self.trial.real_exit(0)

    def leave(self):
        self.channel.close()
        self.channel = None

    def load(self, names):
        import importlib
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:
                self.trial.real_exit(1)
        if self.reason():
            self.trial.real_exit(1)

    def run(self, folder, numbers, files):
        """Fork a run. True in the run itself."""
        sys.stdout.flush()
        sys.stderr.flush()
        numbers_to_come = random.getstate()  # Python gives a fork others
        pid = fork()
        if pid == 0:
            random.setstate(numbers_to_come)
            os.setpgid(0, 0)
            self.leave()
            self.become(folder, numbers, files)
            return True
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # it has done so itself
        self.channel.send(f"pid {pid}".encode())
        while True:
            ended, status, use = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            if select.select([self.channel], [], [], PAUSE_S)[0]:
                # Nothing is sent during a run: lull has ended.
                os.killpg(pid, signal.SIGKILL)
                self.trial.real_exit(1)
        self.channel.send(f"end {status} {use.ru_maxrss}".encode())
        return False

    def become(self, folder, numbers, files):
        for fd, name in ((1, "stdout"), (2, "stderr")):
            to = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.dup2(to, fd)
            os.close(to)
        os.environ.update({"LULL_TRY": folder, "LULL_TRY_STEPS": numbers, "LULL_TRY_REMEDIES": files})
        self.environ = environment()
        if self.trial.fd is not None:
            os.close(self.trial.fd)
        self.trial.is_forked = True
        self.trial.begin_run(folder, [int(n) for n in numbers.split(",")])
        self.trial.write(f"a {time.monotonic_ns()}")
        self.trial.before_end.append(self.tell_imports)
        self.load_remedies(self.trial)

    def tell_imports(self):
        """Say what a run imports besides, unless the program changes the environment first: modules read it."""
        if not os.environ.get("LULL_TRY_REMEDIES") and environment() == self.environ:
            names = [name for name in SLOW if name in sys.modules]
            if names:
                self.trial.once("i " + " ".join(names))


def begin(trial, load_remedies):
    """Let `import torch` be the last thing that runs share. False: this is an ordinary run."""
    fd = int(os.environ.pop("LULL_TRY_WARM"))
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
    except OSError:
        return False
    os.set_inheritable(fd, False)
    warm = Warm(trial, socket.socket(fileno=fd), load_remedies)
    trial.when_loaded("torch", warm.at_import)
    return True
