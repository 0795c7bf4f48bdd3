"""Steps and phases of PyTorch programs, without a change to them.

Loaded by sitecustomize.py into each interpreter that lull profile starts, before the program. It
imports nothing of PyTorch: a finder in front of sys.meta_path waits for the modules of PATCHES and
wraps a few of their functions once they are loaded. What cannot be wrapped is reported to the agent
and stands in the report; no error of ours reaches the program.

Rules for a wrapper: pass everything on, also exceptions; do nothing while torch.compile traces
(is_compiling() is a constant there, so no graph breaks and nothing of us is in the graph); never
call into PyTorch.
"""
import functools
import sys
import threading

# Bits of the agent's sources, as in src/wire/wire.h.
CUDA, TORCH, OPS, MODULES, REQUESTS = 1 << 5, 1 << 24, 1 << 25, 1 << 26, 1 << 28

# How far the hooks got, for tell().
PACKAGE, HOOKED, WITH_OPS = 1, 2, 4

PATCHES = {}  # module -> function that wraps parts of it, once it is loaded
BEFORE = {}  # module -> function to call before it is loaded
AFTER = {}  # module -> functions to call after its patch, of lull try


class _Thread(threading.local):
    """The phases that this thread is in."""
    forward = False
    data = False
    optimizer = 0
    has_stepped = False  # an optimizer did, inside of another's step


class seen:
    """Functions of lull try that see the outermost module before it is called, what it returned, and each step."""
    model = output = step = None


_thread = _Thread()
_agent = None
_folder = ""
_enter = _leave = None
_sources = 0
_is_compiling = bool  # torch.compiler.is_compiling, once torch is there; bool() is False


def patch(name):
    """Register a function for the module of this name."""
    def register(function):
        PATCHES[name] = function
        return function
    return register


def is_compiling():
    """Whether torch.compile traces what runs."""
    return _is_compiling()


def trouble(what):
    """Something could not be hooked: one word for the report."""
    try:
        _agent.trouble(what)
    except Exception:
        pass


# ---- steps ----


class _Steps:
    """Where a step of the training loop ends and the next one begins.

    An optimizer's step ends one, or, where batches come from a loader, the wait for the next batch
    after it: so a step has its batch in it, also with accumulated gradients and with several
    optimizers. Batches without backward (validation, inference) are steps of their own.
    """

    def __init__(self):
        self.number = 0
        self.thread = None  # the one that trains; loaders of other threads do not count
        self.caller = threading.main_thread().ident  # the last thread that called the model
        self.is_open = False
        self.has_seen = False  # a model, a backward pass or an optimizer
        self.by_data = False  # steps start with a batch
        self.known = set()  # optimizers of the last steps
        self.clear()

    def clear(self):
        self.stepped = set()
        self.has_data = self.has_forward = self.has_backward = False

    def next(self):
        _agent.hooked_step(self.number)
        if seen.step is not None:
            seen.step()
        self.number += 1
        self.is_open = True
        self.clear()
        follow()

    def is_empty(self):
        return not (self.stepped or self.has_data or self.has_forward or self.has_backward)

    def none(self):
        """No new step has started after all: the batches or the program ended."""
        if self.is_open:
            _agent.no_step()
            self.is_open = False
            self.number -= 1

    def finish(self):
        if self.is_empty():
            self.none()

    def is_elsewhere(self):
        return threading.get_ident() != (self.thread or self.caller)

    def data(self):
        if self.is_elsewhere():
            return
        follow()
        if not self.is_open:
            self.next()
        elif self.stepped or self.is_batch_done():
            self.by_data = True
            self.next()
        elif self.is_empty():
            # The previous step ended with its optimizer, and this one starts with a batch.
            self.by_data = self.number > 1
        self.has_data = True

    def is_batch_done(self):
        """Another batch without a backward pass, or the whole step is compiled and nothing in it is visible."""
        if not self.has_data or self.has_backward:
            return False
        return self.has_forward or (_Call.is_off and not self.has_seen)

    def no_data(self):
        if self.is_elsewhere():
            return
        if not (self.stepped or self.has_forward or self.has_backward):
            self.none()
            self.clear()

    def forward(self):
        if self.thread is None:
            self.caller = threading.get_ident()
        elif self.is_elsewhere():
            return
        if not self.is_open:
            self.next()
        self.has_forward = self.has_seen = True

    def backward(self):
        self.has_backward = self.has_seen = True

    def optimizer(self, key):
        self.has_seen = True
        if not self.is_open:
            self.next()
        self.thread = threading.get_ident()
        if key in self.stepped:
            # Twice without a batch in between: steps do not start with batches.
            self.by_data = False
            self.known = {key}
        self.known.add(key)
        self.stepped.add(key)
        if not self.by_data and self.stepped >= self.known:
            self.known = set(self.stepped)
            self.next()


_steps = _Steps()


# ---- operators ----


class _Ops:
    is_known = False
    has_lines = False
    n_tries = 0


def _sequence(tensor):
    try:
        return tensor.grad_fn._sequence_nr()
    except Exception:
        return 2 ** 64 - 1


def _learn_ops():
    """Let the agent learn the layout of operator objects of this build; see src/agent/python/torch_learn.c."""
    import torch
    with torch.enable_grad():
        def empty(*shape, dtype=torch.float32):
            return torch.empty(shape, dtype=dtype, device="cpu")
        a, b = empty(2, 3), empty(2, 3)
        a.requires_grad_(True)
        four, six = empty(3, 5, 7, 11), empty(2, 1, 3, 1, 5, 7)
        typed = [empty(1, dtype=t) for t in (torch.uint8, torch.int64, torch.float32, torch.float64)]
        addresses = [t._cdata for t in (a, b, four, six, *typed)]
        if not _agent.ops_watch(*addresses, 0):
            return False
        try:
            larger = torch.maximum(a, b)
            torch.cat([a, b])
            # Numbers and flags among the inputs.
            torch.roll(b, (1234567, 7654321), (0, 1))
            torch.sum(b, (0, 1), True)
        finally:
            is_known = _agent.ops_learn(*addresses, _sequence(larger))
        return bool(is_known)


def _learn_stacks():
    """Let the agent find the frames of this interpreter; see src/agent/python/python_stack.c."""
    frame = sys._getframe()
    code, caller = id(frame.f_code), id(frame.f_back.f_code)
    return bool(_agent.stacks_learn(sys.hexversion, code, frame.f_lineno, caller))


def learn():
    """Prepare for operators, once torch is loaded."""
    if not _sources & OPS or _Ops.is_known or _Ops.n_tries >= 3:
        return
    _Ops.n_tries += 1
    try:
        _Ops.is_known = _learn_ops()
        if _Ops.is_known:
            _agent.tell(WITH_OPS)
            if not _Ops.has_lines:
                trouble("lines")
    except Exception:
        _Ops.n_tries = 3
        trouble("operators")


def follow():
    """Observe operators while a recording is on; outside of it they cost nothing."""
    if _sources & OPS and not _agent.ops_follow() and _agent.is_recording():
        learn()
        _agent.ops_follow()


# ---- wrapping ----

_places = []  # (owner, attribute, original or None if it is inherited, ours)


def put(owner, attribute, ours):
    """Replace a function of a module or class."""
    _places.append((owner, attribute, owner.__dict__.get(attribute), ours))
    setattr(owner, attribute, ours)


def switch(is_on):
    """Remove all hooks, or put them back: to measure what they cost."""
    for owner, attribute, original, ours in _places:
        if is_on or original is not None:
            setattr(owner, attribute, ours if is_on else original)
        elif attribute in owner.__dict__:
            delattr(owner, attribute)
    _Call.is_off = not is_on or _Call.has_compiled
    _set_call(not _Call.is_off)
    _Hooks.set_optimizers(is_on)
    import gc
    if is_on and _agent.gc not in gc.callbacks:
        gc.callbacks.append(_agent.gc)
    elif not is_on and _agent.gc in gc.callbacks:
        gc.callbacks.remove(_agent.gc)


def _wrapped(original, name):
    @functools.wraps(original)
    def inner(*args, **kwargs):
        if _is_compiling():
            return original(*args, **kwargs)
        _enter(name)
        try:
            return original(*args, **kwargs)
        finally:
            _leave()
    return inner


def wrap(owners, attribute, name):
    """Make a function of a module or class a phase; the same one may be known in several places."""
    owners = owners if isinstance(owners, tuple) else (owners,)
    original = getattr(owners[0], attribute, None)
    if not callable(original):
        return
    inner = _wrapped(original, name)
    for owner in owners:
        if getattr(owner, attribute, None) is original:
            put(owner, attribute, inner)


def wrap_compiler(owner, attribute, name, watch=None):
    """Make a part of torch.compile a phase. It is never traced, and runs while is_compiling().

    watch: a function that wraps it first.
    """
    original = getattr(owner, "__dict__", {}).get(attribute)
    kind = type(original) if isinstance(original, (staticmethod, classmethod)) else None
    function = original.__func__ if kind else original
    if not callable(function):
        return False
    if watch is not None:
        function = watch(function)

    @functools.wraps(function)
    def inner(*args, **kwargs):
        _enter(name)
        try:
            return function(*args, **kwargs)
        finally:
            _leave()
    put(owner, attribute, kind(inner) if kind else inner)
    return True


def wrap_data(owner, attribute):
    """Make the wait for a batch a phase, if it is not inside another one."""
    original = owner.__dict__.get(attribute)
    if original is None:
        return

    @functools.wraps(original)
    def inner(self):
        if _thread.data:
            return original(self)
        _thread.data = True
        _steps.data()
        _enter("data_load")
        try:
            return original(self)
        except StopIteration:
            _steps.no_data()
            raise
        finally:
            _leave()
            _thread.data = False
    put(owner, attribute, inner)


# ---- modules of the model ----


class _Call:
    """torch.nn.Module.__call__: the outermost is a phase, or each one with --pytorch=modules."""
    module = None  # torch.nn.Module
    original = None
    ours = None
    has_compiled = False  # torch.compile is used: its traces must find the original
    is_off = False  # so that, or all hooks are removed
    names = None


def _outermost(original):
    thread, steps = _thread, _steps

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if thread.forward or thread.data or _Call.is_off:
            # Nearly all of them; and the way with stars is twice as long.
            if not kwargs and len(args) == 1:
                return original(self, args[0])
            return original(self, *args, **kwargs)
        thread.forward = True
        steps.forward()
        follow()
        _enter("forward")
        try:
            if seen.model is not None:
                seen.model(self)
            result = original(self, *args, **kwargs)
            if seen.output is not None:
                seen.output(result)
            return result
        finally:
            _leave()
            thread.forward = False
    return __call__


def _name_modules(root):
    for path, module in root.named_modules():
        kind = type(module).__name__
        _Call.names[module] = f"{path} ({kind})" if path else kind


def _each(original):
    import weakref
    _Call.names = weakref.WeakKeyDictionary()
    thread, outermost = _thread, _outermost(original)

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if thread.data or _Call.is_off:
            return original(self, *args, **kwargs)
        name = _Call.names.get(self)
        if name is None:
            _name_modules(self)
            name = _Call.names[self]
        if not thread.forward:
            return outermost(self, *args, **kwargs)
        _enter(name)
        try:
            return original(self, *args, **kwargs)
        finally:
            _leave()
    return __call__


def _set_call(is_ours):
    wanted, other = (_Call.ours, _Call.original) if is_ours else (_Call.original, _Call.ours)
    if _Call.module is not None and _Call.module.__dict__.get("__call__") is other:
        _Call.module.__call__ = wanted


def _compile_is_used():
    _Call.has_compiled = _Call.is_off = True
    _set_call(False)


def _wrap_compile(kind):
    """Module.compile(), since 2.2: calls of this one module go to the compiled function that it stores."""
    original = kind.__dict__.get("compile")
    if original is None:
        return

    @functools.wraps(original)
    def compile(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        compiled = getattr(self, "_compiled_call_impl", None)
        if compiled is not None:
            self._compiled_call_impl = _of_compiled(lambda _, *a, **k: compiled(*a, **k)).__get__(self)
        return result
    put(kind, "compile", compile)


@patch("torch.nn.modules.module")
def _patch_modules(module):
    _Call.module = module.Module
    _Call.original = module.Module.__call__
    _Call.ours = (_each if _sources & MODULES else _outermost)(_Call.original)
    put(module.Module, "__call__", _Call.ours)
    _wrap_compile(module.Module)


# ---- data ----


@patch("torch.utils.data.dataloader")
def _patch_loader(module):
    wrap_data(module._BaseDataLoaderIter, "__next__")
    wrap(module.DataLoader, "__iter__", "dataloader.start")


@patch("torch.utils.data._utils.fetch")
def _patch_fetch(module):
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        wrap(getattr(module, name), "fetch", "dataloader.fetch")


@patch("torch.utils.data._utils.worker")
def _patch_worker(module):
    original = module._worker_loop

    @functools.wraps(original)
    def _worker_loop(*args, **kwargs):
        try:
            # Its number is the eleventh parameter in all versions.
            number = kwargs.get("worker_id", args[10] if len(args) > 10 else "?")
            _agent.thread_name(f"data worker {number}")
            _thread.data = True  # nothing on this thread is a forward pass
        except Exception:
            pass
        return original(*args, **kwargs)
    put(module, "_worker_loop", _worker_loop)


@patch("torch.utils.data._utils.pin_memory")
def _patch_pinning(module):
    original = module._pin_memory_loop

    @functools.wraps(original)
    def _pin_memory_loop(*args, **kwargs):
        try:
            _agent.thread_name("pin memory")
        except Exception:
            pass
        return original(*args, **kwargs)
    put(module, "_pin_memory_loop", _pin_memory_loop)


def _patch_iterators(module):
    """Loaders of other packages: classes named like loaders, with their own __next__."""
    for name, item in list(vars(module).items()):
        if isinstance(item, type) and name.endswith(("Iter", "Iterator")):
            wrap_data(item, "__next__")


for _name in ("torchdata.stateful_dataloader.stateful_dataloader", "ffcv.loader.epoch_iterator",
              "nvidia.dali.plugin.pytorch", "nvidia.dali.plugin.pytorch.torch_utils"):
    PATCHES[_name] = _patch_iterators


# ---- backward and optimizer ----


@patch("torch.autograd")
def _patch_autograd(module):
    original = module.backward

    @functools.wraps(original)
    def backward(*args, **kwargs):
        if _is_compiling():
            return original(*args, **kwargs)
        _steps.backward()
        _enter("backward")
        try:
            return original(*args, **kwargs)
        finally:
            _leave()
    put(module, "backward", backward)
    wrap(module, "grad", "autograd.grad")


def _begin_optimizer():
    if not _thread.optimizer:
        _thread.has_stepped = False
        _enter("optimizer")
    _thread.optimizer += 1


def _end_optimizer(key):
    _thread.optimizer -= 1
    if _thread.optimizer:
        _thread.has_stepped = True
        return
    _leave()
    _steps.optimizer(key)


def _around(closure):
    """A closure given to step() is forward and backward, not the update."""
    def inner(*args, **kwargs):
        depth, _thread.optimizer = _thread.optimizer, 0
        _leave()
        try:
            return closure(*args, **kwargs)
        finally:
            _enter("optimizer")
            _thread.optimizer = depth
    return inner


def _pre_step(optimizer, args, kwargs):
    if _is_compiling():
        return None
    if _thread.optimizer and getattr(_thread, "key", None) == id(optimizer):
        # Its last step ended with an exception, for which no hook is called.
        _thread.optimizer = 0
        _leave()
    _thread.key = id(optimizer)
    _begin_optimizer()
    if args and callable(args[0]):
        return (_around(args[0]),) + tuple(args[1:]), kwargs
    if callable(kwargs.get("closure")):
        return args, {**kwargs, "closure": _around(kwargs["closure"])}
    return None


def _post_step(optimizer, args, kwargs):
    if _is_compiling():
        return
    _thread.key = None
    if _thread.optimizer:
        _end_optimizer(id(optimizer))


def _patch_old_optimizer(module):
    """Before 2.0 there are no hooks for all optimizers."""
    original = module.Optimizer.__init__

    def wrap_step(step):
        @functools.wraps(step)
        def inner(self, *args, **kwargs):
            new = _pre_step(self, args, kwargs)
            args, kwargs = new if new else (args, kwargs)
            try:
                return step(self, *args, **kwargs)
            finally:
                _post_step(self, args, kwargs)
        inner._is_lull = True
        return inner

    def watch(kind):
        if not getattr(kind.step, "_is_lull", False):
            owner = next(k for k in kind.__mro__ if "step" in k.__dict__)
            put(owner, "step", wrap_step(owner.step))

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        watch(type(self))
    put(module.Optimizer, "__init__", __init__)
    # Those that were made before we came.
    kinds = [module.Optimizer]
    while kinds:
        more = kinds.pop().__subclasses__()
        kinds += more
        for kind in more:
            watch(kind)


class _Hooks:
    """The hooks that PyTorch has itself for all optimizers."""
    handles = []
    module = None

    @classmethod
    def set_optimizers(cls, is_on):
        while not is_on and cls.handles:
            cls.handles.pop().remove()
        if is_on and cls.module is not None and not cls.handles:
            cls.handles = [cls.module.register_optimizer_step_pre_hook(_pre_step),
                           cls.module.register_optimizer_step_post_hook(_post_step)]


@patch("torch.optim.optimizer")
def _patch_optimizer(module):
    if hasattr(module, "register_optimizer_step_pre_hook"):
        _Hooks.module = module
        _Hooks.set_optimizers(True)
    else:
        _patch_old_optimizer(module)
    wrap(module.Optimizer, "zero_grad", "zero_grad")


def _patch_scaler(module):
    for attribute in ("unscale_", "step", "update"):
        if attribute in module.GradScaler.__dict__:
            wrap(module.GradScaler, attribute, "grad_scaler." + attribute.rstrip("_"))


PATCHES["torch.amp.grad_scaler"] = PATCHES["torch.cuda.amp.grad_scaler"] = _patch_scaler


@patch("torch.nn.utils.clip_grad")
def _patch_clip(module):
    package = sys.modules.get("torch.nn.utils")
    for attribute in ("clip_grad_norm_", "clip_grad_value_"):
        wrap((module, package), attribute, attribute.rstrip("_"))


@patch("deepspeed.runtime.engine")
def _patch_deepspeed(module):
    # Called when gradients have been accumulated, by step() and by pipelines; not by old versions.
    engine = module.DeepSpeedEngine
    attribute = "_take_model_step" if "_take_model_step" in engine.__dict__ else "step"
    original = engine.__dict__[attribute]

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        # It may step an inner optimizer many times, or not at all where gradients overflow.
        _begin_optimizer()
        try:
            return original(self, *args, **kwargs)
        finally:
            _thread.optimizer = 0
            _leave()
            if _thread.has_stepped:
                _steps.optimizer(id(self))
    put(engine, attribute, step)


# ---- compilation, checkpoints, collectives ----


@patch("torch._dynamo")
def _patch_dynamo(module):
    for attribute in ("optimize", "export"):
        _uses_compile((module, sys.modules.get("torch._dynamo.eval_frame")), attribute)
    frames = sys.modules.get("torch._dynamo.convert_frame")
    graphs = getattr(sys.modules.get("torch._dynamo.output_graph"), "OutputGraph", None)
    watch = _watch_breaks(frames, graphs)
    if frames is not None:
        wrap_compiler(frames, "_compile", "compile", watch)
    wrap_compiler(graphs, "call_user_compiler", "compile.backend")
    global _is_compiling
    if _is_compiling is bool:  # 2.1 has it here only
        outside = sys.modules.get("torch._dynamo.external_utils")
        _is_compiling = getattr(outside, "is_compiling", bool)
    optimized = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)
    if optimized is not None:
        put(optimized, "__call__", _of_compiled(optimized.__call__))
    _set_call(not _Call.is_off)


BEFORE["torch._dynamo"] = lambda: _set_call(False)


def _watch_breaks(frames, graphs):
    """Why graphs break and functions are compiled again (_compile.py); what else wraps the compilation of a function."""
    try:
        notes = _load("_lull_compile", "_compile.py")
        notes.begin(sys.modules["torch"], _agent.hooked_mark)
        original = getattr(graphs, "__dict__", {}).get("compile_subgraph")
        if callable(original):
            put(graphs, "compile_subgraph", notes.watch_graphs(original))
        has_reasons = False
        for attribute in ("get_and_maybe_log_recompilation_reason", "get_and_maybe_log_recompilation_reasons"):
            original = getattr(frames, attribute, None)
            if callable(original):
                put(frames, attribute, notes.watch_reasons(original))
                has_reasons = True
        told = getattr(sys.modules.get("torch._dynamo.utils"), "guard_failures", None)
        failures = told if isinstance(told, dict) and not has_reasons else None
        return lambda function: notes.watch_frames(function, failures)
    except Exception:
        trouble("torch._dynamo.reasons")
        return None


def _of_compiled(original):
    """Calls of a compiled model: the outermost is the phase, as for others."""
    thread = _thread

    @functools.wraps(original)
    def __call__(self, *args, **kwargs):
        if _is_compiling() or thread.forward or thread.data:
            return original(self, *args, **kwargs)
        thread.forward = True
        _steps.forward()
        follow()
        _enter("forward")
        try:
            result = original(self, *args, **kwargs)
            if seen.output is not None:
                seen.output(result)
            return result
        finally:
            _leave()
            thread.forward = False
    return __call__


def _uses_compile(owners, attribute):
    original = getattr(owners[0], attribute, None)
    if original is None:
        return

    @functools.wraps(original)
    def inner(*args, **kwargs):
        _compile_is_used()
        return original(*args, **kwargs)
    for owner in owners:
        if getattr(owner, attribute, None) is original:
            put(owner, attribute, inner)


@patch("torch._inductor.compile_fx")
def _patch_inductor(module):
    if not wrap_compiler(module, "fx_codegen_and_compile", "compile.inductor"):
        wrap_compiler(module.GraphLowering, "compile_to_fn", "compile.inductor")


def _patch_async_compile(module):
    # Its kernels are compiled by other processes; this is the wait for them.
    wrap_compiler(getattr(module, "AsyncCompile", None), "wait", "compile.kernels")


@patch("torch._inductor.codecache")
def _patch_code_cache(module):
    # What another run compiled is only loaded; the class is here before 2.4.
    wrap_compiler(getattr(module, "FxGraphCache", None), "_lookup_graph", "compile.cache")
    if getattr(getattr(module, "AsyncCompile", None), "__module__", None) == module.__name__:
        _patch_async_compile(module)


PATCHES["torch._inductor.async_compile"] = _patch_async_compile


@patch("torch._functorch._aot_autograd.autograd_cache")
def _patch_autograd_cache(module):
    wrap_compiler(module.AOTAutogradCache, "_lookup", "compile.cache")


@patch("torch.distributed.checkpoint")
def _patch_distributed_checkpoint(module):
    for attribute in ("save", "async_save"):
        wrap(module, attribute, "checkpoint.save")
    wrap(module, "load", "checkpoint.load")


@patch("safetensors.torch")
def _patch_safetensors(module):
    for attribute in ("save_file", "save_model"):
        wrap(module, attribute, "checkpoint.save")
    for attribute in ("load_file", "load_model"):
        wrap(module, attribute, "checkpoint.load")


COLLECTIVES = (
    "init_process_group", "barrier", "monitored_barrier", "all_reduce", "reduce", "broadcast",
    "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
    "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "send", "recv", "isend", "irecv",
    "batch_isend_irecv", "all_gather_object", "gather_object", "broadcast_object_list",
    "scatter_object_list",
)


@patch("torch.distributed.distributed_c10d")
def _patch_distributed(module):
    package = sys.modules.get("torch.distributed")
    for attribute in COLLECTIVES:
        wrap((module, package), attribute, "dist." + attribute)


# ---- torch itself ----


@patch("torch")
def _patch_torch(module):
    """torch is completely loaded; from now on the patches of its parts are used."""
    global _is_compiling
    found = getattr(getattr(module, "compiler", None), "is_compiling", None)
    if found is not None:
        _is_compiling = found
    for attribute, name in (("save", "checkpoint.save"), ("load", "checkpoint.load")):
        wrap((module, sys.modules.get("torch.serialization")), attribute, name)
    _uses_compile((module,), "compile")
    import atexit
    atexit.register(_steps.finish)
    missing = [name for name in EXPECTED if name in sys.modules and name not in _done]
    for name in missing:
        trouble(name)
    _agent.tell(HOOKED)
    learn()
    follow()


# Parts that `import torch` loads and without which phases are missing.
EXPECTED = ("torch.nn.modules.module", "torch.utils.data.dataloader", "torch.autograd",
            "torch.optim.optimizer")
_done = set()


def _apply(name, module):
    try:
        if name in PATCHES:
            PATCHES[name](module)
        _done.add(name)
    except Exception:
        trouble(name)
    for function in AFTER.get(name, ()):
        try:
            function(module)
        except Exception as e:
            trouble(f"{name}: {e!r}")


# ---- the way in ----


class _Loader:
    """Loads a module as its own loader does, and wraps parts of it after that."""

    def __init__(self, name, loader):
        self.name = name
        self.loader = loader

    def __getattr__(self, attribute):
        return getattr(self.loader, attribute)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        # From here on the module looks as if its own loader had loaded it.
        module.__spec__.loader = module.__loader__ = self.loader
        before = BEFORE.get(self.name)
        if before is not None:
            before()
        self.loader.exec_module(module)
        _apply(self.name, sys.modules.get(self.name, module))


class _Finder:
    """First in sys.meta_path: asks the other finders for the modules of PATCHES."""

    def find_spec(self, name, path=None, target=None):
        if name not in PATCHES and name not in AFTER:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(name, spec.loader)
                return spec
        return None


class _Own:
    """So that `import lull` works under the profiler. A package of that name that the program has comes first."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name != "lull":
            return None
        from importlib.machinery import PathFinder
        for finder in [finder for finder in sys.meta_path if finder is not self]:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            # A folder without code, such as a checkout of lull beside the program, is no package of it.
            if spec is not None and spec.origin is not None:
                return spec
        return PathFinder.find_spec(name, [self.folder])


def _load(name, file):
    """A file beside this one, without importing a package named lull."""
    import os
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location(name, os.path.join(_folder, "lull", file))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _watch_requests():
    try:
        requests = _load("_lull_requests", "_requests.py")
        sys.modules["_lull_requests"] = requests
        requests.begin(_agent, PATCHES)
    except Exception:
        _agent.request_trouble()


def _watch_xla():
    try:
        PATCHES["jaxlib"] = _load("_lull_xla", "_xla.py").ask
    except Exception:
        pass  # then the agent does not record CUDA in that process, and says so


def enter_late():
    """The agent has come into a program that runs (lull attach), maybe not for the first time."""
    global _sources
    _sources = _agent.sources() & ~(OPS | MODULES | REQUESTS)
    if not _sources & TORCH:
        return
    _agent.tell(PACKAGE)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path = [_Finder(), *sys.meta_path]
    switch(True)
    # `torch` comes last, as when it is imported.
    for name in sorted(PATCHES, key=lambda name: name == "torch"):
        if name in sys.modules and name not in _done:
            _apply(name, sys.modules[name])
    if "torch" in _done:
        _agent.tell(HOOKED)


def leave_late():
    """It is about to leave: everything is as before."""
    # A new list: an import of another thread that goes through the old one must not skip a finder.
    sys.meta_path = [finder for finder in sys.meta_path if not isinstance(finder, (_Finder, _Own))]
    switch(False)


def begin(folder, is_late=False):
    """Called once, before the program."""
    global _agent, _enter, _folder, _leave, _sources
    import os
    _folder = folder
    if "LULL_TRY" in os.environ:
        _load("_lull_try", "_try.py").begin(sys.modules[__name__])
    _agent = _load("_lull_api", "__init__.py")._agent
    sys.meta_path.insert(0, _Own(folder))
    if _agent is None:
        return
    _enter, _leave, _sources = _agent.enter, _agent.leave, _agent.sources()
    if is_late:
        _Ops.has_lines = _learn_stacks()
        return
    if not _sources & TORCH:
        PATCHES.clear()
        BEFORE.clear()
    if _sources & REQUESTS:
        _watch_requests()
    if _sources & CUDA:
        _watch_xla()
    if PATCHES:
        sys.meta_path.insert(0, _Finder())
    if not _sources & TORCH:
        return
    _agent.tell(PACKAGE)
    # For calls of CUDA that wait, and for operators.
    _Ops.has_lines = _learn_stacks()
    # Also without PyTorch: where the interpreter is stripped, samples do not name the collector.
    import gc
    gc.callbacks.append(_agent.gc)
