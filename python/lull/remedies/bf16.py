"""bf16: products and convolutions are computed in bfloat16 by autocast

causes: precision, gpu-bound
by-name: yes
group: precision
tolerance: 0.1
asks: yes
write: with torch.autocast("cuda", torch.bfloat16): around forward and loss

Autocast stays on for the whole thread that calls the model. Its cache of weights is off, because
that is only emptied where autocast ends.
"""


def apply(trial):
    def change(module):
        import torch
        if torch.is_autocast_enabled() or not trial.changes("bf16"):
            return True
        trial.where("bf16", "inside `with torch.autocast(\"cuda\", torch.bfloat16):`")
        torch.autocast("cuda", torch.bfloat16, cache_enabled=False).__enter__()
        trial.did("bf16")
        return True
    trial.model.append(change)
