"""Writes a stand-in for PyTorch with a clock of its own: what a step does takes the time that is said here, and no other.

    write(folder)        folder/torch/...

`time.monotonic_ns()` and `time.sleep()` of the program follow that clock, so that a gain is a number, not a measurement. What
each part takes, in ms: a batch 8, 1 with workers; a copy from ordinary memory 5, from pinned memory 1; forward 6, compiled 1;
an optimizer 10, with foreach 4, fused 2; empty_cache() 3; gc.collect() 4; torch.save() 9; zero_grad() 1, with set_to_none 0.
"""
import os
import textwrap

import stand_in_torch

CLOCK = """
import gc, time
now = 1_000_000_000
def spend(ms):
    global now
    now += int(ms * 1_000_000)
time.monotonic_ns = lambda: now
time.sleep = lambda s: spend(1000 * s)
def collect(*args):
    spend(4)
    return 0
gc.collect = collect
"""

TENSOR = """
import random as _random
from . import _clock, autograd
class _Device:
    def __init__(self, type): self.type = type
class Tensor:
    def __init__(self, value=0.0, device="cpu", n=1, pinned=False):
        self.value, self.device, self.n, self.pinned = value, _Device(device), n, pinned
    is_cuda = property(lambda self: self.device.type == "cuda")
    def is_floating_point(self): return True
    def is_pinned(self): return self.pinned
    def numel(self): return self.n
    def element_size(self): return 4
    def detach(self): return self
    def clone(self): return Tensor(self.value, self.device.type, self.n)
    def double(self): return self
    def sum(self): return Tensor(self.value)
    def __float__(self): return float(self.value)
    def pin_memory(self): return Tensor(self.value, "cpu", self.n, True)
    def to(self, device, non_blocking=False):
        _clock.spend(1 if self.pinned and non_blocking else 5)
        return Tensor(self.value, device, self.n)
    def cuda(self, non_blocking=False): return self.to("cuda", non_blocking)
    def backward(self): autograd.backward(self)
def manual_seed(n): _random.seed(n)
def is_autocast_enabled(): return False
def is_grad_enabled(): return True
class Generic: pass
backends = Generic()
backends.cuda, backends.cudnn = Generic(), Generic()
backends.cuda.matmul = Generic()
backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = backends.cudnn.benchmark = False
channels_last, bfloat16 = "channels_last", "bfloat16"
class autocast:
    def __init__(self, *args, **kwargs): pass
    def __enter__(self): return self
    def __exit__(self, *exc): pass
"""

MODULE = """
from torch import _clock
class Module:
    _compiled_call_impl, training = None, True
    def __init__(self): self.weights = []
    def parameters(self): return iter(self.weights)
    def modules(self): return iter([self])
    def zero_grad(self, set_to_none=True): _clock.spend(0 if set_to_none else 1)
    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)
    def _call_impl(self, *args, **kwargs):
        _clock.spend(6)
        return self.forward(*args, **kwargs)
    __call__ = _wrapped_call_impl
    def named_modules(self): yield "", self
    def compile(self, mode="default", dynamic=None):
        import torch
        if getattr(self, "breaks", False):
            raise RuntimeError("CUDA out of memory: planned")
        def compiled(*args, **kwargs):
            _clock.spend(0.5 if mode == "reduce-overhead" else 1)
            return self.forward(*args, **kwargs)
        self._compiled_call_impl = torch.compile(compiled)
"""

OPTIMIZERS = """
from torch import _clock
class _Timed(Optimizer):
    def __init__(self, params, lr=0.1, foreach=None, fused=None):
        super().__init__(params)
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        self.ms = 2 if fused else 4 if foreach else 10
    def step(self, closure=None): _clock.spend(self.ms)
class Adam(_Timed): pass
class AdamW(_Timed): pass
"""

LOADER = """
from torch import _clock
class IterableDataset: pass
class _BaseDataLoaderIter:
    def __init__(self, loader): self.loader, self.left = loader, list(loader.data)
    def __iter__(self): return self
    def __next__(self):
        if not self.left:
            raise StopIteration
        _clock.spend(1 if self.loader.num_workers else 8)
        batch = self.left.pop(0)
        return batch.pin_memory() if self.loader.pin_memory and hasattr(batch, "pin_memory") else batch
class DataLoader:
    def __init__(self, data, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, prefetch_factor=None, persistent_workers=False):
        if num_workers and getattr(data, "cannot_fork", False):
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
        self.data, self.num_workers, self.pin_memory = data, num_workers, pin_memory
    def __iter__(self): return _BaseDataLoaderIter(self)
"""

CUDA = """
from torch import _clock
def is_initialized(): return True
def is_available(): return True
def synchronize(): pass
def empty_cache(): _clock.spend(3)
def _lazy_init(): pass
def current_device(): return 0
def is_current_stream_capturing(): return False
def get_device_properties(n): raise FileNotFoundError("no such device")
def max_memory_reserved(): return 1 << 30
def current_stream():
    class Stream:
        def synchronize(self): pass
    return Stream()
"""

SERIALIZATION = """
def save(obj, f):
    from torch import _clock
    _clock.spend(9)
    with open(f, "w") as file:
        file.write(repr(sorted(obj)))
def load(f):
    with open(f) as file:
        return file.read()
"""


def write(folder):
    files = stand_in_torch.files("2.11")
    files["torch/_clock.py"] = CLOCK
    files["torch/__init__.py"] = "from . import _clock\n" + files["torch/__init__.py"] + TENSOR
    files["torch/nn/__init__.py"] += "class Conv2d: pass\n"
    files["torch/nn/modules/module.py"] = MODULE
    plain = "def zero_grad(self, set_to_none=True): pass"
    files["torch/optim/optimizer.py"] = files["torch/optim/optimizer.py"].replace(
        plain, plain.replace("pass", "_clock.spend(0 if set_to_none else 1)")) + OPTIMIZERS
    files["torch/optim/__init__.py"] = "from .optimizer import Adam, AdamW, Optimizer, SGD\n"
    files["torch/utils/data/dataloader.py"] = LOADER
    files["torch/utils/data/__init__.py"] = "from .dataloader import DataLoader, IterableDataset\n"
    files["torch/cuda/__init__.py"] += CUDA
    files["torch/serialization.py"] = SERIALIZATION
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(text))
