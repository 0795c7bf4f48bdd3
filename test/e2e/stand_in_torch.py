"""Writes a stand-in for PyTorch: the names that the hooks touch, as a version has them, and nothing else.

    write(folder, "2.11")        folder/torch/...
"""
import os
import textwrap

# What differs between versions, for what the hooks touch:
#   2.0   hooks for all optimizers; torch.compile, torch._dynamo
#         and a list of guards that failed instead of a function that tells them
#   2.1   that function; graphs that end with their function are told from those that break
#         torch.compiler, without is_compiling: that is in torch._dynamo.external_utils
#   2.2   torch.compiler.is_compiling; Module.compile(); Inductor's cache of graphs, a function to compile one
#   2.3   torch.amp.GradScaler, of which torch.cuda.amp.GradScaler is a kind; torch.distributed.checkpoint.save
#   2.4   a cache of what autograd makes of a graph
#   2.5   AsyncCompile has a module of its own
#   2.6   the function that tells why a function is compiled again has another name
#   2.8   the reason of a graph is the second parameter
#   2.13  is_compiling() all the time that torch.compile takes ("next" here)
# "strange" is a version that we do not know: its loader has other names.
VERSIONS = ("1.13", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "next", "strange")


def _number(version):
    return (99, 0) if version in ("next", "strange") else tuple(int(n) for n in version.split("."))


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
            _compiled_call_impl = None
            def _wrapped_call_impl(self, *args, **kwargs):
                if self._compiled_call_impl is not None:
                    return self._compiled_call_impl(*args, **kwargs)
                return self._call_impl(*args, **kwargs)
            def _call_impl(self, *args, **kwargs): return self.forward(*args, **kwargs)
            __call__ = _wrapped_call_impl
            def named_modules(self):
                yield "", self
                for name, child in vars(self).items():
                    if isinstance(child, Module):
                        for path, m in child.named_modules():
                            yield (name + "." + path if path else name), m
    """)
    if v >= (2, 2):
        module += textwrap.indent(textwrap.dedent("""
            def compile(self, *args, **kwargs):
                import torch
                self._compiled_call_impl = torch.compile(self._call_impl, *args, **kwargs)
        """), "    ")
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
        found["torch/compiler/__init__.py"] = "_is_compiling_flag = False\n" + (
            "def is_compiling(): return _is_compiling_flag\n" if v >= (2, 2) else "")
    if v >= (2, 3):
        found["torch/amp/__init__.py"] = "from . import grad_scaler\nfrom .grad_scaler import GradScaler\n"
        found["torch/amp/grad_scaler.py"] = scaler
    if v >= (2, 0):
        found["torch/_dynamo/__init__.py"] = textwrap.dedent("""
            from torch.nn import Module
            is_unpatched = Module.__call__ is Module._wrapped_call_impl
            from . import convert_frame, eval_frame, external_utils, output_graph
            from .eval_frame import optimize
        """)
        found["torch/_dynamo/convert_frame.py"] = textwrap.dedent("""
            import torch
            from . import exc, utils
            from .guards import REASONS
            flags = getattr(torch, "compiler", torch)
            def _compile(code):
                from .output_graph import OutputGraph
                if getattr(code, "co_name", "") == "refused":
                    raise exc.SkipFrame("a break in a loop") from exc.Unsupported("call print\\n  Hint: do not")
                flags._is_compiling_flag = IS_NEXT
                try:
                    return OutputGraph().call_user_compiler(code)
                finally:
                    flags._is_compiling_flag = False
            def convert(frame, failed):
                if failed:
                    utils.guard_failures.setdefault(frame.f_code, []).append(failed)
                    REASONS(failed, frame)
                return _compile(frame.f_code)
        """).replace("IS_NEXT", str(version == "next")).replace("REASONS", _reasons(v))
        found["torch/_dynamo/exc.py"] = textwrap.dedent("""
            class SkipFrame(RuntimeError): pass
            class Unsupported(RuntimeError):
                def __init__(self, msg): self.msg = msg
        """)
        found["torch/_dynamo/utils.py"] = "guard_failures = {}\n"
        found["torch/_dynamo/guards.py"] = f"def {_reasons(v)}(cache_entry, frame, *more): return list(cache_entry)\n"
        found["torch/_dynamo/output_graph.py"] = textwrap.dedent("""
            import dataclasses
            @dataclasses.dataclass
            class GraphCompileReason:
                reason: str
                user_stack: list
                GRAPH_BREAK
            class OutputGraph:
                def compile_subgraph(self, tx, ORDER): return reason
                def call_user_compiler(self, gm):
                    from torch._inductor.compile_fx import compile_fx
                    return compile_fx(gm)
        """).replace("GRAPH_BREAK", "graph_break: bool = True" if v >= (2, 1) else "").replace(
            "ORDER", "reason, partial_convert=False" if v >= (2, 8) else "partial_convert=False, reason=None")
        # Tracing is pretended by a flag here; the real thing makes a constant of the call.
        found["torch/_dynamo/external_utils.py"] = "is_tracing = False\ndef is_compiling(): return is_tracing\n"
        found.update(_inductor(v))
        found["torch/_dynamo/eval_frame.py"] = textwrap.dedent("""
            from torch.nn import Module
            class OptimizedModule(Module):
                def __init__(self, m): self.m = m
                CALL
                def forward(self, *args): return self.m.forward(*args)
            def optimize(*args, **kwargs): return lambda f: f
        """).replace("CALL", "def __call__(self, *args): return super().__call__(*args)" if v >= (2, 5) else "pass")
    return found


def _reasons(v):
    """The function that is asked why a function is compiled again; 2.0 has none."""
    return "get_and_maybe_log_recompilation_reason" + ("s" if v >= (2, 6) else "") if v >= (2, 1) else "no_reasons"


def _inductor(v):
    """A graph that says "hit" is in the cache."""
    found = {"torch/_inductor/__init__.py": "", "torch/_functorch/__init__.py": "",
             "torch/_functorch/_aot_autograd/__init__.py": ""}
    async_compile = textwrap.dedent("""
        class AsyncCompile:
            def wait(self, scope): return scope
    """)
    cache = textwrap.dedent("""
        class FxGraphCache:
            @staticmethod
            def _lookup_graph(key, *args): return key if "hit" in str(key) else None
    """) if v >= (2, 2) else ""
    found["torch/_inductor/codecache.py"] = cache + (async_compile if v < (2, 5) else "")
    if v >= (2, 5):
        found["torch/_inductor/async_compile.py"] = async_compile
    if v >= (2, 4):
        found["torch/_functorch/_aot_autograd/autograd_cache.py"] = textwrap.dedent("""
            class AOTAutogradCache:
                @staticmethod
                def _lookup(key, *args): return None
                @classmethod
                def try_load(cls, key): return cls._lookup(key)
        """)
    found["torch/_inductor/graph.py"] = textwrap.dedent("""
        class GraphLowering:
            def compile_to_module(self): return self
            def compile_to_fn(self): return self.compile_to_module()
    """)
    found["torch/_inductor/compile_fx.py"] = textwrap.dedent("""
        from .graph import GraphLowering
        %(import_async)s
        def codegen(gm):
            GraphLowering().compile_to_fn()
            AsyncCompile().wait({})
            return gm
        %(function)s
        def compile_fx_inner(gm):
            return %(lookup)s codegen(gm)
        def compile_fx(gm, inner_compile=compile_fx_inner):
            %(autograd)s
            return inner_compile(gm)
    """) % {
        "import_async": "from .async_compile import AsyncCompile\nfrom .codecache import FxGraphCache" if v >= (2, 5) else
                        "from .codecache import AsyncCompile" + (", FxGraphCache" if v >= (2, 2) else ""),
        "function": "fx_codegen_and_compile = codegen\ndef codegen(gm): return fx_codegen_and_compile(gm)" if v >= (2, 2) else "",
        "lookup": "FxGraphCache._lookup_graph(gm) or" if v >= (2, 2) else "",
        "autograd": "from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache; AOTAutogradCache.try_load(gm)"
                    if v >= (2, 4) else "pass",
    }
    return found


def write(folder, version):
    for name, text in files(version).items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
