"""lull - mark steps, ranges and requests, choose what the lull profiler records, and read its reports.

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

    report = lull.open("report1.lull")
    print(report.why())
    sum(report.kernels["dur"])

Reports are read without `lull profile`; lull-python(7) describes both parts.
"""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._report import Column as Column, Diff as Diff, Error as Error, FormatError as FormatError, Frame as Frame
    from ._report import MemoryGone as MemoryGone, NotFound as NotFound, ReadError as ReadError
    from ._report import RecordError as RecordError, Report as Report
    from ._report import ReportWarning as ReportWarning, Table as Table, UsageError as UsageError, Why as Why
    from ._report import open as open
    from typing import Any, Callable, List, Optional, TypeVar, Union
    __version__: str
    _F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["schedule", "step", "record", "range", "mark", "start", "stop", "is_recording", "profile",
           "request", "current_request", "serve", "token"]

# Of _report.py, which a program that is only recorded does not load.
_READING = frozenset(("Column", "Diff", "Error", "FormatError", "Frame", "MemoryGone", "NotFound", "ReadError",
                      "RecordError", "Report", "ReportWarning", "Table", "UsageError", "Why", "open"))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from . import _library
        return _library.library().lull_read_version().decode()
    if name not in _READING:
        raise AttributeError(f"module 'lull' has no attribute {name!r}")
    from . import _report
    return getattr(_report, name)


def __dir__() -> List[str]:
    return sorted([*globals(), *_READING])


def _load() -> Any:
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


def schedule(skip_first: int = 0, wait: int = 0, warmup: int = 0, active: int = 1, repeat: int = 0) -> bool:
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


def step(number: Optional[int] = None) -> None:
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
    """A range with a name: `with lull.record("augment"):`, or a decorator; also called range."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = str(name)

    def __enter__(self) -> record:
        if _agent:
            _agent.push(self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        if _agent:
            _agent.pop()

    def __call__(self, function: _F) -> _F:
        import functools

        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with record(self.name):
                return function(*args, **kwargs)
        return inner  # type: ignore[return-value]


def range(name: Any) -> Any:
    """The same as record(), and as a decorator also without a name: `@lull.range`."""
    if callable(name):
        return record(getattr(name, "__qualname__", repr(name)))(name)
    return record(name)


def mark(name: str) -> None:
    """Mark this moment."""
    if _agent:
        _agent.mark(str(name))


def start() -> None:
    """Start a recording; needs --capture-range=lull."""
    if _agent:
        _agent.start()


def stop() -> None:
    """End the recording."""
    if _agent:
        _agent.stop()


def is_recording() -> bool:
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
            self._open = requests.begin_mark(self.name, self.traceparent)
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
    if _agent:
        _agent.request_token(request)


class profile:
    """Record a part of this program: `with lull.profile("part.lull") as part:`, or a decorator.

    In a program that `lull launch` has started, its recorder does it; any other program attaches to itself, as
    `lull attach` does. Then `path` is where the report is, and open() reads it. What cannot be recorded, such as
    a part of what is recorded already, is a lull.RecordError with the recorder's sentence.
    """

    def __init__(self, output: Union[str, os.PathLike[str], None] = None) -> None:
        self.output = os.fspath(output) if output is not None else None
        self.path: Optional[str] = None
        self._part: Any = None

    def __enter__(self) -> profile:
        from lull import _part
        self.path = None
        part = _part.open_part()
        self.path = part.start(os.path.abspath(self.output) if self.output else None)
        self._part = part
        return self

    def __exit__(self, *exc: object) -> None:
        part, self._part = self._part, None
        self.path = part.stop()

    def __call__(self, function: _F) -> _F:
        import functools

        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with profile(self.output):
                return function(*args, **kwargs)
        return inner  # type: ignore[return-value]

    def open(self) -> Report:
        """The report of the part."""
        from lull import _report
        if self.path is None:
            raise _report.RecordError("lull.profile: nothing was recorded yet")
        return _report.open(self.path)


def load_ipython_extension(shell):
    """`%load_ext lull` in a notebook: %%lull records a cell, %lull shows a report."""
    from lull._notebook import load
    load(shell)
