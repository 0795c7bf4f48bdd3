#!/usr/bin/env python3
"""The hooks of PyTorch: on a stand-in for each version, on Debian's PyTorch if it is there, and where they cannot work.

Usage: test_torch.py BUILD [NAME...]
"""
import collections
import ctypes
import json
import os
import sys
import tempfile
import textwrap
import unittest

import runner
import stand_in_torch

LULL = os.path.abspath(os.path.join(sys.argv[1], "lull"))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
QUIET = ["-q", "-f", "true", "-s", "none", "--cpuctxsw", "none", "--python-sampling=false"]
HAS_TORCH = runner.run([PYTHON, "-c", "import torch"]).returncode == 0


def may_read_itself():
    """process_vm_readv(2), by which the agent reads what PyTorch has in this process; sandboxes forbid it."""
    class Part(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    there, here = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(1)
    parts = [Part(ctypes.addressof(b), 1) for b in (here, there)]
    return ctypes.CDLL(None).process_vm_readv(os.getpid(), ctypes.byref(parts[0]), ctypes.c_ulong(1), ctypes.byref(parts[1]),
                                              ctypes.c_ulong(1), ctypes.c_ulong(0)) == 1


NEEDS_OPS = unittest.skipUnless(may_read_itself(), "process_vm_readv(2) is refused here, and operators need it")

# Two epochs of three batches, twice accumulated gradients in the second, a validation, a checkpoint.
LOOP = """
import torch
class Part(torch.nn.Module):
    def forward(self, x): return x
class Model(torch.nn.Module):
    def __init__(self): self.part = Part()
    def forward(self, x): return self.part(x)
model, opt = Model(), torch.optim.SGD([1])
scaler = torch.cuda.amp.GradScaler()
for batch in torch.utils.data.DataLoader(range(3)):
    out = model(batch)
    torch.autograd.backward(out)
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_([], 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
for i, batch in enumerate(torch.utils.data.DataLoader(range(4))):
    torch.autograd.backward(model(batch))
    if i % 2:
        opt.step()
        opt.zero_grad()
for batch in torch.utils.data.DataLoader(range(2)):
    model(batch)
torch.save({}, "x")
print("done")
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lull-torch-")
        self.addCleanup(self.folder.cleanup)
        self.n = 0

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(text))
        return self.path(name)

    def record(self, script, *options, python=(), env=None, status=0, beside="plain"):
        """Run the script under lull and, if it can, without: it has to do the same. Returns the report.

        beside: "plain", or what the script has to print, None if that does not matter.
        """
        self.n += 1
        file = self.write("script%d.py" % self.n, script)
        report = self.path("report%d" % self.n)
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        argv = [PYTHON, *python, file]
        if beside == "plain":
            beside = runner.run(argv, env=env, cwd=self.folder.name).stdout
        done = runner.run([LULL, "profile", *QUIET, "-o", report, *options, *argv], env=env, cwd=self.folder.name)
        self.assertEqual(done.returncode, status, done.stderr)
        if beside is not None:
            self.assertEqual(beside, done.stdout)
        return report + ".lull"

    def query(self, report, sql):
        return json.loads(runner.run([LULL, "query", "--format", "json", report, sql], check=True).stdout)

    def phases(self, report):
        rows = self.query(report, "select l.name, count(*) n from range r join label l on l.id = r.label "
                                  "where l.api = 6 and l.name != 'gc.collect' group by 1")
        return {r["name"]: r["n"] for r in rows}

    def steps(self, report):
        return [r["number"] for r in self.query(report, "select number from step order by start_ns")]

    def issues(self, report):
        return {r["name"]: r["detail"] for r in self.query(report, "select name, detail from issue")}


class StandIn(Case):
    """Every version has the same phases."""

    def loop(self, version, *options, script=LOOP, **more):
        stand_in_torch.write(self.folder.name, version)
        return self.record(script, *options, env={"PYTHONPATH": self.folder.name}, **more)

    def test_each_version_shows_the_phases(self):
        for version in stand_in_torch.VERSIONS[:-1]:
            with self.subTest(version):
                report = self.loop(version, beside="done\n")
                self.assertEqual(self.phases(report), {
                    "data_load": 12, "dataloader.start": 3, "forward": 9, "backward": 7, "optimizer": 5, "zero_grad": 5,
                    "grad_scaler.unscale": 3, "grad_scaler.step": 3, "grad_scaler.update": 3, "clip_grad_norm": 3,
                    "checkpoint.save": 1})
                # Three, two of two batches each, two without backward.
                self.assertEqual(self.steps(report), list(range(7)))
                self.assertNotIn("torch_partly", self.issues(report))

    def test_what_a_version_lacks_is_told(self):
        report = self.loop("strange")
        self.assertIn("torch.utils.data.dataloader", self.issues(report)["torch_partly"])
        phases = self.phases(report)
        self.assertNotIn("data_load", phases)
        self.assertEqual((phases["forward"], phases["optimizer"]), (9, 5))

    def test_modules_show_the_tree(self):
        phases = self.phases(self.loop("2.11", "--pytorch=modules"))
        self.assertEqual((phases["forward"], phases["part (Part)"]), (9, 9))

    def test_none_leaves_the_program_alone(self):
        report = self.loop("2.11", "--pytorch=none", script=LOOP + "import sys; print('_lull' in sys.modules)")
        self.assertEqual(self.phases(report), {})

    def test_a_closure_is_not_the_update(self):
        report = self.loop("2.11", script="""
            import torch
            class Model(torch.nn.Module):
                def forward(self, x): return x
            model, opt = Model(), torch.optim.SGD([1])
            def closure():
                torch.autograd.backward(model(1))
            for _ in range(3):
                opt.step(closure)
        """)
        self.assertEqual(self.phases(report), {"forward": 3, "backward": 3, "optimizer": 6})
        depths = self.query(report, "select distinct r.depth from range r join label l on l.id = r.label "
                                    "where l.name in ('forward', 'backward')")
        self.assertEqual(depths, [{"depth": 0}])
        self.assertEqual(self.steps(report), [0, 1, 2])

    def test_an_engine_steps_when_it_does(self):
        """DeepSpeed: step() is called for each batch; every second one updates, in several parts."""
        self.write("deepspeed/__init__.py", "")
        self.write("deepspeed/runtime/__init__.py", "")
        self.write("deepspeed/runtime/engine.py", """
            class DeepSpeedEngine:
                def __init__(self, optimizer): self.optimizer, self.n = optimizer, 0
                def step(self):
                    self.n += 1
                    if self.n % 2 == 0:
                        for _ in range(3):
                            self.optimizer.step()
        """)
        report = self.loop("2.11", script="""
            import torch
            from deepspeed.runtime.engine import DeepSpeedEngine
            class Model(torch.nn.Module):
                def forward(self, x): return x
            model, engine = Model(), DeepSpeedEngine(torch.optim.SGD([1]))
            for batch in range(8):
                torch.autograd.backward(model(batch))
                engine.step()
        """)
        self.assertEqual(self.phases(report), {"forward": 8, "backward": 8, "optimizer": 8})
        self.assertEqual(self.steps(report), [0, 1, 2, 3])

    def test_two_optimizers_make_one_step(self):
        report = self.loop("2.11", script="""
            import torch
            class Model(torch.nn.Module):
                def forward(self, x): return x
            d, g = Model(), Model()
            opt_d, opt_g = torch.optim.SGD([1]), torch.optim.SGD([2])
            for batch in torch.utils.data.DataLoader(range(5)):
                torch.autograd.backward(d(batch))
                opt_d.step()
                torch.autograd.backward(g(batch))
                opt_g.step()
        """)
        # The first round shows that batches begin the steps; from then on there is one for each.
        self.assertEqual(len(self.steps(report)), 6)

    def test_exceptions_pass_and_ranges_end(self):
        report = self.loop("2.11", script="""
            import torch
            class Model(torch.nn.Module):
                def forward(self, x):
                    if x == 1: raise ValueError("in the model")
                    return x
            model, opt = Model(), torch.optim.SGD([1])
            for i in range(4):
                try:
                    torch.autograd.backward(model(i))
                    opt.step("fail" if i == 2 else None)
                except (ValueError, RuntimeError) as e:
                    print(e)
        """)
        self.assertEqual(self.phases(report), {"forward": 4, "backward": 3, "optimizer": 3})
        self.assertNotIn("range_mismatch", self.issues(report))
        report = self.loop("2.11", script="import torch\nraise SystemExit(3)", status=3)
        self.assertEqual(self.phases(report), {})

    def test_compile_finds_the_original(self):
        report = self.loop("2.11", script="""
            import torch
            class Model(torch.nn.Module):
                def forward(self, x): return x
            model = Model()
            model(1)
            import torch._dynamo
            print(torch._dynamo.is_unpatched)
            torch.compile(model)
            print(torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl)
            torch._dynamo.eval_frame.OptimizedModule(model)(2)
        """)
        self.assertEqual(self.phases(report), {"forward": 2})

    def test_nothing_stays_of_hooks_that_are_removed(self):
        script = """
            import sys, torch, torch._dynamo
            class Model(torch.nn.Module):
                def forward(self, x): return x
            kind, switch = torch._dynamo.eval_frame.OptimizedModule, sys.modules["_lull_hooks"].switch
            model = kind(Model())
            for is_on in (False, True, False):
                switch(is_on)
                assert model(2) == 2 and ("__call__" in kind.__dict__) >= is_on
            assert torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl
            switch(True)
            assert torch.nn.Module.__call__ is not torch.nn.Module._wrapped_call_impl
            torch.compile(model)
            switch(False)
            switch(True)
            assert torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl
        """
        for version in ("2.1", "2.11"):
            with self.subTest(version):
                self.assertEqual(self.phases(self.loop(version, script=script)), {"forward": 1})

    def test_each_version_shows_its_compilation(self):
        script = """
            import torch._dynamo
            for graph in ("a miss", "a hit"):
                print(torch._dynamo.convert_frame._compile(graph))
        """
        for version in stand_in_torch.VERSIONS[1:-1]:
            with self.subTest(version):
                v = (99, 0) if version == "next" else tuple(int(n) for n in version.split("."))
                n = 1 if v >= (2, 2) else 2  # what is in the cache is not compiled again
                wanted = {"compile": 2, "compile.backend": 2, "compile.inductor": n, "compile.kernels": n}
                if v >= (2, 2):
                    wanted["compile.cache"] = 4 if v >= (2, 4) else 2
                self.assertEqual(self.phases(self.loop(version, script=script)), wanted)

    def test_each_version_tells_why_graphs_break(self):
        script = """
            import os, torch._dynamo
            from torch._dynamo import convert_frame, output_graph
            from traceback import FrameSummary
            class Frame:
                def __init__(self, function): self.f_code = function.__code__
            def forward(x): pass
            def refused(x): pass
            own = FrameSummary("/srv/train.py", 41, "forward", lookup_line=False)
            inner = FrameSummary(os.path.join(os.path.dirname(torch.__file__), "nn/x.py"), 7, "norm", lookup_line=False)
            graph, reason = output_graph.OutputGraph(), output_graph.GraphCompileReason
            for _ in range(2):
                graph.compile_subgraph("tx", reason=reason("Tensor.item", [own]))
            graph.compile_subgraph("tx", reason=reason("Skipped call\\n  Explanation: no.\\n\\n  Developer debug context: print", [own, inner]))
            graph.compile_subgraph("tx", reason=reason("return_value", [own]))
            convert_frame.convert(Frame(forward), None)
            convert_frame.convert(Frame(forward), ["0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9", "0/1: b"])
            try:
                convert_frame.convert(Frame(refused), None)
            except torch._dynamo.exc.SkipFrame as e:
                print(e)
            graph.compile_subgraph("tx", reason=None)  # what we do not understand goes on as it is
            graph.compile_subgraph("tx", reason=reason(None, 5))
        """
        for version in ("2.0", *stand_in_torch.VERSIONS[1:-1]):
            with self.subTest(version):
                report = self.loop(version, script=script, beside="a break in a loop\n")
                rows = json.loads(runner.run([LULL, "stats", "-q", "-r", "graph_breaks", "--format", "json", report],
                                             check=True).stdout)
                found = {(r["Kind"], os.path.basename(r["Line"]), r["Function"], r["Reason"]): r["Count"] for r in rows}
                file = os.path.basename(report).replace("report", "script").replace("lull", "py")
                self.assertEqual(found, {
                    ("graph break", "train.py:41", "forward", "Tensor.item"): 2,
                    ("graph break", "train.py:41", "forward", "Skipped call (print)"): 1,
                    ("recompile", f"{file}:7", "forward", "tensor 'x' size mismatch at index 0. expected 8, actual 9"): 1,
                    ("not compiled", f"{file}:8", "refused", "call print"): 1})
                self.assertNotIn("torch_partly", self.issues(report))

    def test_what_is_traced_is_left_alone(self):
        """No call of ours may come into a graph: 2.1 says elsewhere that it traces."""
        for version, place in (("2.1", "torch._dynamo.external_utils.is_tracing"), ("2.11", "torch.compiler._is_compiling_flag")):
            with self.subTest(version):
                report = self.loop(version, script="""
                    import torch, torch._dynamo, torch.distributed
                    torch.distributed.all_reduce(1)
                    PLACE = True
                    torch.distributed.all_reduce(1)
                    torch.nn.utils.clip_grad_norm_([], 1.0)
                    torch.autograd.backward(1)
                    torch.optim.SGD([1]).step()
                """.replace("PLACE", place))
                self.assertEqual(self.phases(report), {"dist.all_reduce": 1})

    def test_a_module_that_is_compiled_in_place(self):
        report = self.loop("2.11", script="""
            import torch
            class Model(torch.nn.Module):
                def forward(self, x): return x
            model, opt = Model(), torch.optim.SGD([1])
            model.compile()
            for batch in torch.utils.data.DataLoader(range(4)):
                torch.autograd.backward(model(batch))
                opt.step()
        """)
        self.assertEqual((self.phases(report)["forward"], self.steps(report)), (4, [0, 1, 2, 3]))

    def test_a_step_that_is_compiled_as_a_whole(self):
        """Neither the model nor the optimizer is ever seen: each batch is a step."""
        report = self.loop("2.11", script="""
            import torch
            train = torch.compile(lambda batch: batch)
            for batch in torch.utils.data.DataLoader(range(5)):
                train(batch)
        """)
        self.assertEqual(self.steps(report), [0, 1, 2, 3, 4])

    def test_steps_choose_what_is_recorded(self):
        script = """
            import torch
            class Model(torch.nn.Module):
                def forward(self, x): return x
            model, opt = Model(), torch.optim.SGD([1])
            for i in range(20):
                torch.autograd.backward(model(i))
                opt.step()
            print("end")
        """
        self.loop("2.11", "--steps=skip=2,wait=1,warmup=1,active=3,repeat=2", "-o", self.path("r%n"), script=script,
                  beside="end\n")
        self.assertEqual(self.steps(self.path("r1.lull")), [4, 5, 6])
        self.assertEqual(self.steps(self.path("r2.lull")), [9, 10, 11])
        self.assertFalse(os.path.exists(self.path("r3.lull")))
        self.assertEqual(self.phases(self.path("r1.lull"))["backward"], 3)

    def test_the_program_has_a_schedule(self):
        self.loop("2.11", "-c", "lull", "--capture-range-end=repeat", "-o", self.path("s%n"), beside=None, script="""
            import lull
            print(lull.schedule(skip_first=1, wait=1, warmup=0, active=2, repeat=1))
            for i in range(8):
                lull.step()
                with lull.record("work"):
                    lull.mark("here")
            try:
                lull.schedule(active=0)
            except ValueError as e:
                print(e)
        """)
        self.assertEqual(self.steps(self.path("s1.lull")), [2, 3])
        names = self.query(self.path("s1.lull"), "select l.name, count(*) n from range r join label l on l.id = r.label group by 1")
        self.assertEqual(names, [{"name": "work", "n": 2}])

    def test_ranks_share_a_round(self):
        """Two processes in step, the second always half a step behind: both have all steps of each round."""
        rank = """
            import sys, time, lull
            number = int(sys.argv[1])
            for i in range(DIES if number else 12):
                sys.stdin.readline()
                lull.step()
                with lull.record("work"):
                    time.sleep(0.003)
                print(i, flush=True)
            if number and DIES < 12:
                import os
                os._exit(9)
        """
        both = """
            import subprocess, sys
            ranks = [subprocess.Popen([sys.executable, "rank.py", str(i)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True) for i in range(2)]
            for i in range(13):
                for rank in ranks:
                    try:
                        rank.stdin.write("go\\n")
                        rank.stdin.flush()
                        rank.stdout.readline()
                    except OSError:
                        pass
        """
        for dies, name in ((12, "b"), (6, "d")):
            self.write("rank.py", rank.replace("DIES", str(dies)))
            self.loop("2.11", "--steps=skip=2,wait=1,warmup=1,active=3,repeat=1", "-o", self.path(name + "%n"), beside=None,
                      script=both)
            rows = self.query(self.path(name + "1.lull"), "select l.process, s.number from step s join lane l on l.id = s.lane "
                                                          "order by l.process, s.number")
            steps = collections.defaultdict(list)
            for r in rows:
                steps[r["process"]].append(r["number"])
            wanted = [[4, 5, 6], [4, 5, 6]] if dies == 12 else [[4, 5, 6], [4, 5]]
            self.assertEqual(sorted(steps.values(), key=len, reverse=True), wanted)
            self.assertFalse(os.path.exists(self.path(name + "2.lull")))

    def test_own_steps_win(self):
        report = self.loop("2.11", beside=None, script="""
            import lull, torch
            opt = torch.optim.SGD([1])
            for i in range(4):
                lull.step(10 + i)
                opt.step()
        """)
        self.assertEqual(self.steps(report), [10, 11, 12, 13])


class Rounds(Case):
    """Steps that a program in C says itself, on the simulated device."""

    def test_rounds_hold_their_steps_and_kernels(self):
        build = os.path.dirname(LULL)
        runner.run([LULL, "profile", *QUIET, "-o", self.path("c%n"), "--steps=skip=4,wait=2,warmup=1,active=2,repeat=3",
                    os.path.join(build, "examples/train_cuda"), "--steps=40"], check=True,
                   env={**os.environ, "LD_LIBRARY_PATH": os.path.join(build, "sim")})
        for i, steps in ((1, [7, 8]), (2, [12, 13]), (3, [17, 18])):
            report = self.path("c%d.lull" % i)
            self.assertEqual(self.steps(report), steps)
            # Ten a step, each with its name, though the same were launched before the recording.
            self.assertEqual(self.query(report, "select count(*) n, sum(launch = 0) nameless from kernel"),
                             [{"n": 20, "nameless": 0}])


class Refused(Case):
    """Where the hooks cannot work the program does as without them."""

    def test_without_torch_nothing_is_said(self):
        report = self.record("import json, sys\nprint(json.dumps(1), sys.path, 'lull' in sys.modules)")
        self.assertEqual(self.phases(report), {})
        self.assertFalse([i for i in self.issues(report) if i.startswith("torch")])

    def test_a_broken_torch_breaks_as_before(self):
        self.write("torch/__init__.py", "raise ImportError('no such symbol')")
        report = self.record("""
            try:
                import torch
            except ImportError as e:
                print(e, e.__traceback__.tb_next is not None)
        """, env={"PYTHONPATH": self.folder.name})
        self.assertEqual(self.phases(report), {})

    def test_another_sitecustomize_is_loaded(self):
        self.write("site/sitecustomize.py", "import builtins\nbuiltins.their_own = __file__\n")
        stand_in_torch.write(self.path("site"), "2.11")
        report = self.record("import sys, torch\nprint(their_own, sys.modules['sitecustomize'].__file__)\n"
                             "torch.save({}, 'x')", env={"PYTHONPATH": self.path("site")})
        self.assertEqual(self.phases(report), {"checkpoint.save": 1})
        # One that fails does so as before: Python says so and goes on.
        self.write("site/sitecustomize.py", "raise ValueError('theirs')")
        self.record("print(1)", env={"PYTHONPATH": self.path("site")})

    def test_the_path_of_python_is_as_before(self):
        # An empty part is the current folder; an empty variable, or none, has no part.
        script = "import sys\nprint(sys.path[1:])"
        for value in ("", ":", "::", "/x", ":/x", "/x:", "/x::/y", ":/x:"):
            with self.subTest(value):
                self.record(script, env={"PYTHONPATH": value})
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        argv = [PYTHON, "-c", script]
        shown = [runner.run([*before, *argv], env=env, cwd=self.folder.name, check=True).stdout
                 for before in ((), (LULL, "profile", *QUIET, "-o", self.path("unset")))]
        self.assertEqual(*shown)

    def test_a_replaced_meta_path_is_respected(self):
        stand_in_torch.write(self.folder.name, "2.11")
        report = self.record("""
            import sys
            from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
            sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]
            import torch
            torch.save({}, "x")
            print(torch.save.__module__)
        """, env={"PYTHONPATH": self.folder.name})
        self.assertEqual(self.phases(report), {})

    def test_our_own_options(self):
        for words, said in ((["--pytorch=all"], "auto, none, steps, ops, modules"), (["--steps=5"], "skip=5,wait=1"),
                            (["--steps=active=0"], "cannot be 0"), (["--steps=active=2"], "wait or warmup"),
                            (["--steps=active=2,repeat=1", "-c", "nvtx", "-p", "x"], "--capture-range")):
            done = runner.run([LULL, "profile", *words, "true"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


@unittest.skipUnless(HAS_TORCH, "no PyTorch for %s here" % PYTHON)
class Real(Case):
    """PyTorch itself, on the CPU."""

    LOOP = """
        import sys, torch
        from torch.utils.data import DataLoader, TensorDataset
        torch.manual_seed(0)
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        opt = torch.optim.AdamW(model.parameters())
        data = TensorDataset(torch.randn(64, 16), torch.randn(64, 4))
        for x, y in DataLoader(data, batch_size=16, num_workers=WORKERS):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
        print([p.detach().sum().item().hex() for p in model.parameters()])
    """

    def test_phases_and_results(self):
        report = self.record(self.LOOP.replace("WORKERS", "2"))
        phases = self.phases(report)
        self.assertEqual((phases["data_load"], phases["forward"], phases["backward"], phases["optimizer"]), (5, 4, 4, 4))
        self.assertEqual(phases["dataloader.fetch"], 4)
        self.assertEqual(self.steps(report), [0, 1, 2, 3])
        names = {r["name"] for r in self.query(report, "select name from lane where kind = 1")}
        self.assertTrue({"data worker 0", "data worker 1"} <= names, names)
        self.assertFalse([i for i in self.issues(report) if i.startswith("torch")])

    @NEEDS_OPS
    def test_operators_are_those_of_the_profiler(self):
        script = """
            import json, sys, torch
            torch.manual_seed(0)
            torch.set_num_threads(1)
            model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            x, y = torch.randn(8, 16), torch.randn(8, 4)
            def step():
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                opt.step()
                opt.zero_grad()
                torch.cat([x, x])
                torch.empty(2, 1, 3, 1, 5, 7).sum()
            step()
            if "lull" in sys.argv:
                import lull
                lull.start()
                step()
                lull.stop()
                # Its own profiler works beside ours.
                with torch.autograd.profiler.profile() as prof:
                    step()
                print(len(prof.function_events) > 10)
            else:
                with torch.autograd.profiler.profile(record_shapes=True) as prof:
                    step()
                print(json.dumps([(e.name(), e.shapes()) for e in prof.kineto_results.events()]))
        """
        file = self.write("ops.py", script)
        truth = json.loads(runner.run([PYTHON, file], check=True).stdout)
        done = runner.run([LULL, "profile", *QUIET, "-c", "lull", "--pytorch=ops", "-o", self.path("ops"), PYTHON, file, "lull"],
                          check=True)
        self.assertEqual(done.stdout, "True\n")
        rows = self.query(self.path("ops.lull"), "select l.name, l.shapes, l.types, o.sequence, o.forward_tid, l.kind "
                                                 "from op o join op_label l on l.id = o.label")
        self.assertEqual(collections.Counter(r["name"] for r in rows), collections.Counter(
            name for name, _ in truth if not name.startswith("profiler::")))
        # Of lists the profiler of this version shows no shapes, of what has no input an empty list.
        ours = collections.Counter((r["name"], r["shapes"] or "[]") for r in rows if "[[[" not in (r["shapes"] or ""))
        theirs = collections.Counter((n, json.dumps(s)) for n, s in truth)
        self.assertFalse({k: v for k, v in ours.items() if theirs[k] != v})
        self.assertIn(("aten::sum", "[[2, 1, 3, 1, 5, 7], []]"), ours)
        self.assertTrue([r for r in rows if r["name"] == "aten::cat" and r["shapes"].startswith("[[[8, 16], [8, 16]]")])
        self.assertEqual({r["types"].split(",")[0] for r in rows if r["name"] == "aten::addmm"}, {'["float"'})
        # Forward and backward have the same number, and the latter knows the thread of the former.
        forward = {r["sequence"] for r in rows if r["name"] == "aten::addmm"}
        backward = [r for r in rows if r["name"] == "AddmmBackward0"]
        self.assertEqual({r["sequence"] for r in backward}, forward)
        self.assertTrue(all(r["forward_tid"] for r in backward), backward)

    # As PyTorch's allocator for devices tells of each block; the one for the host says nothing unless it is profiled.
    ALLOCATOR = """
        import ctypes
        tell = ctypes.CDLL(None)["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"]
        tell.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint16]
        used, blocks = 0, {}
        def take(size):
            global used
            used += size
            at = 4096 * (len(blocks) + 1)
            blocks[at] = size
            tell(at, size, used, 1 << 20, 1)
            return at
        def give(at):
            global used
            used -= blocks[at]
            tell(at, -blocks[at], used, 1 << 20, 1)
    """

    @NEEDS_OPS
    def test_operators_and_allocations_have_lines(self):
        """A function of autograd that allocates in its backward pass, and a list that grows."""
        self.write("site-packages/pool.py", self.ALLOCATOR)
        script = textwrap.dedent("""
            import pool, torch
            before = torch.ones(3)                                  # outside of any step
            class Twice(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2
                @staticmethod
                def backward(ctx, g):
                    pool.give(pool.take(500))
                    return g * 2
            class Käse(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = torch.nn.Parameter(torch.ones(4))
                def forward(self, x):
                    x = Twice.apply(x * self.weight)                # twice
                    return (x * self.weight).relu()                 # in the model
            model, kept = Käse(), []
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                block = pool.take(1000)                             # for a while
                model(torch.zeros(4)).sum().backward()
                opt.step()
                kept.append(pool.take(64))                          # grows
                pool.give(block)
            for block in kept:                                      # as when a program ends
                pool.give(block)
        """)
        lines = {text.split("#")[1].strip(): number for number, text in enumerate(script.split("\n"), 1) if "  # " in text}
        report = self.record(script, "--pytorch=ops", beside=None, env={"PYTHONPATH": self.path("site-packages")})
        self.assertNotIn("torch_partly", self.issues(report))
        ops = self.query(report, "select l.name, f.function, f.line from op o join op_label l on l.id = o.label "
                                 "join stack s on s.id = o.stack join frame f on f.id = s.frame where o.depth = 0")
        found = {(r["name"], r["function"], r["line"]) for r in ops}
        self.assertIn(("aten::ones", "<module>", lines["outside of any step"]), found)
        for name in ("aten::mul", "aten::relu"):
            self.assertIn((name, "Käse.forward", lines["in the model"]), found)
        # Of what is inside another one, none, but inside an annotation; of the hooks, nothing.
        inner = ("select around.name, count(*) n, sum(o.stack > 0) with_stack from op o join op_label l on l.id = o.label "
                 "join op p on p.lane = o.lane and p.depth = 0 and o.start_ns between p.start_ns and p.start_ns + p.dur_ns "
                 "join op_label around on around.id = p.label where l.name = '%s' and o.depth = 1 group by 1")
        self.assertEqual({r["with_stack"] for r in self.query(report, inner % "aten::zero_")}, {0})
        sums = {r["name"]: (r["n"], r["with_stack"]) for r in self.query(report, inner % "aten::add_")}
        self.assertEqual(sums.pop("Optimizer.step#SGD.step"), (4, 4))
        # Newer versions of PyTorch add the two gradients of the weight in place.
        self.assertLessEqual(set(sums.values()), {(4, 0)}, sums)
        self.assertEqual(self.query(report, "select count(*) n from frame where file like '%_hooks.py'"), [{"n": 0}])
        rows = self.stats(report, "alloc_sum")
        self.assertEqual([(r["Allocated (bytes)"], r["Allocations"], r["Operator"], r["Line"].split(":")[-1]) for r in rows],
                         [(4000, 4, "", "%d <module>" % lines["for a while"]),
                          (2000, 4, "TwiceBackward", "%d Käse.forward" % lines["twice"]),
                          (256, 4, "", "%d <module>" % lines["grows"])])
        self.assertIn(":%d " % lines["grows"], self.stats(report, "alloc_leaks")[0]["Line"])
        stacks = [r for r in self.stats(report, "ops:stack=2") if r["Name"] == "aten::relu"]
        self.assertEqual([r["# of Calls"] for r in stacks], [4])
        self.assertIn("(%d): Käse.forward; " % lines["in the model"], stacks[0]["Stack"])

    def stats(self, report, name):
        done = runner.run([LULL, "stats", "-q", "--format", "json", "-r", name, report], check=True)
        return json.loads(done.stdout)

    @NEEDS_OPS
    def test_convolutions_have_their_flops(self):
        """As torch.profiler counts them: strides, paddings, dilations and groups of the calls."""
        script = """
            import json, sys, torch
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.Conv2d(8, 6, 3, dilation=2, groups=2),
                                      torch.nn.Flatten(), torch.nn.Linear(6 * 4 * 4, 5))
            x = torch.randn(2, 3, 16, 16)
            def run():
                net(x)
                torch.nn.functional.conv1d(torch.zeros(1, 2, 9), torch.zeros(4, 2, 3), stride=2)
                torch.conv_transpose2d(torch.zeros(1, 2, 4, 4), torch.zeros(2, 3, 2, 2), stride=2)
            if len(sys.argv) > 1:
                from torch.profiler import ProfilerActivity, profile
                with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
                    run()
                print(json.dumps({e.key: e.flops for e in prof.key_averages() if e.flops}))
            else:
                run()
        """
        file = self.write("flops.py", script)
        theirs = json.loads(runner.run([PYTHON, file, "profiler"], check=True).stdout)
        report = self.record(script, "--pytorch=ops", beside=None)
        ours = {r["Name"]: r["FLOPs"] for r in self.stats(report, "ops")}
        self.assertEqual({k: ours[k] for k in ("aten::conv2d", "aten::addmm")},
                         {k: theirs[k] for k in ("aten::conv2d", "aten::addmm")})
        # The profiler knows two dimensions only: 4 places of 24 weights, 16 of 24.
        self.assertEqual((ours["aten::conv1d"], ours["aten::conv_transpose2d"]), (2 * 4 * 24, 2 * 16 * 24))

    def test_isolated_python_is_told(self):
        for option in ("-I", "-E", "-S"):
            report = self.record("import sys\nsys.path.append('/usr/lib/python3/dist-packages')\nimport torch\nprint(1)",
                                 python=[option], beside="1\n")
            self.assertIn("-I, -E or -S", self.issues(report)["torch_not_hooked"])

    def test_a_replaced_meta_path_is_told(self):
        report = self.record("import sys\nfrom importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder\n"
                             "sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]\nimport torch\nprint(1)", beside="1\n")
        self.assertIn("sys.meta_path", self.issues(report)["torch_not_hooked"])


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
