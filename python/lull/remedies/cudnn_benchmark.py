"""cudnn-benchmark: cuDNN tries its algorithms once and keeps the fastest

causes: gpu-bound, precision
tolerance: 0.02
warmup: 10
asks: yes
write: torch.backends.cudnn.benchmark = True
"""


def apply(trial):
    def change():
        import torch
        if not torch.backends.cudnn.benchmark and trial.changes("cudnn-benchmark"):
            torch.backends.cudnn.benchmark = True
            trial.did("cudnn-benchmark")
    trial.set_switch(change)
