"""model-graphs: forward pass, loss, backward pass and optimizer are launched as CUDA graphs

causes: launch-bound, kernel-gap, short-kernels, host-compute, gil
group: compile
tolerance: 0.02
warmup: 16
asks: yes
write: a training step as one torch.cuda.CUDAGraph, or model = torch.cuda.make_graphed_callables(model, (batch,))

The first module with parameters that the program calls, from its fourth call with inputs of the same kind on. Calls with
other inputs go as they did. What the module does in Python, beside its operators, happens no more. Losses of
torch.nn.functional become graphs if they are computed of what the module returned, steps of SGD, Adam and AdamW once they
repeat themselves. Adam and AdamW then compute as with capturable=True.
"""
import contextlib

NAME = "model-graphs"
WRITE = "torch.cuda.make_graphed_callables(model, (batch,))"
N_EAGER = 3  # calls with the same kind of inputs before graphs are made


def apply(trial):
    graphs = trial.hooks._load("_lull_try_graphs", "_try_graphs.py")
    parts = trial.hooks._load("_lull_try_passes", "_try_passes.py")
    asked = parts.Asked()

    def change(module):
        first = next(iter(module.parameters()), None)
        if first is None:
            return False
        # Ranks exchange gradients in the backward pass, which no graph of one rank may hold.
        is_shared = trial.has_ranks() or "DataParallel" in type(module).__name__
        if first.is_cuda and not is_shared:
            module.forward = Passes(trial, module, graphs, parts, asked).call
        return True
    trial.model.append(change)
    trial.when_loaded("torch.autograd", asked.watch)
    trial.when_loaded("torch", lambda torch: parts.watch_losses(getattr(torch.nn, "functional", None)))
    graphs.watch_optimizers(trial, NAME)


class Passes:
    """Stands in for the forward() of a module."""

    def __init__(self, trial, module, graphs, parts, asked):
        self.trial, self.module, self.forward = trial, module, module.forward
        self.graphs, self.parts, self.asked = graphs, parts, asked
        self.seen = {}  # how often each kind of inputs came
        self.kind = None  # the one that has the graph
        self.graph, self.is_refused = None, False

    def __deepcopy__(self, memo):
        """A copy of the module is another one, without graphs."""
        import copy
        import types
        module = copy.deepcopy(self.module, memo)
        other = Passes(self.trial, module, self.graphs, self.parts, self.asked)
        other.forward, other.is_refused = types.MethodType(type(module).forward, module), True
        return other

    def call(self, *args, **kwargs):
        if self.is_refused:
            return self.forward(*args, **kwargs)
        try:
            kind, tensors = self.describe(args, kwargs)
        except Exception:  # a module that looks like no other
            kind = None
        if kind is None:
            return self.forward(*args, **kwargs)
        if self.graph is None:
            self.seen[kind] = self.seen.get(kind, 0) + 1
            if self.seen[kind] > N_EAGER:
                self.is_refused = not self.trial.changes(NAME) or not self.capture(args, kwargs, tensors)
                self.kind = kind
        if self.graph is None or kind != self.kind or not self.graph.is_ready():
            return self.forward(*args, **kwargs)
        return self.graph.call(tensors)

    def describe(self, args, kwargs):
        """What a graph depends on, and the tensors that it reads; None if it could not have these inputs."""
        import torch
        if self.graphs.is_capturing():
            return None, []
        is_cast = torch.is_autocast_enabled()
        kind = [self.module.training, torch.is_grad_enabled(), is_cast and autocast_dtype(), tuple(kwargs)]
        tensors = []
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.Tensor) and value.is_cuda:
                kind.append((value.shape, value.dtype, value.device, value.requires_grad))
                tensors.append(value)
            elif isinstance(value, self.parts.PLAIN):
                kind.append((type(value), value))
            else:
                return None, []
        return (tuple(kind) if tensors else None), tensors

    def capture(self, args, kwargs, tensors):
        """Make the graphs; a module that cannot have them stays as it is."""
        try:
            if self.asked.has_asked:
                raise RuntimeError("the program asks for gradients by name")
            weights = self.parts.Weights(self.module)
            if weights.have_hooks():
                raise RuntimeError("its weights have hooks")
            with self.without_cache(), self.kept(tensors[0].device):
                self.graph = self.parts.Graph(self, self.hold(args, kwargs), tensors, weights)
            self.asked.weights.update({id(p): p for p in weights.params})
            self.trial.where(NAME, "after some calls, for inputs of one shape: " + WRITE)
            self.trial.did(NAME)
            return True
        except Exception as e:
            self.trial.trouble(f"the model cannot be captured: {type(e).__name__}: {e}")
            return False

    def leave(self, why):
        """Go without graphs from now on. What they wrote stays where it is."""
        self.is_refused = True
        self.trial.once(f"h no CUDA graphs from some step on: {why}")

    def hold(self, args, kwargs):
        """The forward pass as a function of tensors alone, inputs first and weights after them: graphs are made of these.

        Weights are given as aliases. Those of the module belong to the stream of the program for as long as a loss of an
        earlier pass lives, and its backward pass would join that stream to the capture, which ends it.
        """
        import torch
        try:
            from torch.func import functional_call
        except ImportError:  # before 2.0
            from torch.nn.utils.stateless import functional_call
        forward, n_args, names = self.forward, len(args), list(kwargs)
        values = [*args, *kwargs.values()]
        places = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]
        values = [None if i in places else value for i, value in enumerate(values)]

        class Holder(torch.nn.Module):
            def forward(self, *tensors):
                now = list(values)
                for i, tensor in zip(places, tensors):
                    now[i] = tensor
                return forward(*now[:n_args], **dict(zip(names, now[n_args:])))
        holder = Holder()
        holder.inner = self.module
        weights = [name for name, _ in holder.named_parameters()]

        def passes(*tensors):
            n = len(places)
            return functional_call(holder, dict(zip(weights, tensors[n:])), tensors[:n])
        return passes

    @contextlib.contextmanager
    def kept(self, device):
        """Running means and random numbers are then as they were, even if the capture failed halfway."""
        import torch
        before, numbers = [(b, b.clone()) for b in self.module.buffers()], torch.cuda.get_rng_state(device)
        try:
            yield
        finally:
            torch.cuda.set_rng_state(numbers, device)
            with torch.no_grad():
                for buffer, value in before:
                    buffer.data.copy_(value)  # passes that wait for their backward pass must not take it for a change

    @staticmethod
    def without_cache():
        """Weights that autocast has converted must not come from outside of the graph."""
        import torch
        if not torch.is_autocast_enabled():
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=autocast_dtype(), cache_enabled=False)


def autocast_dtype():
    import torch
    return torch.get_autocast_dtype("cuda") if hasattr(torch, "get_autocast_dtype") else torch.get_autocast_gpu_dtype()
