"""fused-optimizer: one kernel updates all parameters

causes: launch-bound, optimizer, host-compute, kernel-gap, short-kernels, gil
group: optimizer
tolerance: 0.02
asks: yes
write: add fused=True to the optimizer
"""
import functools

KINDS = ("Adam", "AdamW", "SGD", "Adagrad")


def parameters(given):
    """All parameters of a list of them or of groups."""
    found = []
    for item in given:
        part = item["params"] if isinstance(item, dict) else [item[1] if isinstance(item, tuple) else item]
        found += [part] if hasattr(part, "device") else list(part)
    return found


def fits(params):
    return params and all(p.device.type == "cuda" and p.is_floating_point() for p in params)


def apply(trial):
    def wrap(kind):
        original = kind.__init__

        @functools.wraps(original)
        def __init__(self, params, *args, **kwargs):
            params = list(params)
            for group in params:
                if isinstance(group, dict):
                    group["params"] = list(group["params"]) if not hasattr(group["params"], "device") else [group["params"]]
            is_plain = not any(kwargs.get(k) for k in ("fused", "differentiable", "capturable", "foreach"))
            if is_plain and type(self) is kind and fits(parameters(params)) and trial.changes("fused-optimizer"):
                kwargs["fused"] = True
                try:
                    original(self, params, *args, **kwargs)
                except (RuntimeError, TypeError, ValueError):
                    del kwargs["fused"]
                else:
                    trial.add_arguments("fused-optimizer", KINDS, {"fused": True})
                    trial.did("fused-optimizer")
                    return
            original(self, params, *args, **kwargs)
        kind.__init__ = __init__

    def patch(torch):
        for name in KINDS:
            kind = getattr(torch.optim, name, None)
            if kind is not None:
                wrap(kind)
    trial.when_loaded("torch", patch)
