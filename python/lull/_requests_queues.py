"""Requests that wait in a queue until a thread or a task takes them.

Loaded by _requests.py. What is put into a queue by code that works for a request carries that
request; who takes it works for the request from then on, besides those it has taken before. So a
thread that makes batches works for all requests of a batch. It is done with a request when that
ends, when its future gets its result, and with all of them when it waits for the next one without a
limit. While it waits it works for none.

A thread that code of a request starts works for that request, too.
"""
import functools
import sys

_requests = sys.modules["_lull_requests"]
_current, Batch = _requests._current, _requests.Batch
_tag, _untag = _requests._agent.request_tag, _requests._agent.request_untag

def _holders():
    """The requests that this code works for."""
    holder = _current.get()
    if holder is None:
        return []
    if type(holder) is Batch:
        return holder.all_open()
    return [holder] if holder.is_open else []


@_requests.careful
def _take_back(queue, item):
    """It could not be put in."""
    tags = queue._lull_tags
    waiting = tags.get(id(item)) if tags else None
    if waiting:
        waiting.pop()
        if not waiting:
            del tags[id(item)]


# What follows runs for each item, so it is not `careful` but has the same in it.


def _take(queue, item):
    """Whoever has a request of its own only reads what others did for it."""
    try:
        requests, holder = _untag(queue, item), _current.get()
        if type(holder) is Batch:
            if not requests:
                _requests.work(holder)
                return
            holder.add(requests)
        elif requests and (holder is None or not holder.is_open):
            holder = Batch(requests, _task())
            _current.set(holder)
        else:
            return
        _requests.tell(holder)
    except Exception:
        pass


def _task():
    """The task of asyncio that runs, or None."""
    events = sys.modules.get("asyncio.events")
    if events is None or events._get_running_loop() is None:
        return None
    return sys.modules["asyncio"].current_task()


def _wait(is_last):
    """This code waits for an item; if is_last it has nothing else to do."""
    holder = _current.get()
    if type(holder) is Batch:
        try:
            if is_last and holder.owner is _task():
                holder.clear()
            _requests.work(None)
        except Exception:
            pass


@_requests.careful
def _wait_for(queue, timeout):
    if not queue._qsize():
        _wait(timeout is None)


def patch_queue(module):
    put, get = module.Queue.put, module.Queue.get

    @functools.wraps(put)
    def put_(self, item, *args, **kwargs):
        _tag(self, item)
        try:
            return put(self, item, *args, **kwargs)
        except BaseException:
            _take_back(self, item)
            raise

    @functools.wraps(get)
    def get_(self, block=True, timeout=None):
        if block:
            _wait_for(self, timeout)
        try:
            item = get(self, block, timeout)
        except BaseException:
            _requests.work(_current.get())
            raise
        _take(self, item)
        return item
    module.Queue.put, module.Queue.get = put_, get_
    module.Queue._lull_tags = None  # those that have some have their own


def patch_asyncio(module):
    put, take, get = module.Queue.put_nowait, module.Queue.get_nowait, module.Queue.get

    @functools.wraps(put)
    def put_nowait(self, item):
        _tag(self, item)
        try:
            return put(self, item)
        except BaseException:
            _take_back(self, item)
            raise

    @functools.wraps(take)
    def get_nowait(self):
        item = take(self)
        _take(self, item)
        return item

    @functools.wraps(get)
    async def get_(self):
        if type(_current.get()) is Batch and self.empty():
            _wait(True)
        return await get(self)
    module.Queue.put_nowait, module.Queue.get_nowait, module.Queue.get = put_nowait, get_nowait, get_
    module.Queue._lull_tags = None


def patch_futures(module):
    """A result that somebody waits for: its thread is done with that request."""
    init = module.Future.__init__

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        holder = _current.get()
        if holder is not None and holder.is_open:
            self._lull_request = holder
        return init(self, *args, **kwargs)

    def ends_with(name):
        original = getattr(module.Future, name)

        @functools.wraps(original)
        def inner(self, *args, **kwargs):
            drop(self.__dict__.get("_lull_request"))
            return original(self, *args, **kwargs)
        setattr(module.Future, name, inner)

    @_requests.careful
    def drop(request):
        holder = _current.get() if request is not None else None
        if isinstance(holder, Batch) and holder.drop(request):
            _requests.tell(holder)
    module.Future.__init__ = __init__
    ends_with("set_result")
    ends_with("set_exception")


class _Run(_requests._Bound):
    """What a thread runs; it is gone from the thread then, which would have itself until the next collection otherwise."""
    __slots__ = ("thread", "own")

    def __init__(self, thread, request):
        super().__init__(thread.run, request)
        self.thread, self.own = thread, thread.__dict__.get("run")

    def __call__(self):
        named = self.thread.__dict__
        if named.get("run") is self:
            del named["run"]
            if self.own is not None:
                named["run"] = self.own
        return super().__call__()


def patch_threading(module):
    original = module.Thread.start

    @functools.wraps(original)
    def start(self):
        holder = _current.get()
        if holder is not None and holder.is_open:
            follow(self)
        return original(self)

    @_requests.careful
    def follow(thread):
        holders = _holders()
        if not holders:
            return
        # Threads of pools outlive the request for which they are started.
        of_pool = (type(thread).__module__ or "").startswith("anyio") or \
            getattr(getattr(thread, "_target", None), "__module__", None) == "concurrent.futures.thread"
        if not of_pool:
            thread.run = _Run(thread, Batch(holders, None))
    module.Thread.start = start
