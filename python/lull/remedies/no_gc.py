"""no-gc: Python's garbage collector stays out of the loop

causes: gc, host-compute, gil
exact: yes
asks: yes
write: gc.freeze() before the loop; no gc.collect() in it
"""
import gc

SELDOM = 100_000  # new objects between collections


def apply(trial):
    original = gc.collect

    def collect(*args):
        if len(trial.times) < 2:
            return original(*args)
        trial.where("no-gc", "remove it from the loop")
        return 0

    def change():
        if len(trial.times) == 2 and trial.changes("no-gc"):
            original()
            gc.freeze()
            gc.set_threshold(SELDOM, 50, 1000)
            gc.collect = collect
            trial.did("no-gc")
    trial.each_step.append(change)
