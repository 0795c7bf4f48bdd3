"""grads-to-none: gradients are dropped, not filled with zeros

causes: launch-bound, kernel-gap, short-kernels, gpu-bound
exact: yes
asks: yes
write: remove set_to_none=False from zero_grad()
"""
import functools


def apply(trial):
    def wrap(owner):
        original = owner.zero_grad

        @functools.wraps(original)
        def zero_grad(self, set_to_none=True):
            if not set_to_none and trial.changes("grads-to-none"):
                trial.where("grads-to-none", "remove set_to_none=False")
                trial.did("grads-to-none")
                set_to_none = True
            return original(self, set_to_none=set_to_none)
        owner.zero_grad = zero_grad

    def patch(torch):
        wrap(torch.optim.Optimizer)
        wrap(torch.nn.Module)
    trial.when_loaded("torch", patch)
