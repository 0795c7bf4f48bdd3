#!/usr/bin/env python3
"""Training loops of other packages: all of them show steps.

The packages are stand-ins: their classes, and who calls whom in which order, are those of the public sources of
Accelerate 1.x, Lightning 2.x and DeepSpeed 0.1x; they compute nothing. The loaders are those of PyTorch itself where it is
there. Usage: test_torch_loops.py BUILD [NAME...]
"""
import sys
import unittest

import runner
import stand_in_torch
from test_torch import HAS_TORCH, PYTHON, Case

ACCELERATE = {
    "accelerate/__init__.py": "from .accelerator import Accelerator\n",
    # A batch is held back, to know which one is the last.
    "accelerate/data_loader.py": """
        import torch
        class DataLoaderShard:
            def __init__(self, base_dataloader):
                self.base_dataloader = base_dataloader
                self.end_of_dataloader = False
            def __iter__(self):
                self.end_of_dataloader = False
                dataloader_iter = self.base_dataloader.__iter__()
                try:
                    current_batch = next(dataloader_iter)
                except StopIteration:
                    return
                while True:
                    try:
                        next_batch = next(dataloader_iter)
                        yield current_batch
                        current_batch = next_batch
                    except StopIteration:
                        self.end_of_dataloader = True
                        yield current_batch
                        break
    """,
    # It is an Optimizer that never ran Optimizer.__init__, around another one.
    "accelerate/optimizer.py": """
        import torch
        class AcceleratedOptimizer(torch.optim.Optimizer):
            def __init__(self, optimizer, accelerator, scaler=None):
                self.optimizer, self.accelerator, self.scaler = optimizer, accelerator, scaler
            def zero_grad(self, set_to_none=None):
                if self.accelerator.sync_gradients:
                    self.optimizer.zero_grad()
            def step(self, closure=None):
                if self.accelerator.sync_gradients:
                    if self.scaler is not None:
                        self.scaler.step(self.optimizer)
                        self.scaler.update()
                    else:
                        self.optimizer.step(closure)
    """,
    "accelerate/accelerator.py": """
        import contextlib
        import torch
        from .data_loader import DataLoaderShard
        from .optimizer import AcceleratedOptimizer
        class Accelerator:
            def __init__(self, gradient_accumulation_steps=1, mixed_precision=None):
                self.n, self.every, self.sync_gradients = 0, gradient_accumulation_steps, True
                self.scaler = torch.cuda.amp.GradScaler() if mixed_precision == "fp16" else None
            def prepare(self, model, optimizer, loader):
                self.loader = DataLoaderShard(loader)
                return model, AcceleratedOptimizer(optimizer, self, self.scaler), self.loader
            @contextlib.contextmanager
            def accumulate(self, model):
                self.n += 1
                self.sync_gradients = self.n % self.every == 0 or self.loader.end_of_dataloader
                yield
            def backward(self, loss):
                torch.autograd.backward(self.scaler.scale(loss) if self.scaler else loss)
    """,
}

LIGHTNING = {
    "lightning/__init__.py": "",
    "lightning/pytorch/__init__.py": "from .core import LightningModule\nfrom .trainer import Trainer\n",
    # training_step is a method, not a call of the module; the optimizer runs it as its closure.
    "lightning/pytorch/core.py": """
        import torch
        class LightningOptimizer:
            def __init__(self, optimizer): self._optimizer = optimizer
            def step(self, closure=None): return self._optimizer.step(closure=closure)
        class LightningModule(torch.nn.Module):
            def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure=None):
                optimizer.step(closure=optimizer_closure)
    """,
    "lightning/pytorch/fetchers.py": """
        class _PrefetchDataFetcher:
            def __init__(self, prefetch_batches=1): self.n, self.batches = prefetch_batches, []
            def setup(self, loader): self.loader = loader
            def __iter__(self):
                self.iterator, self.done, self.batches = iter(self.loader), False, []
                for _ in range(self.n):
                    try:
                        self.batches.append(next(self.iterator))
                    except StopIteration:
                        break
                return self
            def __next__(self):
                if self.batches:
                    batch = self.batches.pop(0)
                    try:
                        self.batches.append(next(self.iterator))
                    except StopIteration:
                        self.done = not self.batches
                elif not self.done:
                    batch = next(self.iterator)
                else:
                    raise StopIteration
                return batch
    """,
    "lightning/pytorch/trainer.py": """
        import torch
        from .core import LightningOptimizer
        from .fetchers import _PrefetchDataFetcher
        class Trainer:
            def __init__(self, max_epochs=1, prefetch=1): self.max_epochs, self.prefetch = max_epochs, prefetch
            def fit(self, model, train, val=None):
                optimizer = LightningOptimizer(model.configure_optimizers())
                if val is not None:
                    self.evaluate(model, val, 2)  # the sanity check
                for epoch in range(self.max_epochs):
                    fetcher = _PrefetchDataFetcher(self.prefetch)
                    fetcher.setup(train)
                    iter(fetcher)
                    ix = 0
                    while not fetcher.done:
                        try:
                            batch = next(fetcher)
                        except StopIteration:
                            break
                        def closure():
                            loss = model.training_step(batch, ix)
                            optimizer._optimizer.zero_grad()
                            torch.autograd.backward(loss)
                            return loss
                        model.optimizer_step(epoch, ix, optimizer, closure)
                        ix += 1
                    if val is not None:
                        self.evaluate(model, val)
            def evaluate(self, model, val, limit=1000):
                for ix, batch in enumerate(val):
                    if ix >= limit:
                        break
                    model.validation_step(batch, ix)
    """,
}

DEEPSPEED = {
    "deepspeed/__init__.py": "",
    "deepspeed/runtime/__init__.py": "",
    # Its optimizer is none of PyTorch's, and steps one of those for each group of parameters.
    "deepspeed/runtime/zero.py": """
        class DeepSpeedZeroOptimizer:
            def __init__(self, optimizer, groups=3): self.optimizer, self.groups, self.overflow = optimizer, groups, False
            def backward(self, loss):
                import torch
                torch.autograd.backward(loss)
            def step(self, closure=None):
                if self.overflow:
                    return
                for _ in range(self.groups):
                    self.optimizer.step()
            def zero_grad(self): pass
    """,
    "deepspeed/runtime/engine.py": """
        import torch
        from .zero import DeepSpeedZeroOptimizer
        class DeepSpeedEngine(torch.nn.Module):
            def __init__(self, module, optimizer, every=1):
                self.module, self.optimizer = module, DeepSpeedZeroOptimizer(optimizer)
                self.every, self.micro_steps = every, 0
            def forward(self, *inputs): return self.module(*inputs)
            def is_gradient_accumulation_boundary(self): return (self.micro_steps + 1) % self.every == 0
            def backward(self, loss): self.optimizer.backward(loss)
            def _take_model_step(self, lr_kwargs, block_eigenvalue={}):
                self.optimizer.step()
                self.optimizer.zero_grad()
            def step(self, lr_kwargs=None):
                if self.is_gradient_accumulation_boundary():
                    self._take_model_step(lr_kwargs)
                self.micro_steps += 1
    """,
    # A pipeline has instructions, and a batch of several micro-batches.
    "deepspeed/runtime/pipe.py": """
        from .engine import DeepSpeedEngine
        class PipelineEngine(DeepSpeedEngine):
            def train_batch(self, data_iter):
                for _ in range(self.every):
                    self.backward(self.module(next(data_iter)))
                self._take_model_step(None)
    """,
}

MODEL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x
"""


class Loops(Case):
    def loop(self, package, script, *options):
        stand_in_torch.write(self.folder.name, "2.11")
        for name, text in package.items():
            self.write(name, text)
        return self.record(MODEL + script, *options, env={"PYTHONPATH": self.folder.name})

    def held(self, report, phase):
        """How many of these phases lie inside each step."""
        rows = self.query(report, "select (select count(*) from range r join label l on l.id = r.label where l.name = '%s' "
                                  "and r.start_ns >= s.start_ns and r.start_ns < s.start_ns + s.dur_ns) n from step s "
                                  "order by s.start_ns" % phase)
        return [r["n"] for r in rows]

    def test_accelerate(self):
        script = """
from accelerate import Accelerator
accelerator = Accelerator(gradient_accumulation_steps=EVERY, mixed_precision=PRECISION)
model, opt, loader = accelerator.prepare(Model(), torch.optim.SGD([1]), torch.utils.data.DataLoader(range(6)))
for epoch in range(2):
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            opt.step()
            opt.zero_grad()
"""
        report = self.loop(ACCELERATE, script.replace("EVERY", "1").replace("PRECISION", "None"))
        self.assertEqual(self.steps(report), list(range(12)))
        self.assertEqual((self.held(report, "forward"), self.held(report, "optimizer")), ([1] * 12, [1] * 12))
        report = self.loop(ACCELERATE, script.replace("EVERY", "2").replace("PRECISION", "'fp16'"))
        self.assertEqual(self.steps(report), list(range(6)))
        self.assertEqual((self.held(report, "forward"), self.held(report, "grad_scaler.step")), ([2] * 6, [1] * 6))

    def test_lightning(self):
        script = """
import lightning.pytorch as pl
class Lit(pl.LightningModule):
    def __init__(self): self.model = Model()
    def training_step(self, batch, ix): return self.model(batch)
    def validation_step(self, batch, ix): return self.model(batch)
    def configure_optimizers(self): return torch.optim.SGD([1])
train, val = torch.utils.data.DataLoader(range(5)), VAL
pl.Trainer(max_epochs=2, prefetch=PREFETCH).fit(Lit(), train, val)
"""
        for prefetch in ("1", "0"):
            with self.subTest(prefetch):
                report = self.loop(LIGHTNING, script.replace("VAL", "None").replace("PREFETCH", prefetch))
                self.assertEqual(self.steps(report), list(range(10)))
                self.assertEqual((self.held(report, "forward"), self.held(report, "backward")), ([1] * 10, [1] * 10))
                # The closure is not the update.
                depths = self.query(report, "select distinct r.depth from range r join label l on l.id = r.label "
                                            "where l.name in ('forward', 'backward')")
                self.assertEqual(depths, [{"depth": 0}])
        report = self.loop(LIGHTNING, script.replace("VAL", "torch.utils.data.DataLoader(range(3))").replace("PREFETCH", "1"))
        # Two of the sanity check, and in each epoch five to train and three to validate.
        self.assertEqual(len(self.steps(report)), 2 + 2 * (5 + 3))

    def test_deepspeed(self):
        script = """
from deepspeed.runtime.engine import DeepSpeedEngine
engine = DeepSpeedEngine(Model(), torch.optim.SGD([1]), every=2)
for i, batch in enumerate(torch.utils.data.DataLoader(range(8))):
    engine.optimizer.overflow = i // 2 == 1
    engine.backward(engine(batch))
    engine.step()
"""
        report = self.loop(DEEPSPEED, script)
        self.assertEqual(self.phases(report)["optimizer"], 4)
        # Where gradients overflow nothing is updated: these batches belong to the step that is.
        self.assertEqual((self.steps(report), self.held(report, "forward")), ([0, 1, 2], [2, 4, 2]))
        report = self.loop(DEEPSPEED, """
from deepspeed.runtime.pipe import PipelineEngine
engine = PipelineEngine(Model(), torch.optim.SGD([1]), every=3)
data = iter(torch.utils.data.DataLoader(range(12)))
for _ in range(4):
    engine.train_batch(data)
""")
        self.assertEqual((self.steps(report), self.held(report, "backward")), ([0, 1, 2, 3], [3] * 4))

    def test_prefetchers(self):
        """One in a thread: its waits are phases there, and no steps."""
        report = self.loop({}, """
import queue, threading
class Prefetcher:
    def __init__(self, loader):
        self.ready = queue.Queue(2)
        threading.Thread(target=self.run, args=(loader,), daemon=True).start()
    def run(self, loader):
        for batch in loader:
            self.ready.put(batch)
        self.ready.put(None)
    def __iter__(self): return iter(self.ready.get, None)
model, opt = Model(), torch.optim.SGD([1])
for batch in Prefetcher(torch.utils.data.DataLoader(range(6))):
    torch.autograd.backward(model(batch))
    opt.step()
""")
        phases = self.phases(report)
        self.assertEqual((phases["data_load"], phases["optimizer"]), (7, 6))
        self.assertEqual((len(self.steps(report)), self.held(report, "optimizer")), (6, [1] * 6))


@unittest.skipUnless(HAS_TORCH, "no PyTorch for %s here" % PYTHON)
class Workers(Case):
    """DataLoader's workers, however they are started."""

    SCRIPT = """
        import ctypes
        import torch
        from torch.utils.data import DataLoader, Dataset
        class Numbers(Dataset):
            def __len__(self): return 12
            def __getitem__(self, ix): return torch.full((4,), float(ix))
        def rename(number):
            # As newer versions of PyTorch do; 15 is PR_SET_NAME.
            ctypes.CDLL(None).prctl(15, b"pt_data_worker", 0, 0, 0)
        if __name__ == "__main__":
            torch.set_num_threads(1)
            loader = DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="%s", worker_init_fn=rename)
            model = torch.nn.Linear(4, 1)
            opt = torch.optim.SGD(model.parameters(), lr=0.01)
            for x in loader:
                model(x).sum().backward()
                opt.step()
            print("done")
    """

    def check(self, way):
        report = self.record(self.SCRIPT % way, beside="done\n")
        self.assertEqual(self.steps(report), list(range(6)))
        rows = self.query(report, "select l.name, p.pid, count(r.start_ns) n from lane l join process p on p.id = l.process "
                                  "left join range r on r.lane = l.id join label b on b.id = r.label "
                                  "where b.name = 'dataloader.fetch' group by 1, 2 order by 1")
        self.assertEqual([(r["name"], r["n"]) for r in rows], [("data worker 0", 3), ("data worker 1", 3)])
        self.assertEqual(len({r["pid"] for r in rows}), 2)
        # What a worker does is no step and no forward pass.
        rows = self.query(report, "select count(distinct l.process) n from step s join lane l on l.id = s.lane")
        self.assertEqual(rows, [{"n": 1}])

    def test_forked(self):
        self.check("fork")

    def test_spawned(self):
        self.check("spawn")

    def test_of_a_server(self):
        self.check("forkserver")


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
