"""CUDA graphs for remedies of `lull try`: how one is recorded, and the optimizer's step as one.

A graph launches the same kernels with the same arguments on the same memory. So before each launch it is checked that
the optimizer is what it was when the graph was recorded: its numbers, its parameters, where weights, gradients and its
own tensors lie. If something differs, the step goes as it did, and another graph may be recorded.
"""
import functools
import operator
import weakref

KINDS = ("SGD", "Adam", "AdamW")
N_EAGER = 3  # steps that are the same before a graph is made of the next one
N_PATIENT = 8  # steps that are alike, but for rates and where gradients lie: it seems to stay like this
MOST_WASTED = 3  # graphs that were of little use; after these, none is recorded
LEAST_USES = 20  # a graph that was launched less often was of little use


def is_capturing():
    import torch
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def record(function, device, pool=None):
    """(a graph of what function() launches, what it returned). If that fails, stream and random numbers are as before."""
    import torch
    graph = torch.cuda.CUDAGraph()
    stream, generator = torch.cuda.current_stream(device), torch.cuda.default_generators[device.index or 0]
    spare = generator.clone_state() if hasattr(generator, "clone_state") else None
    try:
        with torch.cuda.graph(graph, pool=pool):
            result = function()
    except Exception:
        torch.cuda.set_stream(stream)
        if spare is not None:  # the one in use takes itself to be captured from now on
            generator.graphsafe_set_state(spare)
        raise
    return graph, result


def copy_all(to, values):
    """Copy a list of tensors with as few launches as there are kinds of them."""
    import torch
    if hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(to, values)
        return
    for a, b in zip(to, values):
        a.copy_(b)


def watch_optimizers(trial, name):
    """Launch steps of optimizers as graphs, once they repeat themselves."""
    def patch(torch):
        for kind in KINDS:
            if hasattr(torch.optim, kind):
                wrap(trial, name, getattr(torch.optim, kind))
    trial.when_loaded("torch", patch)


def wrap(trial, name, kind):
    original, known = kind.step, weakref.WeakKeyDictionary()

    @functools.wraps(original)
    def step(self, closure=None):
        if closure is not None or type(self) is not kind:
            return original(self, closure)
        steps = known.get(self)
        if steps is None:
            steps = known[self] = Steps(trial, name, original)
        return steps.step(self)
    kind.step = step


class Steps:
    """Stands in for the step of one optimizer."""

    def __init__(self, trial, name, original):
        self.trial, self.name, self.original = trial, name, original
        self.last = None  # what the step before depended on
        self.n_like = self.n_same = 0  # steps in a row that were like it, and those with rates and gradients in place
        self.graph, self.n_uses, self.n_wasted = None, 0, 0
        self.is_refused = False

    def step(self, optimizer):
        if self.is_refused or is_capturing():
            return self.original(optimizer)
        try:
            now = Facts(optimizer)
        except Exception:  # one that looks like no other
            now = None
        if now is not None and self.graph is not None and self.graph.matches(now):
            self.n_uses += 1
            self.graph.launch(now)
            now.forget()
            return None
        if now is None or not now.fits(optimizer):
            return self.original(optimizer)
        last, self.last = self.last, now
        is_like = last is not None and last.is_like(now)
        self.n_like = self.n_like + 1 if is_like else 0
        self.n_same = self.n_same + 1 if is_like and last.is_same(now) else 0
        is_time = self.n_same >= N_EAGER or self.n_like >= N_PATIENT
        if is_time and self.make(optimizer, now, last):
            self.graph.launch(now)
        else:
            self.original(optimizer)
        now.forget()
        return None

    def make(self, optimizer, now, last):
        """Record a graph; an optimizer that cannot have one stays as it is."""
        if not self.trial.changes(self.name):
            self.is_refused = True
            return False
        if self.graph is not None and self.n_uses < LEAST_USES:
            self.n_wasted += 1
        if self.n_wasted >= MOST_WASTED:
            self.refuse("it is another one too often")
            return False
        try:
            self.graph = StepGraph(optimizer, self.original, now, last.grad_places != now.grad_places, last.rates != now.rates)
        except Exception as e:
            self.refuse(f"{type(e).__name__}: {e}")
            return False
        self.n_uses = self.n_like = self.n_same = 0
        self.trial.did(self.name)
        return True

    def refuse(self, why):
        self.graph, self.is_refused = None, True
        self.trial.once(f"h the optimizer's step is no CUDA graph: {why}")


def are_same(some, others):
    """Whether these are the same objects."""
    return len(some) == len(others) and all(map(operator.is_, some, others))


class Facts:
    """What a step depends on."""

    def __init__(self, optimizer):
        groups = optimizer.param_groups
        self.params = groups[0]["params"][:] if len(groups) == 1 else [p for group in groups for p in group["params"]]
        self.grads = [p.grad for p in self.params]
        self.numbers = [[v for k, v in group.items() if k != "params" and k != "lr"] for group in groups]
        self.rates = [group["lr"] for group in groups]
        # Those of its parameters, in an order that stays; to look them up takes longer.
        self.states = list(optimizer.state.values())
        self.own = [value for state in self.states for value in state.values()]
        self.scale = [getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None)]
        self.places = [t.data_ptr() for t in self.params]
        self.grad_places = [0 if g is None else g.data_ptr() for g in self.grads]

    def fits(self, optimizer):
        """Whether a graph can do this step: all on one device, and none of them the first."""
        first, groups = self.params[0].device if self.params else None, optimizer.param_groups
        has_state = any("betas" in group or group.get("momentum") for group in groups)
        return (first is not None and all(p.is_cuda and p.device == first for p in self.params)
                and all(g is None or ((not has_state or optimizer.state.get(p)) and not g.is_sparse)
                        for p, g in zip(self.params, self.grads))
                and not any(group.get("differentiable") for group in groups)
                and all(isinstance(rate, float) for rate in self.rates)
                and not any(hasattr(value, "data_ptr") for numbers in self.numbers for value in numbers))

    def is_like(self, other):
        """All but what may differ from step to step: rates, and where gradients lie."""
        return (self.places == other.places and self.numbers == other.numbers
                and are_same(self.params, other.params) and are_same(self.states, other.states) and are_same(self.own, other.own)
                and [g is None for g in self.grads] == [g is None for g in other.grads]
                and [s is None for s in self.scale] == [s is None for s in other.scale])

    def is_same(self, other):
        """And these, too."""
        return self.grad_places == other.grad_places and self.rates == other.rates

    def forget(self):
        """Keep no gradient alive."""
        self.grads = [None if g is None else True for g in self.grads]
        self.scale = [None if s is None else True for s in self.scale]


class StepGraph:
    """A graph of one step, and what it was recorded with."""

    def __init__(self, optimizer, original, facts, has_moved, has_new_rate):
        import torch
        self.device = facts.params[0].device
        self.mine = None  # gradients of the graph, where those of the program are elsewhere each time
        if has_moved:
            self.mine = [None if g is None else torch.empty_like(g) for g in facts.grads]
        self.scale = [None if s is None else s.clone() for s in facts.scale]
        self.rates = None  # as tensors, where they change
        if has_new_rate and type(optimizer) is not torch.optim.SGD:
            self.rates = [torch.full((), rate, device=self.device) for rate in facts.rates]
        self.steps = self.device_steps(optimizer, facts, torch)
        self.versions = self.step_versions()
        with Dressed(self, optimizer, facts):
            self.graph, _ = record(lambda: original(optimizer), self.device)
        self.facts = facts  # without gradients, from the end of this step on

    def device_steps(self, optimizer, facts, torch):
        """Counts of steps that lie on the host, each with one on the device for the graph."""
        states = [optimizer.state.get(p) or {} for p, g in zip(facts.params, facts.grads) if g is not None]
        found = [(s, s["step"]) for s in states if isinstance(s.get("step"), torch.Tensor) and not s["step"].is_cuda]
        return [(state, step, step.to(self.device, copy=True)) for state, step in found]

    def step_versions(self):
        """They differ if somebody else has counted, such as a step that was no graph."""
        return [step._version for _, step, _ in self.steps]

    def matches(self, now):
        return (self.facts.is_like(now) and (self.mine is not None or now.grad_places == self.facts.grad_places)
                and (self.rates is not None or now.rates == self.facts.rates))

    def launch(self, now):
        import torch
        if self.mine is not None:
            given = [(a, b) for a, b in zip(self.mine, now.grads) if a is not None]
            copy_all([a for a, _ in given], [b for _, b in given])
        for mine, given in zip(self.scale, now.scale):
            if mine is not None:
                mine.copy_(given)
        if self.rates is not None and now.rates != self.facts.rates:
            for mine, rate in zip(self.rates, now.rates):
                mine.fill_(rate)
        if self.step_versions() != self.versions:
            for _, step, mine in self.steps:
                mine.copy_(step)
        self.graph.replay()
        if self.steps:
            torch._foreach_add_([step for _, step, _ in self.steps], 1)
            self.versions = self.step_versions()
        self.facts.rates = now.rates


class Dressed:
    """The optimizer as the graph needs it, while it is recorded."""

    def __init__(self, graph, optimizer, facts):
        self.graph, self.optimizer, self.facts = graph, optimizer, facts

    def __enter__(self):
        graph, optimizer = self.graph, self.optimizer
        self.groups = [dict(group) for group in optimizer.param_groups]
        for i, group in enumerate(optimizer.param_groups):
            if "capturable" in group:
                group["capturable"] = True
            if graph.rates is not None:
                group["lr"] = graph.rates[i]
        for state, _, step in graph.steps:
            state["step"] = step
        for p, mine in zip(self.facts.params, graph.mine or ()):
            p.grad = mine
        for name, mine in zip(("grad_scale", "found_inf"), graph.scale):
            if mine is not None:
                setattr(optimizer, name, mine)

    def __exit__(self, *_):
        for group, before in zip(self.optimizer.param_groups, self.groups):
            group.update(before)
        for state, step, _ in self.graph.steps:
            state["step"] = step
        for p, grad in zip(self.facts.params, self.facts.grads if self.graph.mine else ()):
            p.grad = grad
        for name, given in zip(("grad_scale", "found_inf"), self.facts.scale):
            if given is not None:
                setattr(self.optimizer, name, given)
