"""foreach-optimizer: a few kernels update all parameters, where the program asked for one at a time

causes: gil, kernel-gap, host-compute, launch-bound, optimizer, short-kernels
group: optimizer
tolerance: 0.02
asks: yes
write: remove foreach=False from the optimizer
"""
import functools


def apply(trial):
    def patch(torch):
        base = torch.optim.Optimizer
        for kind in list(vars(torch.optim).values()):
            if isinstance(kind, type) and issubclass(kind, base) and kind is not base:
                wrap(kind)

    def wrap(kind):
        original = kind.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            if kwargs.get("foreach") is False and not kwargs.get("fused") and trial.changes("foreach-optimizer"):
                kwargs["foreach"] = True
                trial.where("foreach-optimizer", "remove foreach=False")
                trial.did("foreach-optimizer")
            original(self, *args, **kwargs)
        kind.__init__ = __init__
    trial.when_loaded("torch", patch)
