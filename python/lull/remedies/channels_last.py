"""channels-last: convolutions use the layout that tensor cores read fastest

causes: gpu-bound, precision, unfused-elementwise, fusion
tolerance: 0.02
asks: yes
write: model.to(memory_format=torch.channels_last), and the same for its inputs
"""


def apply(trial):
    def change(module):
        import torch
        if next(iter(module.parameters()), None) is None:
            return False
        convolutions = [m for m in module.modules() if isinstance(m, torch.nn.Conv2d)]
        if (any(not m.weight.is_contiguous(memory_format=torch.channels_last) for m in convolutions)
                and trial.changes("channels-last")):
            trial.where("channels-last", "before this, once: model.to(memory_format=torch.channels_last)")
            module.to(memory_format=torch.channels_last)
            trial.did("channels-last")
        return True
    trial.model.append(change)
