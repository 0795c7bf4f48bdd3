#!/usr/bin/env python3
"""The remedy model-graphs with the autograd of PyTorch: results are those of the program, however it treats gradients.

CUDA graphs need a GPU. What stands in for torch.cuda.CUDAGraph here computes with the real operators, and keeps what bites:
inputs, outputs and gradients lie in the same memory each time. Usage: test_try_graphs.py BUILD [NAME...]
"""
import json
import os
import sys
import tempfile
import textwrap
import unittest

import runner
from test_torch import HAS_TORCH, PYTHON

N_STEPS = 16  # of the loop below
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")

GRAPHS = """
import collections, contextlib, copy, ctypes, importlib.util, json, os, sys, weakref
import torch
from torch import nn

# As that of a device: a capture that fails leaves its state unusable, and another has to take its place.
class Generator:
    is_capturing = False
    def clone_state(self): return torch.get_rng_state()
    def graphsafe_set_state(self, state):
        self.is_capturing = False
        torch.set_rng_state(state)


def set_rng_state(state, device):
    if generator.is_capturing:
        raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
    torch.set_rng_state(state)

class Stream:
    def wait_stream(self, other): pass

generator, streams = Generator(), [Stream()]

# Single numbers, such as counts of steps, lie on the host.
torch.Tensor.is_cuda = property(lambda tensor: tensor.dim() > 0)
torch.cuda.is_current_stream_capturing = lambda: False
torch.cuda.Stream = lambda device: Stream()
torch.cuda.stream = contextlib.nullcontext
torch.cuda.current_stream = lambda device: streams[-1]
torch.cuda.set_stream = streams.append
torch.cuda.default_generators = [generator]
torch.cuda.get_rng_state = lambda device: torch.get_rng_state()
torch.cuda.set_rng_state = set_rng_state
n_replays = n_updates = n_losses = 0

# Before PyTorch 2. Tensors of a memory: the first word of what holds it, after its functions.
if not hasattr(torch._C, "_storage_Use_Count"):
    torch._C._storage_Use_Count = lambda place: ctypes.c_size_t.from_address(place + 8).value
if not hasattr(torch.Tensor, "untyped_storage"):
    torch.Tensor.untyped_storage = lambda tensor: tensor.storage()._storage

# What the backward pass of a node gives gradients to.
def leaves(node, seen):
    for next_node, _ in node.next_functions:
        if next_node is not None and next_node not in seen:
            seen.add(next_node)
            if hasattr(next_node, "variable"):
                yield next_node.variable
            yield from leaves(next_node, seen)

# Computes again what was recorded, and writes to where it was first.
class CUDAGraph:
    def pool(self): return self
    def begin(self, function):
        self.function, self.of = function, getattr(function, "__self__", None)
        self.replay = {"run": self.forward, "differentiate": self.backward}.get(function.__name__, self.update)
        if self.replay == self.update:
            return self.begin_update(**dict(zip(function.__code__.co_freevars, [c.cell_contents for c in function.__closure__])))
        result = function()
        if self.replay == self.forward:
            # Weights that an earlier pass has used belong to another stream.
            learnt = {id(t) for t in getattr(self.of, "graph", self.of).learnt}
            if any(id(leaf) not in learnt for leaf in leaves(self.of.outputs[0].grad_fn, set())):
                raise RuntimeError("operation failed due to a previous error during capture")
        self.first = [t.detach() for t in result or self.of.outputs if t is not None]
        return result
    def again(self, result):
        for first, tensor in zip(self.first, result):
            first.copy_(tensor.detach())
            tensor.data = first
    def forward(self):
        global n_replays, n_losses
        is_loss = hasattr(self.of, "graph")
        n_losses += is_loss
        n_replays += not is_loss
        with torch.enable_grad():
            self.function()
        self.of.made = [t for t in self.of.outputs if t.requires_grad]
        self.again(self.of.outputs)
    def backward(self):
        with torch.enable_grad():
            self.again([t for t in self.function() if t is not None])
    # An optimizer's step; nothing happens yet. The graph knows addresses, and keeps no gradient alive.
    @staticmethod
    def address(grad):
        if grad is None:
            return lambda now: None
        place, kept = grad.data_ptr(), weakref.ref(grad)
        return lambda now: now if now is not None and now.data_ptr() == place else kept()
    def begin_update(self, optimizer, original):
        self.optimizer, self.original = optimizer, original
        self.state = {p: dict(state) for p, state in optimizer.state.items()}
        self.data = [(p, p.data, self.address(p.grad)) for g in optimizer.param_groups for p in g["params"]]
        self.groups = [dict(group, capturable=False) if "capturable" in group else dict(group) for group in optimizer.param_groups]
    def update(self):
        global n_updates
        n_updates += 1
        optimizer, before = self.optimizer, [(p.data, p.grad) for p, _, _ in self.data]
        state, groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
        for p, data, grad in self.data:
            p.data, p.grad = data, grad(p.grad)
        for group, own in zip(optimizer.param_groups, self.groups):
            group.update(own)
            group["lr"] = float(group["lr"])
        optimizer.state = collections.defaultdict(dict, self.state)
        self.original(optimizer)
        optimizer.state = state
        for (p, _, _), (data, grad) in zip(self.data, before):
            p.data, p.grad = data, grad
        for group, own in zip(optimizer.param_groups, groups):
            group.update(own)

torch.cuda.CUDAGraph = CUDAGraph
captured = []
n_engine = 0

# As in PyTorch 2: functions of the module that are called by their names.
def _engine_run_backward(*args, **kwargs):
    global n_engine
    n_engine += kwargs["accumulate_grad"]  # not for grad(), which graphs are made of here
    return torch.autograd.Variable._execution_engine.run_backward(*args, **kwargs)

make_grads = torch.autograd._make_grads

def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    tensors = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
    grads = [grad_tensors] if isinstance(grad_tensors, torch.Tensor) else list(grad_tensors or [None] * len(tensors))
    grads = torch.autograd._make_grads(tensors, tuple(grads), is_grads_batched=False)
    torch.autograd._engine_run_backward(tensors, grads, bool(retain_graph), create_graph, tuple(inputs or ()),
                                        allow_unreachable=True, accumulate_grad=True)

torch.autograd._engine_run_backward, torch.autograd.backward = _engine_run_backward, backward

@contextlib.contextmanager
def capture(graph, pool=None):
    captured.append(graph)
    if sys.argv[2] == "refused":  # it has begun
        generator.is_capturing = True
        streams.append("that of the capture")
        raise RuntimeError("operation not permitted when stream is capturing")
    yield

torch.cuda.graph = capture

class Hooks:
    @staticmethod
    def _load(name, file):
        module = load(name, os.path.join(os.path.dirname(sys.argv[1]), "..", file))
        original = getattr(module, "record", None)
        if original:
            module.record = lambda function, device, pool=None: original(lambda: captured[-1].begin(function), device, pool)
        return module

class Trial:
    hooks = Hooks
    def __init__(self): self.model, self.told = [], []
    def has_ranks(self): return False
    def changes(self, remedy): return True
    def where(self, remedy, text): pass
    def did(self, remedy): remedy in self.told or self.told.append(remedy)
    def trouble(self, text): self.told.append(text)
    def once(self, text): text in self.told or self.told.append(text)
    def when_loaded(self, name, function): function(importlib.import_module(name))

def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

remedy = load("remedy", sys.argv[1])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last, self.unused = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4), nn.Linear(2, 2)
        self.drop = nn.Dropout(0.2)
    def forward(self, x, scale=1.0, mask=None):
        x = self.drop(torch.relu(self.norm(self.first(x)))) * scale
        return self.last(x if mask is None else x * mask)

def train(way, with_graphs):
    global n_replays, n_updates, n_losses, n_engine
    n_replays = n_updates = n_losses = n_engine = 0
    torch.manual_seed(0)
    net, trial = Net(), Trial()
    if with_graphs:
        remedy.apply(trial)
        trial.model[0](net)
    adam = way in ("adam", "rates", "skips")
    optimizer = (torch.optim.Adam(net.parameters(), 0.1) if adam else
                 torch.optim.SGD(net.parameters(), 0.1, momentum=0 if way == "simple" else 0.9))
    seen, outputs, kept = [], [], []
    for i in range(16):
        n = 5 if way == "shapes" and i % 5 == 4 else 8
        x, y = torch.randn(n, 8), torch.randint(0, 4, (n,))
        more = {"mask": torch.rand(n, 16).round(), "scale": 0.5} if way == "names" else {}
        if way != "accumulates" or i % 2 == 0:
            optimizer.zero_grad(set_to_none=way != "zeros")
        if way == "adversary":
            x.requires_grad_()
        output = net(x, **more)
        if way == "unused" and i % 3 == 1:
            continue
        if way == "twice":
            output = output + net(x * 2)
        if way == "late":
            optimizer.zero_grad()
        outputs.append(output.detach())
        loss = nn.functional.cross_entropy(output, y)
        if way == "named" and i > 8:
            seen += [g.sum().item() for g in torch.autograd.grad(loss, list(net.last.parameters()), retain_graph=True)]
        if way == "retains":
            output.retain_grad()
            output.register_hook(lambda g: g * 2)
        if way == "scales":
            (loss * 0.5).backward()
        elif way == "regularizes":
            (loss + 0.01 * sum(p.pow(2).sum() for p in net.last.parameters())).backward()
        elif way == "penalizes":
            (loss + 0.01 * output.pow(2).mean()).backward()
        elif way == "again":
            loss.backward(retain_graph=True)
            loss.backward()
        elif way == "aside":
            seen.append(torch.autograd.grad(loss, output, retain_graph=True)[0].sum().item())
            loss.backward()
        elif way == "inputs" and i % 2:
            loss.backward(inputs=list(net.last.parameters()))
        else:
            loss.backward()
        if way == "keeps" and i > 6:
            kept.append(net.first.weight.grad)
        if way == "shares" and i > 6:
            kept.append(nn.Parameter(torch.zeros_like(net.first.weight)))
            kept[-1].grad = net.first.weight.grad
        if way == "views" and i > 6:
            kept.append(net.first.weight.grad.detach().view(-1))
        if way == "adversary":
            seen.append(x.grad.sum().item())
        if way == "clips":
            seen.append(nn.utils.clip_grad_norm_(net.parameters(), 0.1).item())
        if way == "hooks" and i == 8:
            net.last.weight.register_hook(lambda g: g * 2)
        if way == "freezes" and i == 8:
            net.first.requires_grad_(False)
        if way == "swaps" and i == 8:
            net.last.weight.data = net.last.weight.data.clone() * 2
        if way == "retains":
            seen.append(output.grad.sum().item())
        if way == "skips" and i == 11:
            net.last.bias.grad = None
        if way == "rates" or (way == "drops" and i == 8):
            optimizer.param_groups[0]["lr"] *= 0.9
        if way == "loads" and i == 9:
            other = copy.deepcopy(optimizer.state_dict())
            for state in other["state"].values():
                state["momentum_buffer"].zero_()
            optimizer.load_state_dict(other)
        if way != "accumulates" or i % 2:
            optimizer.step()
        seen.append(loss.item())
        if way == "evaluates" and i % 3 == 2:
            net.eval()
            with torch.no_grad():
                seen.append(net(x).sum().item())
            net.train()
    seen += [(k if k.grad is None else k.grad).sum().item() for k in kept]
    seen += [float(state.get("step", 0)) for state in optimizer.state.values()]
    # A copy of the model has its own weights.
    other = copy.deepcopy(net).eval()
    nn.init.zeros_(net.last.weight)
    seen += [other(x).sum().item(), net.norm.running_mean.sum().item()]
    assert streams[-1] is streams[0], streams
    graph = getattr(getattr(net.forward, "__self__", None), "graph", None)
    is_lent = bool(graph and graph.loss and graph.loss.gradients.is_lending)
    return {"seen": seen + [o.sum().item() for o in outputs], "passes": n_replays, "updates": n_updates, "losses": n_losses,
            "engine": n_engine, "lent": is_lent, "told": trial.told}

print(json.dumps([train(sys.argv[2], False), train(sys.argv[2], True)]))
"""


@unittest.skipUnless(HAS_TORCH, "no PyTorch here (Debian's package python3-torch)")
class Graphs(unittest.TestCase):
    def run_way(self, way):
        with tempfile.TemporaryDirectory(prefix="lull-graphs-test-") as folder:
            script = os.path.join(folder, "train.py")
            with open(script, "w", encoding="utf-8") as f:
                f.write(textwrap.dedent(GRAPHS))
            remedy = os.path.join(ROOT, "python/lull/remedies/model_graphs.py")
            return runner.run([PYTHON, script, remedy, way])

    def train(self, way):
        """(what the program computed without the remedy, with it)"""
        done = self.run_way(way)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def same(self, way, told=("model-graphs",), near=0, **counts):
        """Results are the same, or the losses nearly; counts: passes, losses and updates that were graphs, runs of autograd."""
        plain, changed = self.train(way)
        self.assertEqual((plain["passes"], plain["losses"], plain["updates"], plain["told"]), (0, 0, 0, []))
        self.assertEqual({name: changed[name] for name in counts}, counts)
        self.assertEqual(changed["told"], list(told))
        if near:
            for a, b in zip(plain["seen"][:N_STEPS], changed["seen"][:N_STEPS]):
                self.assertAlmostEqual(a, b, delta=near)
        else:
            self.assertEqual(plain["seen"], changed["seen"])

    def test_gradients_that_are_dropped(self):
        # The first three passes go as they did, and the first loss of a graph. Autograd has nothing to do after that.
        self.same("plain", passes=13, losses=12, updates=9, engine=4, lent=True)

    def test_gradients_that_are_dropped_after_the_forward_pass(self):
        self.same("late", passes=13, losses=12, updates=9)

    def test_gradients_that_are_filled_with_zeros(self):
        self.same("zeros", passes=13, losses=12, updates=12)

    def test_gradients_of_several_passes_are_added(self):
        self.same("accumulates", passes=13, losses=12)

    def test_gradients_that_the_program_keeps_are_not_overwritten(self):
        self.same("keeps", passes=13, losses=12, lent=False)

    def test_views_of_gradients_are_not_overwritten(self):
        self.same("views", ("model-graphs", "h no CUDA graphs from some step on: the program keeps views of gradients"),
                  passes=6, losses=5)

    def test_gradients_that_other_weights_have_are_not_overwritten(self):
        self.same("shares", passes=13, losses=12)

    def test_gradients_are_clipped(self):
        self.same("clips", passes=13, losses=12, updates=9)

    def test_inputs_with_names_and_plain_values(self):
        self.same("names", passes=13, losses=12)

    def test_other_shapes_go_as_they_did(self):
        self.same("shapes", passes=10, losses=9)

    def test_evaluation_in_between_goes_as_it_did(self):
        self.same("evaluates", passes=13, losses=12)

    def test_two_passes_before_the_backward_pass(self):
        # The second of them goes as it did, since a graph would overwrite what the first has left.
        self.same("twice", passes=15, losses=0, engine=16)

    def test_passes_that_are_not_used(self):
        self.same("unused", passes=9)

    def test_a_loss_that_is_scaled(self):
        self.same("scales", passes=13, losses=12, updates=9, engine=16)

    def test_a_loss_with_weights_in_it(self):
        self.same("regularizes", passes=13, losses=12, engine=16)

    def test_outputs_that_are_used_besides_the_loss(self):
        # The same sums in another order.
        self.same("penalizes", passes=13, losses=12, near=1e-5)

    def test_a_second_backward_pass(self):
        self.same("again", passes=13, losses=12)

    def test_gradients_of_outputs(self):
        self.same("retains", passes=13, losses=12, engine=16)

    def test_gradients_of_inputs(self):
        self.same("adversary", passes=13, losses=0)

    def test_hooks_of_weights_are_called(self):
        self.same("hooks", passes=6, losses=5)

    def test_weights_that_are_frozen(self):
        self.same("freezes", passes=6, losses=5)

    def test_weights_that_lie_elsewhere(self):
        self.same("swaps", passes=6, losses=5)

    def test_gradients_by_name(self):
        text = "the model cannot be captured: RuntimeError: the program asks for gradients by name"
        self.same("aside", (text, "model-graphs"), passes=0, losses=0)
        self.same("inputs", (text,), passes=0, losses=0, updates=0)
        # Once there are graphs, it is too late.
        done = self.run_way("named")
        self.assertEqual(done.returncode, 1)
        self.assertIn("RuntimeError: the model is a CUDA graph, which gives gradients of its weights to .grad alone", done.stderr)

    def test_optimizers(self):
        self.same("simple", updates=9)
        self.same("adam", updates=9)

    def test_a_step_in_between_that_is_no_graph(self):
        self.same("skips", updates=8)

    def test_a_learning_rate_that_is_lowered(self):
        self.same("drops", updates=6)

    def test_a_learning_rate_that_changes_with_each_step(self):
        # As a tensor it has fewer digits.
        self.same("rates", updates=7, near=1e-5)

    def test_a_state_that_is_loaded(self):
        self.same("loads", updates=6)

    def test_a_model_that_cannot_be_captured_goes_as_it_did(self):
        why = "RuntimeError: operation not permitted when stream is capturing"
        self.same("refused", ("the model cannot be captured: " + why, "h the optimizer's step is no CUDA graph: " + why),
                  passes=0, losses=0, updates=0)


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
