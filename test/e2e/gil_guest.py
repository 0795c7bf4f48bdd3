"""Three threads that want the interpreter lock all the time; prints what the report must add up to."""
import threading
import time

SECONDS = 1.5
lines = []


def run_delay_ns():
    """Time this thread was ready to run but had no CPU."""
    with open("/proc/thread-self/schedstat") as f:
        return int(f.read().split()[1])


def busy():
    begin, delay, x = time.monotonic(), run_delay_ns(), 0
    while time.monotonic() < begin + SECONDS:
        x += 1
    lines.append((time.monotonic() - begin, time.thread_time(), (run_delay_ns() - delay) / 1e9))


threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for wall, cpu, delay in lines:
    print("thread", wall, cpu, delay)
