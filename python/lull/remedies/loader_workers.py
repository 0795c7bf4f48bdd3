"""loader-workers: batches are loaded by other processes, ahead of the step

causes: input-pipeline, storage-read, network-read, host-compute, gil
tolerance: 0.05 because random numbers of the data set come in another order
asks: yes
write: DataLoader(num_workers=N, prefetch_factor=4, persistent_workers=True)

Arguments are raised, never lowered. An IterableDataset without workers stays as it is: with workers
each of them would yield all of its data.
"""
import functools
import os

MOST = 8  # more workers than this rarely help one device


def apply(trial):
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
                trial.add_arguments("loader-workers", ("DataLoader",), more)
                trial.did("loader-workers")
                kwargs.update(more)
            original(self, dataset, *args, **kwargs)
        module.DataLoader.__init__ = __init__
    trial.when_loaded("torch.utils.data.dataloader", patch)
