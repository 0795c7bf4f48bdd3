"""A fixed piece of work, of the kind that Python programs are made of: how fast is this CPU just now?"""
import time


def piece():
    """Milliseconds."""
    begin, table = time.perf_counter(), {}
    for i in range(400):
        table[i & 255] = str(i) + "x"
    return (time.perf_counter() - begin) * 1e3
