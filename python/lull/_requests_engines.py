"""Requests inside the engines that serve language models: vLLM, SGLang, TensorRT-LLM, Triton.

Loaded by _requests.py with the first of them. An engine takes requests in one function, chooses those
of its next step in another, and hands out their tokens in a third. These three tell us which requests
there are, for which ones the thread works, and when a request has a token or ends. The engine is
mostly a process of its own: its requests are other ones than those of the web server before it.

A step is a phase: `prefill` if all of its requests are at their prompts, `decode` if none is, and
`prefill+decode` otherwise.
"""
import functools
import sys

_requests = sys.modules["_lull_requests"]
careful = _requests.careful

# Requests that are known at a time; those above are not told apart from the engine's other work.
MAX_OPEN = 100000


class Engine:
    """What we know of the requests of one kind of engine, by the engine's own ids."""

    def __init__(self, name, has_phases=True):
        self.name = name
        self.has_phases = has_phases
        self.open = {}  # id: the request, and whether it is ours
        self.has_phase = False

    @careful
    def arrived(self, ident, moment=0):
        around = _requests.current()
        if ident in self.open or len(self.open) >= MAX_OPEN:
            return
        if around is not None and not isinstance(around, _requests.Batch):
            self.open[ident] = around, False
        else:
            self.open[ident] = _requests.Request(self.name, "", moment or 0), True

    @careful
    def step(self, idents, n_prefill):
        """The thread works for these, of which n_prefill are at their prompts."""
        idents = list(idents)
        found = [self.open[i][0] for i in idents if i in self.open]
        self.done()
        if not found:
            return
        batch = _requests.Batch(found, None)
        _requests._current.set(batch)
        _requests.tell(batch)
        if self.has_phases:
            _requests._agent.enter("decode" if not n_prefill else "prefill" if n_prefill == len(idents) else "prefill+decode")
            self.has_phase = True

    @careful
    def done(self):
        """The step ends, and the thread works for nobody."""
        if self.has_phase:
            self.has_phase = False
            _requests._agent.leave()
        if isinstance(_requests._current.get(), _requests.Batch):
            _requests._current.set(None)
            _requests.work(None)

    @careful
    def token(self, ident):
        if ident in self.open:
            self.open[ident][0].token()

    @careful
    def ended(self, ident, how=None):
        request, is_ours = self.open.pop(ident, (None, False))
        if is_ours:
            request.end(how)


def _after(owner, name, tell):
    """After each call of the method: tell(its object, its result, its arguments)."""
    original = getattr(owner, name)
    told = careful(tell)

    @functools.wraps(original)
    def inner(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        told(self, result, *args, **kwargs)
        return result
    setattr(owner, name, inner)


# ---- vLLM: the scheduler of its engine ----


def patch_vllm(module):
    engine, kind = Engine("vllm.generate"), module.Scheduler

    def scheduled(self, output):
        # A request at its prompt has more than one token to compute; one of those that decode has one.
        counts = output.num_scheduled_tokens
        engine.step(counts, sum(n > 1 for n in counts.values()))

    def updated(self, outputs, *args, **kwargs):
        engine.done()
        groups = outputs.values() if isinstance(outputs, dict) else [outputs]
        for one in (one for group in groups for one in group.outputs):
            for _ in one.new_token_ids:
                engine.token(one.request_id)
            if one.finish_reason is not None:
                engine.ended(one.request_id)

    def finished(self, result, request_ids, *args, **kwargs):
        for ident in [request_ids] if isinstance(request_ids, str) else list(request_ids or ()):
            engine.ended(ident, _requests.HUNG_UP)
    _after(kind, "add_request", lambda self, result, request: engine.arrived(request.request_id))
    _after(kind, "schedule", lambda self, output, *args, **kwargs: scheduled(self, output))
    _after(kind, "update_from_output", updated)
    _after(kind, "finish_requests", finished)


# ---- SGLang: its scheduler ----


def patch_sglang(module):
    engine, kind = Engine("sglang.generate"), module.Scheduler
    run = kind.run_batch

    @careful
    def begin(batch):
        mode = batch.forward_mode
        engine.step([r.rid for r in batch.reqs], len(batch.reqs) if mode.is_extend() else 0)

    @functools.wraps(run)
    def run_batch(self, batch, *args, **kwargs):
        begin(batch)
        try:
            return run(self, batch, *args, **kwargs)
        finally:
            engine.done()

    def processed(self, result, batch, *args, **kwargs):
        for r in batch.reqs:
            # A prompt that is taken in chunks has no token yet.
            if not getattr(r, "is_chunked", 0):
                engine.token(r.rid)
            if r.finished():
                engine.ended(r.rid)
    kind.run_batch = run_batch
    _after(kind, "handle_generate_request", lambda self, result, message: engine.arrived(message.rid))
    _after(kind, "process_batch_result", processed)
    _after(kind, "abort_request", lambda self, result, message: engine.ended(message.rid, _requests.HUNG_UP))


# ---- TensorRT-LLM: the executor that is written in Python ----


def patch_tensorrt(module):
    engine, kind, steps = Engine("tensorrt_llm.generate"), module.PyExecutor, []
    forward = kind._forward_step

    def arrive(self, idents, *args, **kwargs):
        for ident in idents if isinstance(idents, (list, tuple)) else [idents]:
            engine.arrived(ident)

    @careful
    def begin(batch):
        prompts, others = list(batch.context_requests), list(batch.generation_requests)
        idents = [r.py_request_id for r in prompts + others]
        steps.append(idents)
        engine.step(idents, len(prompts))

    @functools.wraps(forward)
    def _forward_step(self, scheduled_requests, *args, **kwargs):
        begin(scheduled_requests)
        try:
            return forward(self, scheduled_requests, *args, **kwargs)
        finally:
            engine.done()

    def updated(self, result, *args, **kwargs):
        for ident in steps.pop(0) if steps else ():
            engine.token(ident)

    def answered(self, result, responses, *args, **kwargs):
        for ident, response in responses.items() if isinstance(responses, dict) else responses:
            if getattr(response, "error_msg", None) or response.result.is_final:
                engine.ended(ident, _requests.FAILED if getattr(response, "error_msg", None) else None)
    kind._forward_step = _forward_step
    _after(kind, "enqueue_requests", arrive)
    _after(kind, "_update_requests", updated)
    answer = kind._enqueue_responses

    @functools.wraps(answer)
    def _enqueue_responses(self, responses, *args, **kwargs):
        responses = responses if isinstance(responses, dict) else list(responses)
        result = answer(self, responses, *args, **kwargs)
        careful(answered)(self, result, responses)
        return result
    kind._enqueue_responses = _enqueue_responses


# ---- Triton's backend for Python ----


def _wrap_model(kind):
    """execute(requests) of the class that a model's file defines."""
    original = kind.__dict__.get("execute")
    if original is None:
        return
    engine = Engine("triton.execute", False)  # models are of any kind

    @functools.wraps(original)
    def execute(self, requests, *args, **kwargs):
        idents = []
        try:
            idents = [id(r) for r in requests]
            for ident in idents:
                engine.arrived(ident)
            engine.step(idents, 0)
        except Exception:
            pass
        try:
            result = original(self, requests, *args, **kwargs)
        except BaseException:
            finish(idents, _requests.FAILED)
            raise
        finish(idents, None)
        return result

    def finish(idents, how):
        engine.done()
        for ident in idents:
            engine.ended(ident, how)
    kind.execute = execute


def patch_triton(module):
    """A model's file imports this module, and then defines its class."""
    import builtins
    original = builtins.__build_class__

    def __build_class__(function, name, /, *bases, **kwargs):
        kind = original(function, name, *bases, **kwargs)
        if name == "TritonPythonModel":
            careful(_wrap_model)(kind)
        return kind
    builtins.__build_class__ = __build_class__
