#!/usr/bin/env python3
"""The remedy model-graphs with the autograd of PyTorch: results are those of the program, however it treats gradients.

CUDA graphs need a GPU. What stands in for torch.cuda.make_graphed_callables() here computes with the real operators, and
keeps what bites: inputs, outputs and gradients lie in the same memory each time. Usage: test_try_graphs.py BUILD [NAME...]
"""
import json
import os
import sys
import tempfile
import textwrap
import unittest

import runner
from test_torch import HAS_TORCH, PYTHON

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")

GRAPHS = """
import copy, importlib.util, json, sys
import torch
from torch import nn

# As that of a device: a capture that fails leaves its state unusable, and another has to take its place.
class Generator:
    is_capturing = False
    def clone_state(self): return torch.get_rng_state()
    def graphsafe_set_state(self, state):
        self.is_capturing = False
        torch.set_rng_state(state)

generator, streams = Generator(), ["the program's"]

def set_rng_state(state, device):
    if generator.is_capturing:
        raise RuntimeError("Offset increment outside graph capture encountered unexpectedly.")
    torch.set_rng_state(state)

torch.Tensor.is_cuda = property(lambda tensor: True)
torch.cuda.is_current_stream_capturing = lambda: False
torch.cuda.current_stream = lambda device: streams[-1]
torch.cuda.set_stream = streams.append
torch.cuda.default_generators = [generator]
torch.cuda.get_rng_state = lambda device: torch.get_rng_state()
torch.cuda.set_rng_state = set_rng_state
n_replays = 0

# What the backward pass of a node gives gradients to.
def leaves(node, seen):
    for next_node, _ in node.next_functions:
        if next_node is not None and next_node not in seen:
            seen.add(next_node)
            if hasattr(next_node, "variable"):
                yield next_node.variable
            yield from leaves(next_node, seen)

def make_graphed_callables(eager, samples, allow_unused_input=False):
    if sys.argv[2] == "refused":
        eager(*samples)  # it had begun
        generator.is_capturing = True
        streams.append("that of the capture")
        raise RuntimeError("operation not permitted when stream is capturing")
    for _ in range(3):
        made = eager(*samples)
    if not isinstance(made, torch.Tensor):
        raise TypeError("one output")
    # Weights that an earlier pass has used belong to another stream.
    if any(all(leaf is not sample for sample in samples) for leaf in leaves(made.grad_fn, set())):
        raise RuntimeError("operation failed due to a previous error during capture")
    learnt = [s for s in samples if s.requires_grad]
    output, gradients = made.detach().clone(), {}

    class Graph(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            global n_replays
            n_replays += 1
            for sample, value in zip(samples, given):
                if sample.data_ptr() != value.data_ptr():
                    sample.copy_(value)
            with torch.enable_grad():
                ctx.made = eager(*samples)
            return output.copy_(ctx.made.detach()).detach()

        @staticmethod
        def backward(ctx, gradient):
            found = dict(zip(map(id, learnt), torch.autograd.grad(ctx.made, learnt, gradient, allow_unused=True)))
            for key, value in found.items():
                if value is not None:
                    gradients.setdefault(key, torch.empty_like(value)).copy_(value)
            return tuple(gradients[id(i)].detach() if id(i) in gradients else None for i in samples)
    return Graph.apply

torch.cuda.make_graphed_callables = make_graphed_callables

class Trial:
    def __init__(self): self.model, self.told = [], []
    def has_ranks(self): return False
    def changes(self, remedy): return True
    def where(self, remedy, text): pass
    def did(self, remedy): self.told.append(remedy)
    def trouble(self, text): self.told.append(text)

spec = importlib.util.spec_from_file_location("remedy", sys.argv[1])
remedy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(remedy)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last, self.unused = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4), nn.Linear(2, 2)
        self.drop = nn.Dropout(0.2)
    def forward(self, x, scale=1.0, mask=None):
        x = self.drop(torch.relu(self.norm(self.first(x)))) * scale
        return self.last(x if mask is None else x * mask)

def train(way, with_graphs):
    global n_replays
    n_replays = 0
    torch.manual_seed(0)
    net, trial = Net(), Trial()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    if with_graphs:
        remedy.apply(trial)
        trial.model[0](net)
    seen, outputs = [], []
    for i in range(16):
        n = 5 if way == "shapes" and i % 5 == 4 else 8
        x, y = torch.randn(n, 8), torch.randint(0, 4, (n,))
        more = {"mask": torch.rand(n, 16).round(), "scale": 0.5} if way == "names" else {}
        if way != "accumulates" or i % 2 == 0:
            optimizer.zero_grad(set_to_none=way != "zeros")
        output = net(x, **more)
        if way == "late":
            optimizer.zero_grad()
        outputs.append(output.detach())
        loss = nn.functional.cross_entropy(output, y)
        loss.backward()
        if way != "accumulates" or i % 2:
            optimizer.step()
        seen.append(loss.item())
        if way == "evaluates" and i % 3 == 2:
            net.eval()
            with torch.no_grad():
                seen.append(net(x).sum().item())
            net.train()
    # A copy of the model has its own weights.
    other = copy.deepcopy(net).eval()
    nn.init.zeros_(net.last.weight)
    seen += [other(x).sum().item(), net.norm.running_mean.sum().item()]
    assert streams[-1] == "the program's", streams
    return {"seen": seen + [o.sum().item() for o in outputs], "replays": n_replays, "told": trial.told}

print(json.dumps([train(sys.argv[2], False), train(sys.argv[2], True)]))
"""


@unittest.skipUnless(HAS_TORCH, "no PyTorch here (Debian's package python3-torch)")
class Graphs(unittest.TestCase):
    def train(self, way):
        """(what the program computed without the remedy, with it)"""
        with tempfile.TemporaryDirectory(prefix="lull-graphs-test-") as folder:
            script = os.path.join(folder, "train.py")
            with open(script, "w", encoding="utf-8") as f:
                f.write(textwrap.dedent(GRAPHS))
            remedy = os.path.join(ROOT, "python/lull/remedies/model_graphs.py")
            done = runner.run([PYTHON, script, remedy, way])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def same(self, way, replays):
        plain, changed = self.train(way)
        self.assertEqual((plain["replays"], plain["told"]), (0, []))
        self.assertEqual((changed["replays"], changed["told"]), (replays, ["model-graphs"]))
        self.assertEqual(plain["seen"], changed["seen"])

    def test_gradients_that_are_dropped(self):
        self.same("plain", 13)

    def test_gradients_that_are_dropped_after_the_forward_pass(self):
        self.same("late", 13)

    def test_gradients_that_are_filled_with_zeros(self):
        self.same("zeros", 13)

    def test_gradients_of_several_passes_are_added(self):
        self.same("accumulates", 13)

    def test_inputs_with_names_and_plain_values(self):
        self.same("names", 13)

    def test_other_shapes_go_as_they_did(self):
        self.same("shapes", 10)

    def test_evaluation_in_between_goes_as_it_did(self):
        self.same("evaluates", 13)

    def test_a_model_that_cannot_be_captured_goes_as_it_did(self):
        plain, changed = self.train("refused")
        self.assertEqual((changed["replays"], changed["seen"]), (0, plain["seen"]))
        self.assertEqual(changed["told"], ["the model cannot be captured: RuntimeError: operation not permitted when stream is capturing"])


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
