"""loader-pinned: batches of loaders lie in pinned memory and are copied without waiting

causes: pageable-copy, exposed-copy, input-pipeline, copies
group: loader
exact: yes
asks: yes
write: DataLoader(pin_memory=True) and .to(device, non_blocking=True)
"""
import functools

SMALL = 4096  # elements; smaller tensors are not worth a look


def apply(trial):
    def loader(module):
        original = module.DataLoader.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            if not kwargs.get("pin_memory") and len(args) <= 7 and trial.changes("loader-pinned"):
                trial.add_arguments("loader-pinned", ("DataLoader",), {"pin_memory": True})
                trial.did("loader-pinned")
                kwargs["pin_memory"] = True
            original(self, *args, **kwargs)
        module.DataLoader.__init__ = __init__
    trial.when_loaded("torch.utils.data.dataloader", loader)
    trial.when_loaded("torch", lambda torch: copies(trial, torch, "loader-pinned", True))


def copies(trial, torch, name, is_on):
    """Copies from pinned memory do not wait, also for loader-workers, once that has pinned something."""
    def is_pinned(tensor):
        return tensor.device.type == "cpu" and tensor.numel() > SMALL and tensor.is_pinned()

    def wrapped(original):
        @functools.wraps(original)
        def copy(self, *args, **kwargs):
            if is_on and "non_blocking" not in kwargs and len(args) < 2 and is_pinned(self) and trial.changes(name):
                trial.where(name, "add non_blocking=True")
                trial.did(name)
                return original(self, *args, non_blocking=True, **kwargs)
            return original(self, *args, **kwargs)
        return copy
    torch.Tensor.to = wrapped(torch.Tensor.to)
    torch.Tensor.cuda = wrapped(torch.Tensor.cuda)
