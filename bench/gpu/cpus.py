"""CPUs of virtual machines, which share cores: which are quiet, and which are the halves of one core."""
import os
import shutil
import signal
import time

from piece import piece

FAST = 1.25  # a piece of work that takes longer than so many times the fastest had a neighbour,
SLOW = 1.5  # and one that takes so long had one all the time


def quiet_cpus():
    """All CPUs, those first on which a piece of work is seldom slowed down by neighbours; [] if there are few."""
    cpus, took = sorted(os.sched_getaffinity(0)), {}
    if len(cpus) < 16:
        return []
    for cpu in cpus * 3:
        os.sched_setaffinity(0, [cpu])
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            took.setdefault(cpu, []).append(piece())
    os.sched_setaffinity(0, cpus)
    limit = FAST * min(ms for times in took.values() for ms in times)
    slow = {cpu: sum(ms > limit for ms in times) / len(times) for cpu, times in took.items()}
    return sorted(cpus, key=slow.get)


def least_beside(cpu):
    """The least time of a piece of work here while `cpu` is busy, ms; None: while nothing is."""
    child = os.fork() if cpu is not None else 0
    if cpu is not None and child == 0:
        os.sched_setaffinity(0, [cpu])
        while True:
            piece()
    end, took = time.monotonic() + 0.06, []
    while time.monotonic() < end:
        took.append(piece())
    if child:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return min(took[len(took) // 3:])


def apart(cpus):
    """These without those that are the other half of the first one's core: a recorder there slows the loop by half.

    A scheduler that is free to choose takes an idle core; virtual machines do not tell which CPUs share one.
    """
    if not cpus:
        return []
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus[:1])
    alone = least_beside(None)
    halves = [cpu for cpu in cpus[1:] if least_beside(cpu) > FAST * alone]
    os.sched_setaffinity(0, everywhere)
    return [cpu for cpu in cpus if cpu not in halves] if len(halves) < len(cpus) // 4 else cpus


def pinned(cpus):
    return ["taskset", "-c", ",".join(map(str, cpus))] if cpus and shutil.which("taskset") else []
