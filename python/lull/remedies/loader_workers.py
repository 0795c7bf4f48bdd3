"""loader-workers: batches are loaded by other processes, ahead of the step, into pinned memory

causes: input-pipeline, storage-read, network-read, host-compute, gil
group: loader
tolerance: 0.05 because random numbers of the data set come in another order
asks: yes
write: DataLoader(num_workers=N, prefetch_factor=4, persistent_workers=True, pin_memory=True), .to(device, non_blocking=True)

Arguments are raised, never lowered. Batches are pinned by a thread of their own where the program does not say otherwise,
and then copied without waiting. An IterableDataset without workers stays as it is: with workers
each of them would yield all of its data.
"""
import functools
import os

MOST = 8  # more workers than this rarely help one device


def apply(trial):
    has_pinned = []  # something in it: a loader pins its batches because of this

    def patch(module):
        original = module.DataLoader.__init__
        iterable = getattr(module, "IterableDataset", ())

        @functools.wraps(original)
        def __init__(self, dataset, *args, **kwargs):
            # Positions: batch_size, shuffle, sampler, batch_sampler, num_workers.
            given = args[4] if len(args) > 4 else kwargs.get("num_workers", 0)
            wanted = min(MOST, max(2, len(os.sched_getaffinity(0)) - 1))
            if (len(args) <= 4 and given < wanted and (given or not isinstance(dataset, iterable))
                    and trial.changes("loader-workers")):
                more = {"num_workers": wanted, "prefetch_factor": max(4, kwargs.get("prefetch_factor") or 0),
                        "persistent_workers": True}
                if "pin_memory" not in kwargs and has_device():
                    more["pin_memory"] = True
                    has_pinned.append(True)
                trial.add_arguments("loader-workers", ("DataLoader",), more)
                trial.did("loader-workers")
                kwargs.update(more)
            original(self, dataset, *args, **kwargs)
        module.DataLoader.__init__ = __init__
    trial.when_loaded("torch.utils.data.dataloader", patch)
    trial.when_loaded("torch", lambda torch: pinned(trial).copies(trial, torch, "loader-workers", has_pinned))


def has_device():
    import torch
    return torch.cuda.is_available()


def pinned(trial):
    """The remedy for batches in pinned memory, which is in the file beside this one."""
    return trial.hooks._load("_lull_loader_pinned", os.path.join("remedies", "loader_pinned.py"))
