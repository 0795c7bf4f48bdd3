"""Writes a stand-in for PyTorch: the names that the hooks touch, as a version has them, and nothing else.

    write(folder, "2.11")        folder/torch/...
"""
import os
import textwrap

# What differs between versions, oldest first.
VERSIONS = ("1.13", "2.1", "2.3", "2.6", "2.11", "strange")


def _number(version):
    return (99, 0) if version == "strange" else tuple(int(n) for n in version.split("."))


def files(version):
    v = _number(version)
    hooks = textwrap.dedent("""
        _pre, _post = [], []
        class _Handle:
            def __init__(self, where, hook): self.where, self.hook = where, hook
            def remove(self): self.where.remove(self.hook)
        def register_optimizer_step_pre_hook(hook):
            _pre.append(hook)
            return _Handle(_pre, hook)
        def register_optimizer_step_post_hook(hook):
            _post.append(hook)
            return _Handle(_post, hook)
    """) if v >= (2, 0) else "_pre, _post = [], []\n"
    optimizer = hooks + textwrap.dedent("""
        import functools
        class Optimizer:
            def __init__(self, params):
                self.params = list(params)
                cls = type(self)
                if not getattr(cls.step, "hooked", None):
                    cls.step = Optimizer.profile_hook_step(cls.step)
                    cls.step.hooked = True
            @staticmethod
            def profile_hook_step(func):
                @functools.wraps(func)
                def wrapper(*args, **kwargs):
                    self, *rest = args
                    for hook in _pre:
                        result = hook(self, tuple(rest), kwargs)
                        if result is not None:
                            rest, kwargs = result
                    out = func(self, *rest, **kwargs)
                    for hook in _post:
                        hook(self, tuple(rest), kwargs)
                    return out
                return wrapper
            def zero_grad(self, set_to_none=True): pass
        class SGD(Optimizer):
            def step(self, closure=None):
                if closure == "fail":
                    raise RuntimeError("planned")
                return closure() if closure else None
    """)
    loader = textwrap.dedent("""
        class _BaseDataLoaderIter:
            def __init__(self, loader): self.left = list(loader.data)
            def __iter__(self): return self
            def __next__(self):
                if not self.left:
                    raise StopIteration
                return self.left.pop(0)
        class DataLoader:
            def __init__(self, data): self.data = data
            def __iter__(self): return _BaseDataLoaderIter(self)
    """)
    if version == "strange":
        loader = loader.replace("_BaseDataLoaderIter", "Renamed")
    scaler = textwrap.dedent("""
        class GradScaler:
            def scale(self, x): return x
            def unscale_(self, optimizer): pass
            def step(self, optimizer): return optimizer.step()
            def update(self): pass
    """)
    module = textwrap.dedent("""
        class Module:
            def _call_impl(self, *args, **kwargs): return self.forward(*args, **kwargs)
            __call__ = _call_impl
            def named_modules(self):
                yield "", self
                for name, child in vars(self).items():
                    if isinstance(child, Module):
                        for path, m in child.named_modules():
                            yield (name + "." + path if path else name), m
    """)
    found = {
        "torch/__init__.py": textwrap.dedent(f"""
            __version__ = "{version}"
            from . import nn, optim, autograd, serialization, utils
            from .serialization import save, load
            {'from . import compiler' if v >= (2, 1) else ''}
            {'from . import amp' if v >= (2, 3) else ''}
            from . import cuda
            {'''def compile(f, **kwargs):
                from . import _dynamo
                return f''' if v >= (2, 0) else ''}
        """),
        "torch/nn/__init__.py": "from . import utils\nfrom .modules.module import Module\n",
        "torch/nn/modules/__init__.py": "",
        "torch/nn/modules/module.py": module,
        "torch/nn/utils/__init__.py": "from .clip_grad import clip_grad_norm_\n",
        "torch/nn/utils/clip_grad.py": "def clip_grad_norm_(params, max_norm): return 1.0\n",
        "torch/optim/__init__.py": "from .optimizer import Optimizer, SGD\n",
        "torch/optim/optimizer.py": optimizer,
        "torch/autograd/__init__.py": "def backward(tensors, **kwargs): return None\n"
                                      "def grad(outputs, inputs): return None\n",
        "torch/serialization.py": "def save(obj, f): pass\ndef load(f): return {}\n",
        "torch/utils/__init__.py": "from . import data\n",
        "torch/utils/data/__init__.py": "from .dataloader import DataLoader\n" if version != "strange" else
                                        "from .dataloader import DataLoader\n",
        "torch/utils/data/dataloader.py": loader,
        "torch/cuda/__init__.py": "from . import amp\n",
        "torch/cuda/amp/__init__.py": "from .grad_scaler import GradScaler\n",
        "torch/cuda/amp/grad_scaler.py": scaler if v < (2, 3) else
        "import torch\nclass GradScaler(torch.amp.grad_scaler.GradScaler): pass\n",
        "torch/distributed/__init__.py": "from .distributed_c10d import *\n",
        "torch/distributed/distributed_c10d.py": "def all_reduce(t): return t\ndef barrier(): pass\n",
    }
    if v >= (2, 1):
        found["torch/compiler/__init__.py"] = "def is_compiling(): return False\n"
    if v >= (2, 3):
        found["torch/amp/__init__.py"] = "from . import grad_scaler\nfrom .grad_scaler import GradScaler\n"
        found["torch/amp/grad_scaler.py"] = scaler
    if v >= (2, 0):
        found["torch/_dynamo/__init__.py"] = textwrap.dedent("""
            from torch.nn import Module
            is_unpatched = Module.__call__ is Module._call_impl
            from . import convert_frame, eval_frame
            from .eval_frame import optimize
        """)
        found["torch/_dynamo/convert_frame.py"] = "def _compile(code): return code\n"
        found["torch/_dynamo/eval_frame.py"] = textwrap.dedent("""
            from torch.nn import Module
            class OptimizedModule(Module):
                def __init__(self, m): self.m = m
                def __call__(self, *args): return super().__call__(*args)
                def forward(self, *args): return self.m.forward(*args)
            def optimize(*args, **kwargs): return lambda f: f
        """)
    return found


def write(folder, version):
    for name, text in files(version).items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
