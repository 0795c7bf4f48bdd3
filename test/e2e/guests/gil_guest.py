"""Three threads that want the interpreter lock all the time; prints what the report must add up to.

A line for each: its number, from when to when by CLOCK_MONOTONIC in ns, and how long it ran, and was ready to run but had
no CPU, meanwhile. The last two are read around the first two, so that they are not too short.
"""
import threading
import time

SECONDS = 0.7
lines = []


def run_delay_ns():
    """Time this thread was ready to run but had no CPU; None where the kernel does not say."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as f:
            return int(f.read().split()[1])
    except OSError:
        return None


def busy():
    delay, cpu = run_delay_ns(), time.thread_time_ns()
    begin, x = time.monotonic_ns(), 0
    while time.monotonic_ns() < begin + SECONDS * 1e9:
        x += 1
    end = time.monotonic_ns()
    cpu, later = time.thread_time_ns() - cpu, run_delay_ns()
    lines.append((threading.get_native_id(), begin, end, cpu, "?" if delay is None else later - delay))


threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for line in lines:
    print("thread", *line)
