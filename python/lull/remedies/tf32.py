"""tf32: products of float32 use tensor cores, with fewer digits

causes: precision, gpu-bound
by-name: yes
group: precision
tolerance: 0.05
asks: yes
write: torch.set_float32_matmul_precision("high")

Set again at each step, since programs have their own line for it.
"""


def apply(trial):
    def change():
        import torch
        if torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32:
            return
        if not trial.changes("tf32"):
            return
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        trial.did("tf32")
    trial.set_switch(change)
