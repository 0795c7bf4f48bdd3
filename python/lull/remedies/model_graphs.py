"""model-graphs: forward and backward passes of the model are launched as CUDA graphs

causes: launch-bound, kernel-gap, short-kernels, host-compute, gil
group: compile
tolerance: 0.02
warmup: 10
asks: yes
write: model = torch.cuda.make_graphed_callables(model, (batch,)) once the first steps are done

The first module with parameters that the program calls, from its fourth call with inputs of the same kind on. Calls with
other inputs go as they did. What the module does in Python, beside its operators, happens no more.
"""
import contextlib

NAME = "model-graphs"
WRITE = "torch.cuda.make_graphed_callables(model, (batch,))"
N_EAGER = 3  # calls with the same kind of inputs before graphs are made
PLAIN = (bool, int, float, str, type(None))


def apply(trial):
    def change(module):
        first = next(iter(module.parameters()), None)
        if first is None:
            return False
        # Ranks exchange gradients in the backward pass, which no graph of one rank may hold.
        is_shared = trial.has_ranks() or "DataParallel" in type(module).__name__
        if first.is_cuda and not is_shared:
            module.forward = Passes(trial, module).call
        return True
    trial.model.append(change)


class Passes:
    """Stands in for the forward() of a module."""

    def __init__(self, trial, module):
        self.trial, self.module, self.forward = trial, module, module.forward
        self.seen = {}  # how often each kind of inputs came
        self.kind = None  # the one that has the graph
        self.graph, self.is_refused = None, False

    def __deepcopy__(self, memo):
        """A copy of the module is another one, without graphs."""
        import copy
        import types
        module = copy.deepcopy(self.module, memo)
        other = Passes(self.trial, module)
        other.forward, other.is_refused = types.MethodType(type(module).forward, module), True
        return other

    def call(self, *args, **kwargs):
        try:
            kind, tensors = self.describe(args, kwargs)
        except Exception:  # a module that looks like no other
            kind = None
        if kind is None or self.is_refused:
            return self.forward(*args, **kwargs)
        if self.graph is None:
            self.seen[kind] = self.seen.get(kind, 0) + 1
            if self.seen[kind] > N_EAGER:
                self.is_refused = not self.trial.changes(NAME) or not self.capture(args, kwargs, tensors)
                self.kind = kind
        if self.graph is None or kind != self.kind:
            return self.forward(*args, **kwargs)
        return self.replay(tensors)

    def describe(self, args, kwargs):
        """What a graph depends on, and the tensors that it reads; None if it could not have these inputs."""
        import torch
        if torch.cuda.is_current_stream_capturing():
            return None, []
        kind = [self.module.training, torch.is_grad_enabled(), torch.is_autocast_enabled(), tuple(kwargs)]
        tensors = []
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.Tensor) and value.is_cuda:
                kind.append((value.shape, value.dtype, value.device, value.requires_grad))
                tensors.append(value)
            elif isinstance(value, PLAIN):
                kind.append((type(value), value))
            else:
                return None, []
        return (tuple(kind) if tensors else None), tensors

    def capture(self, args, kwargs, tensors):
        """Make the graphs; a module that cannot have them stays as it is."""
        import torch
        try:
            given = tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in tensors)
            weights = tuple(p.detach().requires_grad_(p.requires_grad) for _, p in self.module.named_parameters())
            with self.without_cache(), self.kept(tensors[0].device):
                self.graph = torch.cuda.make_graphed_callables(self.hold(args, kwargs), given + weights, allow_unused_input=True)
            self.trial.where(NAME, "after some calls, for inputs of one shape: " + WRITE)
            self.trial.did(NAME)
            return True
        except Exception as e:
            self.trial.trouble(f"the model cannot be captured: {type(e).__name__}: {e}")
            return False

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
        """Running means, random numbers and the stream are then as they were, even if the capture failed halfway."""
        import torch
        stream, generator = torch.cuda.current_stream(device), torch.cuda.default_generators[device.index or 0]
        before, numbers = [(b, b.clone()) for b in self.module.buffers()], torch.cuda.get_rng_state(device)
        spare = generator.clone_state() if hasattr(generator, "clone_state") else None
        try:
            yield
        except Exception:
            torch.cuda.set_stream(stream)
            if spare is not None:  # the one in use takes itself to be captured from now on
                generator.graphsafe_set_state(spare)
            raise
        finally:
            torch.cuda.set_rng_state(numbers, device)
            with torch.no_grad():
                for buffer, value in before:
                    buffer.copy_(value)

    @staticmethod
    def without_cache():
        """Weights that autocast has converted must not come from outside of the graph."""
        import torch
        if not torch.is_autocast_enabled():
            return contextlib.nullcontext()
        kind = torch.get_autocast_dtype("cuda") if hasattr(torch, "get_autocast_dtype") else torch.get_autocast_gpu_dtype()
        return torch.autocast("cuda", dtype=kind, cache_enabled=False)

    def replay(self, tensors):
        """The graph writes to the same memory each time: the program gets copies of outputs and keeps its gradients."""
        from torch.utils._pytree import tree_map
        return tree_map(self.own, self.graph(*tensors, *self.module.parameters()))

    def own(self, output):
        output = output.clone()
        if output.requires_grad:
            output.register_hook(self.keep_gradients)
        return output

    def keep_gradients(self, _):
        """Before the backward pass: gradients of the pass before may lie where this one writes."""
        for p in self.module.parameters():
            if p.grad is not None:
                p.grad = p.grad.clone()
