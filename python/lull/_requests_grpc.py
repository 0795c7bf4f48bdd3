"""Requests of gRPC servers, those with threads and those with asyncio.

Loaded by _requests.py with the first server of gRPC. Only what gRPC documents is used: a server asks
a handler for the method of a call, and the method has the functions of the program. We give it a
handler whose functions are wrapped. A request arrives when the server asks, and may then wait for a
thread; it ends when its function has returned, or given its last part.
"""
import functools
import inspect
import sys

_requests = sys.modules["_lull_requests"]

# Statuses that say that the server failed; others are answers, also those that refuse.
FAILURES = ("UNKNOWN", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNIMPLEMENTED", "DEADLINE_EXCEEDED")


@_requests.careful
def _begin(name, context, moment):
    trace = ""
    for key, value in context.invocation_metadata() or ():
        if key == "traceparent":
            trace = str(value)
    return _requests.begin_request(name, trace, moment)


def _status_of(context):
    """Its name; asyncio's contexts have the number. None while the program has set none."""
    code = getattr(context, "code", lambda: None)()
    if isinstance(code, int):
        code = next((c for c in sys.modules["grpc"].StatusCode if c.value[0] == code), None)
    return getattr(code, "name", None)


@_requests.careful
def _end(request, context, error=None):
    """As the status says that the program set, or the exception. A client that waits no longer has hung up."""
    status = _status_of(context)
    is_gone = status is None and error is None and hasattr(context, "is_active") and not context.is_active()
    if status == "CANCELLED" or is_gone:
        request.status = _requests.HUNG_UP
    elif status in FAILURES:
        request.status = _requests.FAILED
    elif status not in (None, "OK"):
        request.status = status
    else:
        request.status = "OK"
        return _requests.end_request(request, error)
    _requests.end_request(request)


class _Parts:
    """The answers of a method that gives several."""

    def __init__(self, parts, request, context):
        # gRPC asks for the next one, and for nothing else.
        self._lull = parts if hasattr(parts, "__next__") else iter(parts), request, context

    def __iter__(self):
        return self

    def __next__(self):
        steps, request, context = self._lull
        _requests.work(request)
        try:
            part = next(steps)
        except StopIteration:
            _end(request, context)
            raise
        except BaseException as error:
            _end(request, context, error)
            raise
        request.part()
        return part

    def __getattr__(self, name):
        return getattr(self._lull[0], name)

    def __del__(self):
        # A client that hangs up is not asked for more. There is no request if the parts were none.
        told = self.__dict__.get("_lull")
        if told is not None and told[1].is_open:
            told[1].end(_requests.HUNG_UP)


def _of_threads(function, name, moment, is_stream):
    @functools.wraps(function)
    def call(message, context):
        request = _begin(name, context, moment)
        if request is None:
            return function(message, context)
        try:
            result = function(message, context)
            if is_stream:
                return _Parts(result, request, context)
        except BaseException as error:
            _end(request, context, error)
            raise
        _end(request, context)
        return result
    return call


def _of_coroutine(function, name, moment):
    @functools.wraps(function)
    async def call(message, context):
        request = _begin(name, context, moment)
        if request is None:
            return await function(message, context)
        try:
            result = await _requests._Steps(function(message, context), request)
        except BaseException as error:
            _end(request, context, error)
            raise
        _end(request, context)
        return result
    return call


def _of_generator(function, name, moment):
    @functools.wraps(function)
    async def call(message, context):
        request = _begin(name, context, moment)
        try:
            async for part in function(message, context):
                if request is not None:
                    request.part()
                yield part
        except BaseException as error:
            if request is not None:
                _end(request, context, error)
            raise
        if request is not None:
            _end(request, context)
    return call


@_requests.careful
def _method(method, name, moment=0):
    """The same method with a function that tells; None if it is of a kind that we do not know."""
    for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
        function = getattr(method, kind)
        if function is None:
            continue
        if inspect.isasyncgenfunction(function):
            wrapped = _of_generator(function, name, moment)
        elif inspect.iscoroutinefunction(function):
            wrapped = _of_coroutine(function, name, moment)
        else:
            wrapped = _of_threads(function, name, moment, kind.endswith("stream"))
        return method._replace(**{kind: wrapped})
    return None


def _wrap_handlers(handlers):
    import grpc

    class Handler(grpc.GenericRpcHandler):
        def __init__(self, handler):
            self._lull = handler

        def service(self, details):
            moment = _requests.now()
            method = self._lull.service(details)
            if method is None:
                return None
            return _method(method, details.method, moment) or method

        def __getattr__(self, name):
            return getattr(self._lull, name)
    return [Handler(handler) for handler in handlers or ()]


def patch(kind):
    """A class of servers."""
    init, add = kind.__init__, kind.add_generic_rpc_handlers

    @functools.wraps(init)
    def __init__(self, thread_pool, generic_handlers, *args, **kwargs):
        return init(self, thread_pool, _wrap_handlers(generic_handlers), *args, **kwargs)

    @functools.wraps(add)
    def add_generic_rpc_handlers(self, generic_rpc_handlers):
        return add(self, _wrap_handlers(generic_rpc_handlers))
    kind.__init__ = __init__
    kind.add_generic_rpc_handlers = add_generic_rpc_handlers
    registered = getattr(kind, "add_registered_method_handlers", None)
    if registered is None:  # before 1.64
        return

    @functools.wraps(registered)
    def add_registered_method_handlers(self, service_name, method_handlers):
        told = {name: _method(method, f"/{service_name}/{name}") or method for name, method in method_handlers.items()}
        return registered(self, service_name, told)
    kind.add_registered_method_handlers = add_registered_method_handlers
