"""lull - steps, ranges, requests and schedules for the lull profiler.

    import lull

    lull.schedule(skip_first=5, wait=1, warmup=1, active=3, repeat=1)
    for batch in loader:
        lull.step()
        with lull.record("augment"):
            batch = augment(batch)

A server whose requests are not found by themselves says where they are:

    with lull.request("generate"):
        for token in model.stream(prompt):
            lull.token()

`lull profile` finds phases of PyTorch and requests of web servers without any of this. Without `lull profile` every call does
nothing. schedule(), start() and stop() need `lull profile --capture-range=lull`.
"""
import os
import sys

__all__ = ["schedule", "step", "record", "mark", "start", "stop", "is_recording",
           "request", "current_request", "serve", "token"]


def _load():
    """The agent as a Python module, or None without `lull profile`."""
    module = sys.modules.get("_lull")
    if module is not None:
        return module
    path = os.environ.get("LULL_AGENT")
    if not path or "LULL_SESSION" not in os.environ:
        return None
    # Free-threaded builds have other structs; see source_torch.c.
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    try:
        from importlib.machinery import ExtensionFileLoader
        from importlib.util import module_from_spec, spec_from_loader
        loader = ExtensionFileLoader("_lull", path)
        spec = spec_from_loader("_lull", loader, origin=path)
        module = module_from_spec(spec)
        loader.exec_module(module)
    except Exception:
        return None
    sys.modules["_lull"] = module
    return module


_agent = _load()
_n_steps = 0


def schedule(skip_first=0, wait=0, warmup=0, active=1, repeat=0):
    """Record only some steps, from the next step() on, as torch.profiler.schedule does.

    Skip the first `skip_first` steps. Then each round waits for `wait` steps, warms up for
    `warmup` steps and records `active` steps into its own report. There are `repeat` rounds; 0
    repeats to the end. Returns True if the schedule is used, which needs
    `lull profile --capture-range=lull`.
    """
    numbers = (skip_first, wait, warmup, active, repeat)
    if any(not isinstance(n, int) or n < 0 for n in numbers) or active < 1:
        raise ValueError("lull.schedule: active must be an integer of 1 or more, the others of 0 "
                         "or more")
    if repeat != 1 and wait + warmup < 1:
        raise ValueError("lull.schedule: rounds that repeat need a step of wait or warmup between "
                         "them")
    return bool(_agent and _agent.schedule(*numbers))


def step(number=None):
    """Start a step of the program's loop; the previous one ends."""
    global _n_steps
    if number is not None:
        _n_steps = number
    if _agent:
        _agent.step(_n_steps)
        hooks = sys.modules.get("_lull_hooks")
        if hooks is not None:
            hooks.follow()
    _n_steps += 1


class record:
    """A range with a name: `with lull.record("augment"):`, or a decorator."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = str(name)

    def __enter__(self):
        if _agent:
            _agent.push(self.name)
        return self

    def __exit__(self, *exc):
        if _agent:
            _agent.pop()
        return False

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def inner(*args, **kwargs):
            with record(self.name):
                return function(*args, **kwargs)
        return inner


def mark(name):
    """Mark this moment."""
    if _agent:
        _agent.mark(str(name))


def start():
    """Start a recording; needs --capture-range=lull."""
    if _agent:
        _agent.start()


def stop():
    """End the recording."""
    if _agent:
        _agent.stop()


def is_recording():
    """True while a recording is on."""
    return bool(_agent and _agent.is_recording())


# ---- requests ----


def _requests():
    """The module that knows the requests, or None where none are recorded."""
    return sys.modules.get("_lull_requests") if _agent else None


class request:
    """A request to this program: `with lull.request("generate"):`, or a decorator.

    The name says what kind of request it is, such as a path. `traceparent` is the header of that
    name, as OpenTelemetry sends it. Inside another request it does nothing.
    """

    __slots__ = ("name", "traceparent", "_open")

    def __init__(self, name="request", traceparent=""):
        self.name = str(name)
        self.traceparent = str(traceparent or "")
        self._open = None

    def __enter__(self):
        requests = _requests()
        if requests is not None:
            self._open = requests.begin_request(self.name, self.traceparent)
        return self

    def __exit__(self, kind, error, trace):
        if self._open is not None:
            _requests().end_request(self._open, error)
            self._open = None
        return False

    def __call__(self, function):
        import functools
        import inspect
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapped(*args, **kwargs):
                with request(self.name, self.traceparent):
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def wrapped(*args, **kwargs):
                with request(self.name, self.traceparent):
                    return function(*args, **kwargs)
        return wrapped


def current_request():
    """The request that this code works for, to hand it to serve() on another thread; or None."""
    requests = _requests()
    return requests.current() if requests is not None else None


class serve:
    """This thread works for these requests: `with lull.serve(*batch):`.

    They come from current_request(); None among them is ignored. For threads that get their work
    from a queue, and for batches.
    """

    __slots__ = ("requests", "_before")

    def __init__(self, *requests):
        self.requests = [r for r in requests if r is not None]
        self._before = None

    def __enter__(self):
        requests = _requests()
        if requests is not None:
            self._before = requests.serve(self.requests)
        return self

    def __exit__(self, *exc):
        requests = _requests()
        if requests is not None:
            requests.resume(self._before)
        return False


def token(request=None):
    """A token of the answer to this request is ready (default: the one this code works for)."""
    if request is None:
        request = current_request()
    if request is not None:
        request.token()
