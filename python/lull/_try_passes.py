"""Passes of a model as CUDA graphs, for the remedy model-graphs: what they depend on, and how the program gets its gradients.

Weights have their gradients without autograd: a graph computes all of them, and they are put into .grad. What a program can
see of that is what it would see without graphs. Where that cannot be, it goes without graphs, or it ends with an error.
"""
import functools
import weakref

N_WARM = 3  # passes on another stream before a graph is recorded: libraries make what they need
N_EAGER_LOSS = 1  # losses of passes that were graphs, before one is recorded
PLAIN = (bool, int, float, str, type(None))  # values that a graph can hold
LOSSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "l1_loss", "mse_loss",
          "nll_loss", "smooth_l1_loss")


class Asked:
    """Gradients that the program asks for by name, which are none of .grad."""

    def __init__(self):
        self.is_asking, self.has_asked = False, False
        self.weights = weakref.WeakValueDictionary()  # parameters whose gradients come from graphs, by their ids
        self.grad = None  # PyTorch's own
        self.root = None  # the loss that a backward pass starts at

    def watch(self, module):
        grad, backward = module.grad, module.backward
        self.grad = grad
        self.watch_engine(module)

        @functools.wraps(grad)
        def named(outputs, inputs, *args, **kwargs):
            inputs = inputs if hasattr(inputs, "grad_fn") else tuple(inputs)
            return self.ask(inputs, lambda: grad(outputs, inputs, *args, **kwargs))

        @functools.wraps(backward)
        def all_of_them(*args, **kwargs):
            inputs = kwargs.get("inputs", args[5] if len(args) > 5 else None)
            is_graph = kwargs.get("create_graph", args[3] if len(args) > 3 else False)
            if is_graph:
                self.refuse(bool(self.weights))
            if inputs is not None:
                return self.ask(inputs, lambda: backward(*args, **kwargs))
            given = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
            self.root = args[0] if args and given is None and not is_graph else None
            try:
                return backward(*args, **kwargs)
            finally:
                self.root = None
        module.grad, module.backward = named, all_of_them

    def watch_engine(self, module):
        """A backward pass that starts at a loss of ours is one graph, and autograd has nothing to do."""
        run, ones = getattr(module, "_engine_run_backward", None), getattr(module, "_make_grads", None)
        if run is None or ones is None:  # before 2.1 they have other places
            return

        @functools.wraps(ones)
        def without_ones(outputs, *args, **kwargs):
            return (None,) if self.starts(outputs) else ones(outputs, *args, **kwargs)

        @functools.wraps(run)
        def without_engine(outputs, *args, **kwargs):
            if self.starts(outputs):
                self.root.lull_loss.start()
                return ()
            return run(outputs, *args, **kwargs)
        module._engine_run_backward, module._make_grads = without_engine, without_ones

    def starts(self, outputs):
        """Whether a backward pass starts at a loss of ours, and nowhere else."""
        started = getattr(self.root, "lull_loss", None)
        return started is not None and len(outputs) == 1 and outputs[0] is self.root and started.can_start(self.root)

    def ask(self, inputs, function):
        inputs = [inputs] if hasattr(inputs, "grad_fn") else list(inputs)
        self.refuse(any(self.weights.get(id(t)) is not None or hasattr(t, "lull_pass") for t in inputs))
        before, self.is_asking = self.is_asking, True
        try:
            return function()
        finally:
            self.is_asking = before

    def refuse(self, is_late):
        """Graphs cannot do this: none is made, and where there is one the program cannot go on."""
        self.has_asked = True
        if is_late:
            raise RuntimeError("the model is a CUDA graph, which gives gradients of its weights to .grad alone")


class Weights:
    """Parameters and buffers of a module, and whether they are still the same, in the same memory."""

    def __init__(self, module):
        modules = list(module.modules())
        self.params = list(module.parameters())
        self.flags = [(m.__dict__, m.training) for m in modules]
        self.places = [(of, name, of[name]) for m in modules for of in (m._parameters, m._buffers) for name in of]
        self.pointers = [p.data_ptr() for p in self.params]
        self.learnt = [p.requires_grad for p in self.params]
        self.has_late = hasattr(self.params[0], "_post_accumulate_grad_hooks")  # since 2.1

    def have_hooks(self):
        """Autograd calls them when it has a gradient; graphs call nobody."""
        return (any([p._backward_hooks for p in self.params])
                or (self.has_late and any([p._post_accumulate_grad_hooks for p in self.params])))

    def are_same(self):
        return (all([of.get(name) is value for of, name, value in self.places])
                and [p.data_ptr() for p in self.params] == self.pointers
                and [p.requires_grad for p in self.params] == self.learnt
                and all([of["training"] is was for of, was in self.flags]) and not self.have_hooks())


class Pass:
    """One forward pass. Its backward pass needs what it left behind, which the next one overwrites."""

    def __init__(self, graph):
        self.graph = graph
        self.is_done = False  # it has had its backward pass
        self.loss = None  # the Loss that was computed of it
        self.by_loss = False  # the backward pass of that was one for both


class Graph:
    """Both passes as graphs with memory of their own. Gradients of weights are given to .grad without autograd."""

    def __init__(self, of, passes, tensors, weights):
        import torch
        self.of, self.weights, self.device = of, weights, tensors[0].device
        self.inputs = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
        # By .data: later changes must not count as changes of what autograd keeps of the recorded pass.
        self.places = [t.data for t in self.inputs]
        aliases = [p.data.requires_grad_(p.requires_grad) for p in weights.params]
        self.learnt = [t for t in (*self.inputs, *aliases) if t.requires_grad] if torch.is_grad_enabled() else []
        self.passes = lambda: passes(*self.inputs, *aliases)
        self.last = None  # the latest pass, if somebody may still ask for its gradients
        self.warm()
        self.forward, _ = of.graphs.record(self.run, self.device)
        self.made = [tensor for tensor in self.outputs if tensor.requires_grad]
        self.backward, self.gradients = None, None
        if self.made:
            self.given = [torch.zeros_like(tensor) for tensor in self.made]
            self.backward, found = of.graphs.record(self.differentiate, self.device, self.forward.pool())
            n = sum(t.requires_grad for t in self.inputs)
            self.for_inputs = found[:n]
            self.gradients = self.given_to_weights(found[n:])
        self.loss, self.n_losses, self.is_lossless = None, {}, self.backward is None or bool(self.for_inputs)
        self.anchor = torch.zeros((), device=self.device, requires_grad=bool(self.made))
        self.function = replay_function(torch)

    def given_to_weights(self, found):
        learnt = [p for p in self.weights.params if p.requires_grad]
        return Gradients([(p, g) for p, g in zip(learnt, found) if g is not None], self.of)

    def warm(self):
        import torch
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(N_WARM):
                self.run()
                self.made = [tensor for tensor in self.outputs if tensor.requires_grad]
                if self.made:
                    self.given = [torch.zeros_like(tensor) for tensor in self.made]
                    self.differentiate()
                self.made = self.given = self.outputs = None
        torch.cuda.current_stream(self.device).wait_stream(side)

    def run(self):
        import torch
        from torch.utils._pytree import tree_flatten, tree_unflatten
        made = self.passes()
        leaves, self.tree = tree_flatten(made)
        self.unflatten, self.is_bare = tree_unflatten, isinstance(made, torch.Tensor)
        if not all(isinstance(leaf, (torch.Tensor, *PLAIN)) for leaf in leaves):
            raise TypeError("it returns more than tensors")
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.slots = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.outputs = [leaves[i] for i in self.slots]
        if not all(tensor.is_cuda for tensor in self.outputs):
            raise TypeError("it returns tensors of the host")

    def differentiate(self):
        """What the pass computed stays: the backward pass of a loss goes through it as well."""
        found = self.of.asked.grad(self.made, self.learnt, self.given, retain_graph=True, allow_unused=True)
        return self.settled(found, self.given)

    def settled(self, found, given):
        """Gradients as autograd would leave them in .grad: laid out like the weight, and in memory of their own."""
        import torch
        taken = {tensor.data_ptr() for tensor in given}
        result = []
        for tensor, gradient in zip(self.learnt, found):
            if gradient is not None and (gradient.stride() != tensor.stride() or gradient.data_ptr() in taken
                                         or gradient._base is not None):
                gradient = torch.empty_like(tensor).copy_(gradient)
            if gradient is not None:
                taken.add(gradient.data_ptr())
                gradient = gradient.detach()
            result.append(gradient)
        return result

    def is_ready(self):
        """Whether the graph computes what the module would, and no earlier pass waits for its backward pass."""
        last = self.latest()
        return (last is None or last.is_done) and self.weights.are_same()

    def latest(self):
        return self.last and self.last()

    def call(self, tensors):
        outputs = self.function.apply(self, self.anchor, *tensors)
        if self.made:
            passed = self.latest()
            for output in outputs:
                output.lull_pass = passed if output.requires_grad else None
        if self.is_bare:
            return outputs[0]
        leaves = list(self.leaves)
        for i, output in zip(self.slots, outputs):
            leaves[i] = output
        return self.unflatten(leaves, self.tree)

    def launch(self, ctx, tensors):
        """The graph writes to the same memory each time: the program gets copies of its outputs."""
        for mine, given in zip(self.places, tensors):
            mine.copy_(given)
        self.forward.replay()
        if self.made:
            ctx.passed = Pass(self)
            self.last = weakref.ref(ctx.passed)
        return tuple([output.clone() for output in self.outputs])

    def check(self, passed):
        if self.latest() is not passed:
            raise RuntimeError("the model is a CUDA graph, and this pass of it was overwritten by a later one")

    def launch_back(self, ctx, gradients):
        self.check(ctx.passed)
        if ctx.passed.by_loss and all(g is None for g in gradients):
            return (None,) * len(self.inputs)
        wanted = [g for g, output in zip(gradients, self.outputs) if output.requires_grad]
        for mine, given in zip(self.given, wanted):
            mine.zero_() if given is None else mine.copy_(given)
        self.gradients.give(self.backward)
        ctx.passed.is_done = True
        found = iter(self.for_inputs)
        return tuple(own(next(found)) if t.requires_grad else None for t in self.inputs)

    def lose(self, passed, name, original, args, kwargs):
        """A loss as a graph; None if it goes as it did."""
        import torch
        output = args[0]
        if (self.is_lossless or passed.is_done or passed.loss is not None or self.latest() is not passed or len(self.made) != 1
                or not torch.is_grad_enabled() or output._version or is_watched(output)):
            return None
        kind, tensors = self.of.describe(args, kwargs)
        if kind is None or any(t.requires_grad for t in tensors[1:]):
            return None
        kind = (name, kind)
        if self.loss is None:
            self.n_losses[kind] = self.n_losses.get(kind, 0) + 1
            if self.n_losses[kind] > N_EAGER_LOSS:
                self.capture_loss(kind, original, args, kwargs, tensors[1:])
        if self.loss is None or kind != self.loss_kind:
            return None
        return self.loss.call(passed, output, tensors[1:])

    def capture_loss(self, kind, original, args, kwargs, tensors):
        """It is computed from what the graph wrote last, which is what the program has."""
        try:
            with self.of.without_cache():
                self.loss, self.loss_kind = Loss(self, original, args, kwargs, tensors), kind
        except Exception as e:
            self.loss, self.is_lossless = None, True
            self.of.trial.once(f"h the loss is no CUDA graph: {type(e).__name__}: {e}")


def own(tensor):
    return None if tensor is None else tensor.clone()


def replay_function(torch):
    class Replay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, graph, anchor, *tensors):
            ctx.graph = graph
            ctx.set_materialize_grads(False)
            outputs = graph.launch(ctx, tensors)
            if len(graph.made) < len(outputs):
                ctx.mark_non_differentiable(*[o for o, made in zip(outputs, graph.outputs) if not made.requires_grad])
            return outputs

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *gradients):
            return None, None, *ctx.graph.launch_back(ctx, gradients)
    return Replay


class Gradients:
    """Gradients that a graph writes, always to the same memory, and how the program gets them.

    They are lent: .grad is a tensor of the memory that the graph writes to, as long as the program drops it before the next
    backward pass. One that adds up gradients or keeps them gets copies.
    """

    def __init__(self, pairs, of):
        import torch
        self.of = of
        self.params = [p for p, _ in pairs]
        self.written = [g for _, g in pairs]  # never seen by the program
        self.lent = []  # references to tensors that it got
        self.is_lending = hasattr(torch._C, "_storage_Use_Count")
        if self.is_lending:
            self.storages = [g.untyped_storage()._cdata for g in self.written]
            self.n_tensors = self.tensors()

    def tensors(self):
        """How many tensors there are of each memory. Whoever has one, also in C++, is counted."""
        import torch
        return [torch._C._storage_Use_Count(s) for s in self.storages]

    def is_free(self):
        """Whether the program has no gradients, and none of what was lent."""
        return all([p.grad is None for p in self.params]) and self.tensors() == self.n_tensors

    def give(self, graph):
        if self.of.asked.is_asking:  # .grad stays as it is
            self.launch(graph)
        elif self.is_lending and self.is_free():
            graph.replay()
            tensors = [g.detach() for g in self.written]
            self.lent = list(map(weakref.ref, tensors))
            for p, g in zip(self.params, tensors):
                p.grad = g
        else:
            self.add(self.launch(graph))

    def launch(self, graph):
        """Launch the graph where the program may have gradients of an earlier pass: these stay as they are."""
        if self.is_lending:
            self.is_lending = False
            self.move()
            if self.tensors() != self.n_tensors:
                return self.launch_last(graph)
        graph.replay()
        return self.written

    def move(self):
        """What was lent, and the program still has, gets memory of its own."""
        for reference in self.lent:
            tensor = reference()
            if tensor is not None:
                tensor.data = tensor.data.clone()
        self.lent = []

    def launch_last(self, graph):
        """Nothing can move memory under other tensors, such as views. What they had is put back."""
        before = [g.clone() for g in self.written]
        graph.replay()
        found = [g.clone() for g in self.written]
        self.of.graphs.copy_all(self.written, before)
        self.is_lending = True  # if this pass has another backward pass, the same again
        self.of.leave("the program keeps views of gradients")
        return found

    def add(self, found):
        """As autograd does it: a gradient that is there is added to."""
        import torch
        new = [(p, g) for p, g in zip(self.params, found) if p.grad is None]
        old = [(p.grad, g) for p, g in zip(self.params, found) if p.grad is not None]
        if old:
            torch._foreach_add_([a for a, _ in old], [b for _, b in old])
        copies = [torch.empty_like(g) for _, g in new]
        if new:
            self.of.graphs.copy_all(copies, [g for _, g in new])
        for (p, _), copy in zip(new, copies):
            p.grad = copy


# ---- losses ----


def watch_losses(functional):
    """Loss functions of what a graph computed become graphs, too, with one backward pass for both."""
    for name in LOSSES:
        if hasattr(functional, name):
            setattr(functional, name, of_pass(name, getattr(functional, name)))


def of_pass(name, original):
    @functools.wraps(original)
    def loss(input, target, *args, **kwargs):
        passed = getattr(input, "lull_pass", None)
        if passed is not None:
            found = passed.graph.lose(passed, name, original, (input, target, *args), kwargs)
            if found is not None:
                return found
        return original(input, target, *args, **kwargs)
    return loss


class Loss:
    """A loss function of the output of a pass, and the backward pass of both, as graphs."""

    def __init__(self, graph, original, args, kwargs, tensors):
        import torch
        self.graph, self.original, device = graph, original, graph.device
        self.tensors = [t.detach().clone() for t in tensors]
        self.n_args, self.names = len(args), list(kwargs)
        self.values = [None if isinstance(v, torch.Tensor) else v for v in (*args, *kwargs.values())]
        self.places = [i for i, v in enumerate((*args, *kwargs.values())) if isinstance(v, torch.Tensor)]
        self.warm(torch)
        record, pool = graph.of.graphs.record, graph.forward.pool()
        self.forward, _ = record(self.run, device, pool)
        if self.outputs[0].dim():
            raise TypeError("it is no single number")
        self.given = torch.ones_like(self.outputs[0])
        self.is_one = True  # what is given
        self.backward, found = record(self.differentiate, device, pool)
        self.gradients = graph.given_to_weights(found)
        self.function = loss_function(torch)

    def compute(self, output):
        now = list(self.values)
        for i, tensor in zip(self.places, (output, *self.tensors)):
            now[i] = tensor
        return self.original(*now[:self.n_args], **dict(zip(self.names, now[self.n_args:])))

    def warm(self, torch):
        side = torch.cuda.Stream(self.graph.device)
        side.wait_stream(torch.cuda.current_stream(self.graph.device))
        with torch.cuda.stream(side):
            for _ in range(N_WARM):
                output = self.graph.made[0].detach().clone().requires_grad_()
                self.graph.of.asked.grad(self.compute(output), output)
        torch.cuda.current_stream(self.graph.device).wait_stream(side)

    def run(self):
        self.outputs = [self.compute(self.graph.made[0])]

    def differentiate(self):
        found = self.graph.of.asked.grad(self.outputs, self.graph.learnt, [self.given], retain_graph=True, allow_unused=True)
        return self.graph.settled(found, [self.given])

    def call(self, passed, output, tensors):
        result = self.function.apply(self, passed, output, *tensors)
        passed.loss = self
        result.lull_loss = Started(self, passed, output)
        return result

    def launch(self, tensors):
        for mine, given in zip(self.tensors, tensors):
            mine.copy_(given)
        self.forward.replay()
        return self.outputs[0].clone()

    def gradient_of(self, output, gradient):
        """The gradient of the output alone, as autograd would compute it."""
        import torch
        with torch.enable_grad():
            output = output.detach().requires_grad_()
            return self.graph.of.asked.grad(self.compute(output), output, gradient)[0]

    def launch_back(self, passed, gradient=None):
        """One backward pass for loss and model; no gradient: that of the loss is 1."""
        self.graph.check(passed)
        if gradient is not None:
            self.given.copy_(gradient)
        elif not self.is_one:
            self.given.fill_(1)
        self.is_one = gradient is None
        self.gradients.give(self.backward)
        passed.is_done = passed.by_loss = True


def is_watched(tensor):
    """Whether the program wants to know the gradient of this tensor."""
    return bool(tensor._backward_hooks) or tensor.retains_grad


class Started:
    """What a loss that the program has is the loss of."""

    def __init__(self, loss, passed, output):
        self.loss, self.passed, self.output = loss, passed, output

    def can_start(self, root):
        """Whether its backward pass is the graph and nothing else."""
        return (not self.passed.is_done and self.loss.graph.latest() is self.passed and not is_watched(root)
                and not is_watched(self.output) and root._version == 0)

    def start(self):
        self.loss.launch_back(self.passed)


def loss_function(torch):
    class LossReplay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, loss, passed, output, *tensors):
            ctx.loss, ctx.passed, ctx.output, ctx.n = loss, passed, output, len(tensors)
            return loss.launch(tensors)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            rest = (None,) * ctx.n
            if is_watched(ctx.output):
                return None, None, ctx.loss.gradient_of(ctx.output, gradient), *rest
            ctx.loss.launch_back(ctx.passed, gradient)
            return None, None, None, *rest
    return LossReplay
