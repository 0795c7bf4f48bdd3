"""Requests of servers, without a change to them.

Loaded by _hooks.py where requests are recorded. It wraps the places at which the servers of Python
take a request and end it; what a request is to the recorder stands in src/wire/request_mark.h.

Which request a piece of code works for is a context variable, so asyncio's tasks and callbacks have
it; pools of threads get it from whoever submits to them, and who takes an item from a queue from who
put it there (_requests_queues.py). The agent is told each time a thread turns to another request.

Rules for a wrapper: pass everything on, also exceptions; where something of ours fails, do what the
program would have done without us. What runs for each request is not `careful` but has the same in
it: a request waits for it, and few of its code is in a cache then.
"""
import contextvars
import functools
import re
import sys
import weakref

# Kinds of marks, as in src/wire/request_mark.h.
ENDED, TOKEN, PART = 2, 3, 4
OSRT = 1 << 1  # of what is recorded (src/wire/sources.def): calls of the C library
HUNG_UP, FAILED = "hung up", "failed"

# Names are kept for the whole recording: further ones share one.
MAX_NAMES = 256
MAX_KNOWN_PATH = 200  # characters; names of longer paths are not kept

_current = contextvars.ContextVar("lull_request", default=None)
_arrival = contextvars.ContextVar("lull_arrival", default=0)
_connection = contextvars.ContextVar("lull_connection", default=None)  # of hypercorn, or of asyncio's streams
_agent = None
_names = set()
_is_id = re.compile(r"\d+|[0-9a-fA-F-]{16,}").fullmatch


def careful(function):
    """The function, or None where it fails: no error of ours reaches the program."""
    @functools.wraps(function)
    def inner(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            return None
    return inner


def _beside(name):
    """A file beside this one, loaded once."""
    import os
    from importlib.util import module_from_spec, spec_from_file_location
    if "_lull" + name not in sys.modules:
        spec = spec_from_file_location("_lull" + name, os.path.join(os.path.dirname(__file__), name + ".py"))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["_lull" + name] = module
    return sys.modules["_lull" + name]


class Request:
    """A request that arrived and may have ended."""
    __slots__ = ("id", "name", "status", "is_open", "n_parts")

    def __init__(self, name, trace="", moment=0):
        self.name = name if name in _names else _short(name)
        self.status = "done"
        self.is_open = True
        self.n_parts = 0
        self.id = _agent.request(self.name, trace, moment)

    def token(self):
        if self.is_open:
            try:
                _agent.request_mark(TOKEN, self.id, "token")
            except Exception:
                pass

    @careful
    def part(self):
        """A part of the answer was sent; the first one may be all of it."""
        self.n_parts += 1
        _agent.request_mark(PART, self.id, "part")

    def end(self, how=None):
        if self.is_open:
            self.is_open = False
            try:
                how = str(how or self.status)
                if _agent.request_told() is self:
                    _agent.request_set_told(None)
                    _agent.request_end(self.id, how)
                else:
                    _agent.request_mark(ENDED, self.id, how)
            except Exception:
                pass


class Batch:
    """Requests that the same code works for. The task of asyncio that it began in owns it."""
    __slots__ = ("requests", "owner")

    def __init__(self, requests, owner):
        self.requests = list(requests)
        self.owner = owner

    @property
    def is_open(self):
        for r in self.requests:
            if r.is_open:
                return True
        return False

    def all_open(self):
        """A list that nobody changes: others have it, too."""
        for r in self.requests:
            if not r.is_open:
                self.requests = [r for r in self.requests if r.is_open]
                break
        return self.requests

    def add(self, requests):
        self.requests = self.all_open() + [r for r in requests if r not in self.requests]

    def drop(self, request):
        """Whether it was one of them."""
        is_in = request in self.requests
        self.requests = [r for r in self.requests if r is not request]
        return is_in

    def clear(self):
        self.requests = []

    def token(self):
        for r in self.all_open():
            r.token()


def _short(name):
    name = str(name)[:200]
    if name not in _names:
        if len(_names) >= MAX_NAMES:
            return name.split(" ", 1)[0] + " *"
        _names.add(name)
    return name


def http_name(method, path):
    """GET /items/:id, so that requests for different items have one name."""
    path = str(path).partition("?")[0]
    return _known_name(method, path) if len(path) <= MAX_KNOWN_PATH else _name_of(method, path)


def _name_of(method, path):
    return "%s %s" % (method, "/".join(":id" if part and _is_id(part) else part for part in path.split("/")))


_known_name = functools.lru_cache(MAX_NAMES)(_name_of)


def current():
    """The request that this code works for, or None."""
    request = _current.get()
    return request if request is not None and request.is_open else None


def work(request):
    """This thread works for this request from now on, or for none; begin() has the agent's in place of it."""


def tell(batch):
    """This batch changed, and the thread works for it."""
    _agent.request_set_told(_agent)  # differs from every request
    work(batch)


@careful
def serve(requests):
    """This thread works for all of these; what it worked for before."""
    before = _agent.request_told()
    requests = [one for r in requests for one in (r.all_open() if type(r) is Batch else [r] if r.is_open else ())]
    taken = _current.get()
    if type(taken) is Batch:  # what it took from queues; but here the program says it itself
        taken.clear()
    if requests:
        _agent.request_set_told(requests)  # differs from every request
        _agent.request_work(requests[0].name, *(r.id for r in requests))
    else:
        work(None)
    return before


@careful
def resume(before):
    """And now for what it worked for before."""
    if isinstance(before, list):
        serve(before)
    else:
        work(before)


@careful
def now():
    """This moment, as the agent counts time."""
    return _agent.request_now()


# ---- how long a request has waited in its socket ----


def arrival_of(connection):
    """The moment at which the data came that the server reads now, as far as that is known, or now."""
    try:
        return _agent.request_arrival(connection.fileno())
    except Exception:
        return now()


def came_to_loop(transport):
    """The same for a connection of an event loop, which knew of the data before it read them."""
    try:
        return _agent.request_came(transport.get_extra_info("socket").fileno())
    except Exception:
        return now()


@careful
def _came_to_mark():
    """When the data came that are marked as a request now, in the task of their connection; 0: nobody knows."""
    connection = _connection.get()
    return 0 if connection is None else _agent.request_took(connection.get_extra_info("socket").fileno())


_is_watching = False


def watch_loops():
    """From now on the agent notes when data came that event loops read."""
    global _is_watching
    if not _is_watching:
        _is_watching = True
        _agent.request_came(-1)


def begin_request(name, trace="", moment=0):
    """A request arrived, and this code works for it. None if it is part of another, or we fail."""
    around = _current.get()
    if around is not None and around.is_open:
        return None
    try:
        request = Request(name, trace, moment or 0)
        _current.set(request)
        _agent.request_set_told(request)
        _agent.request_work(request.name, request.id)
        return request
    except Exception:
        return None


def begin_mark(name, trace=""):
    """The same for a request that the program marks."""
    return begin_request(name, trace, _came_to_mark()) if current() is None else None


def end_request(request, error=None):
    """The end of what begin_request() gave, with the exception that ended it."""
    if request is None:
        return
    request.end(None if error is None else HUNG_UP if _is_hang_up(error) else FAILED)
    if _current.get() is request:
        _current.set(None)


def _is_hang_up(error):
    return isinstance(error, (ConnectionError, GeneratorExit)) or type(error).__name__ in (
        "CancelledError", "ClientDisconnect", "ClientDisconnected")


def _text_of(value):
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


# ---- code that runs in pieces, or elsewhere ----


class _Steps:
    """A coroutine that tells which request it works for, also in event loops we do not know."""
    __slots__ = ("coroutine", "request")

    def __init__(self, coroutine, request):
        self.coroutine = coroutine
        self.request = request

    def __await__(self):
        step, value = self.coroutine.send, None
        while True:
            before = _agent.request_told()
            work(self.request)
            try:
                given = step(value)
            except StopIteration as end:
                return end.value
            finally:
                resume(before)
            try:
                step, value = self.coroutine.send, (yield given)
            except GeneratorExit:
                self.coroutine.close()
                raise
            except BaseException as error:
                step, value = self.coroutine.throw, error


class _Bound:
    """A function that works for the request of whoever handed it to another thread."""
    __slots__ = ("function", "request")

    def __init__(self, function, request):
        self.function = function
        self.request = request

    def __call__(self, *args, **kwargs):
        before, token = _agent.request_told(), _current.set(self.request)
        work(self.request)
        try:
            return self.function(*args, **kwargs)
        finally:
            resume(before)
            _current.reset(token)


def _patch_events(module):
    run = _agent.request_handles(module.Handle)
    if run is not None:
        module.Handle._run = run


def _patch_pool(module):
    original = module.ThreadPoolExecutor.submit

    @functools.wraps(original)
    def submit(self, fn, /, *args, **kwargs):
        request = current()
        return original(self, fn if request is None else _Bound(fn, request), *args, **kwargs)
    module.ThreadPoolExecutor.submit = submit


def _patch_queue(module):
    _beside("_requests_queues").patch_queue(module)


def _patch_asyncio_queue(module):
    _beside("_requests_queues").patch_asyncio(module)


def _patch_futures(module):
    _beside("_requests_queues").patch_futures(module)


def _patch_threading(module):
    _beside("_requests_queues").patch_threading(module)


def _patch_anyio(module):
    original = module.run_sync

    @functools.wraps(original)
    def run_sync(func, *args, **kwargs):
        request = current()
        return original(func if request is None else _Bound(func, request), *args, **kwargs)
    module.run_sync = run_sync


# ---- http.server, and what is built on it: wsgiref, werkzeug ----

_accepted = {}  # by descriptor: a connection, and when a server took it
_unclosed = {}  # by the id of a connection: the request whose answer ends when it is closed


def _sees_reads():
    """Whether the agent sees when connections are accepted and read: then it knows when data came."""
    return bool(_agent.sources() & OSRT)


def _patch_socketserver(module):
    if not _sees_reads():
        _patch_accept(module.TCPServer)
    original = module.TCPServer.shutdown_request

    @functools.wraps(original)
    def shutdown_request(self, request):
        # Before: the client may go on while our thread waits for a CPU.
        ended = _unclosed.pop(id(request), None) if _unclosed else None
        if ended is not None:
            end_request(ended)
        return original(self, request)
    shutdown_request._is_lull = True
    module.TCPServer.shutdown_request = shutdown_request


def _patch_accept(server):
    original, ref, now_of = server.get_request, weakref.ref, _agent.request_now

    @functools.wraps(original)
    def get_request(self):
        result = original(self)
        try:
            connection = result[0]
            _accepted[connection.fileno()] = ref(connection), now_of()
        except Exception:
            pass
        return result
    server.get_request = get_request


def _is_endless(handler):
    """Whether the head of the answer, which is not sent yet, says nothing of its length."""
    status = handler._lull_request.status
    if handler.command == "HEAD" or type(status) is not int or status in (204, 304):
        return False
    for line in handler._headers_buffer:
        if line[:15].lower() == b"content-length:" or line[:18].lower() == b"transfer-encoding:":
            return False
    return True


def _closes_later(handler):
    """Whether the client learns from the end of the connection that the answer is whole, and we learn of that."""
    closer = getattr(type(handler.server), "shutdown_request", None)
    if not getattr(handler, "close_connection", False) or not getattr(closer, "_is_lull", False):
        return False
    _unclosed[id(handler.request)] = handler._lull_request
    return True


def _end_http(handler, error=None):
    request = handler._lull_request
    handler._lull_request = None
    try:
        end_request(request, error)
    except Exception:
        pass


def _ends_http(method):
    """The request of a handler ends with this method of it."""
    @functools.wraps(method)
    def inner(self, *args, **kwargs):
        try:
            result = method(self, *args, **kwargs)
        except BaseException as error:
            _end_http(self, error)
            raise
        if self._lull_request is not None:
            try:
                if self._lull_is_endless and _closes_later(self):
                    self._lull_request = None
                else:
                    _end_http(self)
            except Exception:
                pass
        return result
    inner._is_lull = True
    return inner


def _wrap_own(of, handler):
    """Servers that are built on this one have methods of their own."""
    for name in ("handle_one_request", "handle"):
        for kind in of.__mro__:
            method = kind.__dict__.get(name)
            if method is not None and not getattr(method, "_is_lull", False) and kind is not handler:
                if issubclass(kind, handler):
                    setattr(kind, name, _ends_http(method))


def _patch_http_answer(handler):
    """What the head of the answer says."""
    respond, end_head = handler.send_response_only, handler.end_headers

    @functools.wraps(respond)
    def send_response_only(self, code, *args, **kwargs):
        request = self._lull_request
        if request is not None and code >= 200:
            request.status = int(code)
        return respond(self, code, *args, **kwargs)

    @functools.wraps(end_head)
    def end_headers(self):
        if self._lull_request is not None:
            try:
                self._lull_is_endless = _is_endless(self)
            except Exception:
                pass
        return end_head(self)

    handler._lull_is_endless = False  # nothing there says how long it is
    handler.end_headers = end_headers
    handler.send_response_only = send_response_only


def _patch_http_server(module):
    """A request begins when its first data came, and ends when its method returns."""
    handler = module.BaseHTTPRequestHandler
    parse = handler.parse_request

    @functools.wraps(parse)
    def parse_request(self):
        if self._lull_request is not None:  # its method returns later, or never comes to us: it is done with that one
            _end_http(self)
        moment = self._lull_arrival
        if moment:
            self._lull_arrival = 0
        else:
            moment = arrival_of(getattr(self, "connection", None))
        is_good = parse(self)
        if is_good:
            try:
                trace = self.headers.get("traceparent", "")
                self._lull_request = begin_request(http_name(self.command, self.path), trace, moment)
            except Exception:
                pass
        return is_good

    def __init_subclass__(cls, **kwargs):
        super(handler, cls).__init_subclass__(**kwargs)
        wrap(cls, handler)

    wrap = careful(_wrap_own)
    handler.__init_subclass__ = classmethod(__init_subclass__)
    handler._lull_arrival, handler._lull_request = 0, None
    _patch_http_answer(handler)
    handler.parse_request = parse_request
    handler.handle_one_request = _ends_http(handler.handle_one_request)
    handler.finish = _ends_http(handler.finish)
    for kind in _all_kinds(handler):
        wrap(kind, handler)
    if _sees_reads():
        watch_loops()
    else:
        _patch_setup(handler)


def _all_kinds(of):
    """The classes that are derived from this one already."""
    for kind in of.__subclasses__():
        yield kind
        yield from _all_kinds(kind)


def _patch_setup(handler):
    """The first request of a connection waits for a thread, if it is there before the thread."""
    original = handler.setup

    @functools.wraps(original)
    def setup(self):
        try:
            connection = self.request
            fd = connection.fileno()
            accepted = _accepted.pop(fd, None)
            if accepted and accepted[0]() is connection:
                self._lull_arrival = _agent.request_waiting(fd, accepted[1])
        except Exception:
            pass
        return original(self)
    handler.setup = setup


# ---- WSGI ----


class _Body:
    """The answer of a WSGI application in parts. The server closes it; before its end if the client is gone."""

    def __init__(self, body, request, is_end):
        self._lull = iter(body), body, request
        self._lull_is_end = is_end  # whether the request ends with it
        self._lull_is_whole = False

    def __iter__(self):
        return self

    def __next__(self):
        steps, _, request = self._lull
        work(request)
        try:
            part = next(steps)
        except StopIteration:
            self._lull_is_whole = True
            self._lull_end()
            raise
        except BaseException as error:
            self._lull_is_whole = True
            self._lull_end(error)
            raise
        if request.is_open:
            request.part()
        return part

    @careful
    def _lull_end(self, error=None):
        request = self._lull[2]
        if not self._lull_is_whole:
            request.status = HUNG_UP
        if self._lull_is_end:
            end_request(request, error)

    def close(self):
        body = self._lull[1]
        try:
            if hasattr(body, "close"):
                body.close()
        finally:
            self._lull_end()

    def __getattr__(self, name):
        return getattr(self._lull[1], name)


@careful
def _begin_wsgi(environ):
    name = http_name(environ.get("REQUEST_METHOD", "GET"), environ.get("PATH_INFO", "/"))
    return begin_request(name, environ.get("HTTP_TRACEPARENT", ""))


def _wsgi(original):
    """The __call__(self, environ, start_response) of an application."""
    @functools.wraps(original)
    def __call__(self, environ, start_response):
        request, around = None, current()
        if around is None:
            request = _begin_wsgi(environ)
        told = request or around
        if told is None:
            return original(self, environ, start_response)

        def respond(status, *args, **kwargs):
            told.status = str(status).split(" ", 1)[0]
            return start_response(status, *args, **kwargs)
        try:
            body = original(self, environ, respond)
        except BaseException as error:
            end_request(request, error)
            raise
        if hasattr(type(body), "__len__") or type(body).__name__ == "FileWrapper" or type(body) is _Body:
            end_request(request)
            return body
        return _Body(body, told, request is not None)
    return __call__


def _patch_flask(module):
    module.Flask.wsgi_app = _wsgi(module.Flask.wsgi_app)


def _patch_django_wsgi(module):
    module.WSGIHandler.__call__ = _wsgi(module.WSGIHandler.__call__)


def _patch_wsgiref(module):
    """For servers that use its handlers without http.server."""
    original = module.BaseHandler.run

    @functools.wraps(original)
    def run(self, application):
        if not callable(application):
            return original(self, application)
        call = _wsgi(lambda _, environ, start_response: application(environ, start_response))
        return original(self, functools.partial(call, None))
    module.BaseHandler.run = run


# ---- ASGI ----


def _header(scope, wanted):
    for key, value in scope.get("headers") or ():
        if key.lower() == wanted:
            return _text_of(value)
    return ""


def _length_of(message):
    """How long the answer is, if its head says so."""
    headers = message.get("headers")
    for key, value in headers if isinstance(headers, (list, tuple)) else ():
        if key.lower() == b"content-length":
            return int(value)
    return None


def _watch_send(send, request):
    """The application's send(): the status, each part of the answer but the empty last one, and its end.

    The application may go on then, with what it calls tasks in the background: the client does not wait for it,
    and may leave.
    """
    left = None  # bytes, if the client knows

    async def inner(message):
        look(message)
        result = await send(message)
        if is_last(message):
            end_request(request)
        return result

    @careful
    def look(message):
        nonlocal left
        if message is None:  # hypercorn's end: without an answer it gives one itself
            request.status = 500 if request.status == "done" else request.status
        elif message.get("type") == "http.response.start" and request.status != HUNG_UP:
            request.status = message.get("status", "done")
            left = _length_of(message)
        elif message.get("type") == "http.response.body" and message.get("body"):
            request.part()

    @careful
    def is_last(message):
        nonlocal left
        if message is None or message.get("type") != "http.response.body":
            return False
        if left is not None:
            left -= len(message.get("body", b""))
        return not message.get("more_body") or left is not None and left <= 0
    return inner


def _watch_receive(receive, request):
    async def inner():
        message = await receive()
        if isinstance(message, dict) and message.get("type") == "http.disconnect" and request.is_open:
            request.status = HUNG_UP  # what is sent from now on reaches nobody
        return message
    return inner


@careful
def _begin_asgi(scope):
    name = http_name(scope.get("method", "GET"), scope.get("path", "/"))
    moment = _arrival.get()
    _arrival.set(0)
    return begin_request(name, _header(scope, b"traceparent"), moment)


async def _asgi_request(call, scope, receive, send):
    request = _begin_asgi(scope)
    if request is None:
        return await call(scope, receive, send)
    try:
        coroutine = call(scope, _watch_receive(receive, request), _watch_send(send, request))
        result = await (_Steps(coroutine, request) if hasattr(coroutine, "throw") else coroutine)
    except BaseException as error:
        end_request(request, error)
        raise
    end_request(request)
    return result


def _asgi(original):
    """The __call__(self, scope, receive, send) of an application."""
    @functools.wraps(original)
    def __call__(self, scope, receive, send):
        call = functools.partial(original, self)
        if not isinstance(scope, dict) or scope.get("type") != "http" or current() is not None:
            return call(scope, receive, send)
        return _asgi_request(call, scope, receive, send)
    return __call__


class _Application:
    """An ASGI application inside a server."""

    def __init__(self, application):
        self._lull = application

    def __call__(self, scope, receive, send):
        return _asgi(_Application._call)(self, scope, receive, send)

    def _call(self, scope, receive, send):
        return self._lull(scope, receive, send)

    def __getattr__(self, name):
        return getattr(self._lull, name)


def _patch_uvicorn_config(module):
    original = module.Config.load

    @functools.wraps(original)
    def load(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        application = getattr(self, "loaded_app", None)
        if callable(application) and not isinstance(application, _Application):
            self.loaded_app = _Application(application)
        return result
    module.Config.load = load


def _patch_uvicorn_protocol(module):
    """A request arrives when its head is read, and may wait for those before it, and for its first step."""
    cycle = module.RequestResponseCycle
    init, original = cycle.__init__, cycle.run_asgi

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._lull_arrival = came_to_loop(getattr(self, "transport", None))

    @functools.wraps(original)
    def run_asgi(self, app):
        return _arrive(original(self, app), getattr(self, "_lull_arrival", 0) or now())
    cycle.__init__, cycle.run_asgi = __init__, run_asgi
    watch_loops()


async def _arrive(coroutine, moment):
    _arrival.set(moment)
    return await coroutine


def _patch_starlette(module):
    module.Starlette.__call__ = _asgi(module.Starlette.__call__)


def _patch_django_asgi(module):
    module.ASGIHandler.__call__ = _asgi(module.ASGIHandler.__call__)


def _patch_hypercorn(module):
    """Each request is a task that calls _handle()."""
    original = module._handle

    @functools.wraps(original)
    def _handle(app, config, scope, receive, send, *args, **kwargs):
        def call(scope, receive, send):
            return original(app, config, scope, receive, send, *args, **kwargs)
        if not isinstance(scope, dict) or scope.get("type") != "http":
            return call(scope, receive, send)
        return _arrive(_asgi_request(call, scope, receive, send), came_to_loop(_connection.get()))
    module._handle = _handle


def _patch_hypercorn_server(module):
    """What tasks of a connection do is done for it."""
    original = module.TCPServer.run

    @functools.wraps(original)
    async def run(self):
        _connection.set(getattr(self, "writer", None))
        return await original(self)
    module.TCPServer.run = run
    watch_loops()


# ---- servers that programs write on asyncio's streams; they mark their requests ----


def _patch_streams(module):
    original = module.StreamReaderProtocol.connection_made

    @functools.wraps(original)
    def connection_made(self, transport):
        # The callback is the server's; it runs in a task that inherits this context, which is of this connection alone.
        if getattr(self, "_client_connected_cb", None) is not None:
            _connection.set(transport)
            watch_loops()
        return original(self, transport)
    module.StreamReaderProtocol.connection_made = connection_made
    start = module.start_server

    @functools.wraps(start)
    async def start_server(*args, **kwargs):
        watch_loops()  # before its first connection
        return await start(*args, **kwargs)
    module.start_server = start_server


# ---- aiohttp ----


def _patch_aiohttp(module):
    original = module.RequestHandler._handle_request

    @functools.wraps(original)
    def _handle_request(self, request, *args, **kwargs):
        moment = came_to_loop(self.transport)
        return _aiohttp_request(original(self, request, *args, **kwargs), request, moment)
    module.RequestHandler._handle_request = _handle_request
    watch_loops()


def _patch_aiohttp_response(module):
    """Answers in parts."""
    original = module.StreamResponse.write

    @functools.wraps(original)
    def write(self, data):
        count_part()
        return original(self, data)

    @careful
    def count_part():
        request = current()
        if type(request) is Request:
            request.part()
    module.StreamResponse.write = write


@careful
def _begin_aiohttp(message, moment):
    if message.headers.get("Upgrade", "").lower() == "websocket":
        return None  # lasts as long as its client likes
    name = http_name(message.method, message.path)
    return begin_request(name, message.headers.get("traceparent", ""), moment)


async def _aiohttp_request(coroutine, message, moment):
    request = _begin_aiohttp(message, moment)
    if request is None:
        return await coroutine
    try:
        result = await _Steps(coroutine, request)
        answer = result[0] if isinstance(result, tuple) else result
        request.status = getattr(answer, "status", request.status)
    except BaseException as error:
        end_request(request, error)
        raise
    end_request(request)
    return result


# ---- gRPC ----


def _patch_grpc(module):
    _beside("_requests_grpc").patch(module._Server)


def _patch_grpc_aio(module):
    _beside("_requests_grpc").patch(module.Server)


# ---- models ----


def _patch_transformers(module):
    """Tokens; and where no server tells, each call of generate() is a request."""
    original = module.GenerationMixin.generate

    @functools.wraps(original)
    def generate(self, *args, **kwargs):
        request = begin_request("generate")
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            end_request(request, error)
            raise
        end_request(request)
        return result
    module.GenerationMixin.generate = generate
    update = module.GenerationMixin._update_model_kwargs_for_generation

    @functools.wraps(update)
    def _update_model_kwargs_for_generation(self, *args, **kwargs):
        """Called once for each token."""
        count_token()
        return update(self, *args, **kwargs)

    @careful
    def count_token():
        request = current()
        if request is not None:
            request.token()
    module.GenerationMixin._update_model_kwargs_for_generation = _update_model_kwargs_for_generation


def _engine(name):
    return lambda module: getattr(_beside("_requests_engines"), name)(module)


PATCHES = {
    "asyncio.events": _patch_events,
    "asyncio.streams": _patch_streams,
    "concurrent.futures.thread": _patch_pool,
    "anyio.to_thread": _patch_anyio,
    "queue": _patch_queue,
    "asyncio.queues": _patch_asyncio_queue,
    "concurrent.futures._base": _patch_futures,
    "threading": _patch_threading,
    "socketserver": _patch_socketserver,
    "http.server": _patch_http_server,
    "wsgiref.handlers": _patch_wsgiref,
    "flask.app": _patch_flask,
    "django.core.handlers.wsgi": _patch_django_wsgi,
    "django.core.handlers.asgi": _patch_django_asgi,
    "starlette.applications": _patch_starlette,
    "uvicorn.config": _patch_uvicorn_config,
    "uvicorn.protocols.http.h11_impl": _patch_uvicorn_protocol,
    "uvicorn.protocols.http.httptools_impl": _patch_uvicorn_protocol,
    "hypercorn.asyncio.task_group": _patch_hypercorn,
    "hypercorn.trio.task_group": _patch_hypercorn,
    "hypercorn.asyncio.tcp_server": _patch_hypercorn_server,
    "aiohttp.web_protocol": _patch_aiohttp,
    "aiohttp.web_response": _patch_aiohttp_response,
    "grpc._server": _patch_grpc,
    "grpc.aio._server": _patch_grpc_aio,
    "transformers.generation.utils": _patch_transformers,
    "vllm.v1.core.sched.scheduler": _engine("patch_vllm"),
    "sglang.srt.managers.scheduler": _engine("patch_sglang"),
    "tensorrt_llm._torch.pyexecutor.py_executor": _engine("patch_tensorrt"),
    "triton_python_backend_utils": _engine("patch_triton"),
}


def begin(agent, patches):
    """Add what is wrapped here to the modules that _hooks.py waits for."""
    global _agent, work
    _agent, work = agent, agent.request_work_for
    agent.request_turns(Request, Batch, _current)

    def watched(function):
        def apply(module):
            try:
                function(module)
            except Exception:
                agent.request_trouble()
        return apply
    for name, function in PATCHES.items():
        if name in sys.modules:
            watched(function)(sys.modules[name])
        else:
            patches[name] = watched(function)
