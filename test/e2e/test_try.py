#!/usr/bin/env python3
"""lull try: on a stand-in for PyTorch with a clock of its own, on the simulated device, and on programs that resist.

Usage: test_try.py BUILD [NAME...]
"""
import atexit
import functools
import glob
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import textwrap
import unittest

import runner
import stand_in_timed

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The one that has PyTorch, where there is one: programs are started by it as by users.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# A step takes 8 (batch) + 6 (forward) + 10 (optimizer) ms.
LOOP = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.Tensor(x + 0.5, "cuda")
model = Model()
model.weights = [torch.Tensor(1.0, "cuda")]
opt = torch.optim.Adam(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(range(1000))
for i, batch in enumerate(loader):
    loss = model(batch)
    loss.backward()
    opt.step()
"""


@functools.cache
def stand_in():
    """The folder with the stand-in, compiled once for all cases."""
    folder = tempfile.mkdtemp(prefix="lull-try-torch-")
    atexit.register(shutil.rmtree, folder)
    stand_in_timed.write(folder)
    runner.run([PYTHON, "-m", "compileall", "-q", folder], check=True)
    return folder


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lull-try-test-")
        self.addCleanup(self.folder.cleanup)
        self.scratch = os.path.join(self.folder.name, "scratch")
        os.mkdir(self.scratch)
        os.mkdir(self.path("packages"))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(text))
        return self.path(name)

    def env(self):
        return {**os.environ, "PYTHONPATH": f"{self.path('packages')}:{stand_in()}", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": self.scratch}

    def run_try(self, script, *options, status=0):
        """lull try on the script; its output and errors. Nothing is left in the scratch folder."""
        file = self.write("train.py", script)
        done = runner.run([LULL, "try", *options, PYTHON, file], env=self.env(), cwd=self.folder.name)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(os.listdir(self.scratch), [])
        return done

    def try_it(self, script, *options, status=0):
        return json.loads(self.run_try(script, "--format=json", "-q", *options, status=status).stdout)

    def one(self, script, *options):
        """The only candidate."""
        found = self.try_it(script, *options)
        self.assertEqual(len(found["tried"]), 1, found)
        return found["tried"][0]


class Direct(Case):
    def direct(self, script, *remedies, trouble=()):
        """What one run writes about itself, as lull try would start it: lines by their letter."""
        file = self.write("train.py", script)
        folder = tempfile.mkdtemp(dir=self.scratch)
        paths = [os.path.join(ROOT, f"python/lull/remedies/{name.replace('-', '_')}.py") for name in remedies if name]
        env = {**self.env(), "LULL_TRY": folder, "LULL_TRY_STEPS": "5,8,2", "LULL_TRY_REMEDIES": ":".join(paths)}
        env["PYTHONPATH"] = f"{ROOT}/python:{env['PYTHONPATH']}"
        done = runner.run([PYTHON, file], env=env, cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for path in glob.glob(os.path.join(folder, "*.log")):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    found.setdefault(line[0], []).append(line[2:].rstrip("\n"))
        self.assertEqual(found.get("t", []), list(trouble))
        return found


class Remedies(Direct):
    """Each changes the step by what the clock says, and tells where."""

    def gains(self, remedy, script, before, after, text):
        plain, changed = self.direct(script, ""), self.direct(script, remedy)
        for found, step_ms in ((plain, before), (changed, after)):
            self.assertEqual(found["b"], [f"2 {int(2e6 * step_ms)}"] * 4)
        self.assertEqual(plain["l"], changed["l"])
        self.assertEqual(changed["d"], [remedy])
        place = re.fullmatch(r"\S+ .*train.py:(\d+) (.*)", changed["w"][0])
        self.assertIn(text, script.splitlines()[int(place[1]) - 1] + place[2])

    def test_loader_workers(self):
        self.gains("loader-workers", LOOP, 24, 17, "DataLoader(range(1000))add num_workers=")

    def test_loader_workers_pin_batches(self):
        # 5 ms for a copy become 1, but where the program has its own way.
        script = LOOP.replace("range(1000)", "[torch.Tensor(1.0, n=10000)] * 1000").replace("model(batch)", "model(batch.to('cuda').value)")
        self.gains("loader-workers", script, 29, 18, "num_workers=")
        self.gains("loader-workers", script.replace("* 1000)", "* 1000, pin_memory=False)"), 29, 22, "num_workers=")

    def test_fused_optimizer(self):
        self.gains("fused-optimizer", LOOP, 24, 16, "lr=0.1)add fused=True")

    def test_foreach_optimizer(self):
        self.gains("foreach-optimizer", LOOP.replace("lr=0.1", "lr=0.1, foreach=False"), 24, 18, "remove foreach=False")

    def test_compile(self):
        self.gains("compile", LOOP, 24, 19, "model(batch)")

    def test_compile_takes_all_models(self):
        # Two take 12 ms, compiled 2; of nine modules that the program calls by itself, one is compiled.
        script = LOOP.replace("opt =", "other = Model()\nother.weights = model.weights\nopt =").replace("model(batch)", "model(batch).value\n    loss = other(loss)")
        self.gains("compile", script, 30, 20, "model(batch).value")
        self.assertEqual(len(self.direct(script, "compile")["w"]), 2)
        script = LOOP.replace("opt =", "layers = [Model() for i in range(8)]\nfor layer in layers:\n    layer.weights = model.weights\nopt =")
        self.gains("compile", script.replace("    loss.b", "    for layer in layers:\n        layer(batch)\n    loss.b"), 72, 67, "model(batch)")

    def test_compile_graphs(self):
        self.gains("compile-graphs", LOOP, 24, 18.5, "reduce-overhead")

    def test_pinned_copies(self):
        script = LOOP.replace("    loss = model", "    x = torch.Tensor(1.0, n=5000).to('cuda')\n    loss = model")
        self.gains("pinned-copies", script, 29, 25, ".pin_memory()")

    def test_keep_cache(self):
        self.gains("keep-cache", LOOP + "    torch.cuda.empty_cache()\n", 27, 24, "empty_cache()")

    def test_no_gc(self):
        self.gains("no-gc", "import gc\n" + LOOP + "    gc.collect()\n", 28, 24, "gc.collect()")

    def test_grads_to_none(self):
        self.gains("grads-to-none", LOOP + "    opt.zero_grad(set_to_none=False)\n", 25, 24, "set_to_none=False")

    def test_async_save_still_writes_the_whole_file(self):
        # Saved beside its place, and renamed, as careful programs do; looked at, loaded and removed.
        script = "import os\n" + LOOP + """
    torch.save({'step': i}, 'part')
    os.replace('part', 'checkpoint')
    if i % 3 == 0:
        assert os.path.getsize('checkpoint') > 0
    if i % 3 == 1:
        assert torch.load('checkpoint')
    if i % 3 == 2:
        os.remove('checkpoint')
        assert not os.path.exists('checkpoint')
"""
        # The thread has the same clock, so no gain can be seen here.
        plain, changed = self.direct(script, ""), self.direct(script, "async-save")
        self.assertEqual((plain["l"], changed["d"], changed["k"]), (changed["l"], ["async-save"], [self.path("part"), self.path("checkpoint")]))

    def test_all_of_them_at_once(self):
        words = runner.run([LULL, "try", "--list"], check=True).stdout.splitlines()
        names = [line.split()[0] for line in words]
        names = [n for n in names if "def apply" in open(os.path.join(ROOT, f"python/lull/remedies/{n.replace('-', '_')}.py")).read()]
        self.assertGreater(len(names), 15)
        found = self.direct(LOOP, *names, trouble=["FileNotFoundError: no such device"])
        # loader-workers pins batches, too, so nothing is left for loader-pinned.
        self.assertEqual(set(found["d"]), {"loader-workers", "fused-optimizer", "compile", "no-gc", "tf32", "bf16", "cudnn-benchmark"})
        self.assertEqual(found["b"], ["2 8000000"] * 4)

    def test_near_cpus(self):
        sys.path.insert(0, os.path.join(ROOT, "python/lull/remedies"))
        import near_cpus
        self.assertEqual(near_cpus.cpus_of("0-2,8\n"), {0, 1, 2, 8})
        self.assertEqual(near_cpus.cpus_of("\n"), set())

    def test_the_best_ones_together(self):
        found = self.try_it(LOOP, "--only", "fused-optimizer,loader-workers,compile-graphs,compile,no-gc")
        best = found["tried"][found["best"]]
        self.assertEqual(sorted(best["remedies"]), ["compile-graphs", "fused-optimizer", "loader-workers"])
        self.assertAlmostEqual(best["gain"]["ratio"], 24 / 3.5, places=4)
        self.assertEqual([e["verdict"] for e in found["tried"][:5]], ["gain"] * 4 + ["none"])

    def test_nothing_gains(self):
        found = self.try_it(LOOP, "--only", "no-gc,keep-cache,cudnn-benchmark", "--env", "ANY=1")
        self.assertIsNone(found["best"])
        self.assertEqual([e["verdict"] for e in found["tried"]], ["none", "nothing to change", "none", "none"])
        self.assertIn("Nothing gains", self.run_try(LOOP, "-q", "--only", "no-gc").stdout)

    def test_a_switch_that_the_program_sets_itself(self):
        script = LOOP + """
    assert i < 2 or torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
"""
        self.assertEqual(self.direct(script, "tf32")["d"], ["tf32"])


class Own(Case):
    def test_a_variable(self):
        script = "import os\n" + LOOP + "    torch._clock.spend(0 if os.environ.get('QUICK') == 'a,b' else 24)\n"
        entry = self.one(script, "--env", "QUICK=a,b")
        self.assertEqual((entry["remedies"], entry["verdict"]), (["QUICK=a,b"], "gain"))
        self.assertAlmostEqual(entry["gain"]["ratio"], 2, places=4)

    def test_a_remedy_of_the_user(self):
        self.write("packages/slow.py", "MS = 24\n")
        mine = self.write("mine.py", '''
            """mine: less of it

            exact: yes
            write: MS = 0 in slow.py
            """
            def apply(trial):
                def patch(module):
                    module.MS = 0
                trial.when_loaded("slow", patch)
            ''')
        done = self.run_try("import slow\n" + LOOP + "    torch._clock.spend(slow.MS)\n", "-q", "--remedy", mine)
        self.assertIn("mine                    24.00 ms  2.00 x (2.00 to 2.00), same losses to the bit", done.stdout)
        self.assertIn("MS = 0 in slow.py", done.stdout)

    def test_a_remedy_that_fails_is_told(self):
        mine = self.write("mine.py", '"""mine: x\n"""\ndef apply(trial):\n    raise KeyError("no")\n')
        entry = self.one(LOOP, "--remedy", mine)
        self.assertEqual(entry["verdict"], "nothing to change")
        self.assertIn("KeyError: 'no'", entry["why"])


class Results(Case):
    def test_a_remedy_that_changes_results_is_out(self):
        script = "import os\n" + LOOP.replace("x + 0.5", "x + float(os.environ.get('SHIFT', '0.5'))") + \
            "    torch._clock.spend(0 if 'SHIFT' in os.environ else 24)\n"
        found = self.try_it(script, "--env", "SHIFT=0.501", "--env", "SHIFT=0.7")
        self.assertEqual([e["verdict"] for e in found["tried"]], ["gain", "differs"])
        self.assertEqual(found["best"], 0)
        self.assertAlmostEqual(found["tried"][0]["difference"], 0.001 / 0.501, places=6)

    def test_an_exact_remedy_must_be_exact(self):
        mine = self.write("mine.py", '"""mine: x\nexact: yes\nenv: SHIFT=0.501\n"""\n')
        script = "import os\n" + LOOP.replace("x + 0.5", "x + float(os.environ.get('SHIFT', '0.5'))") + \
            "    torch._clock.spend(0 if 'SHIFT' in os.environ else 24)\n"
        self.assertEqual(self.one(script, "--remedy", mine)["verdict"], "differs")

    def test_runs_that_are_alike_by_luck(self):
        # The program as it is computes the same twice, and then what the other one does.
        count = textwrap.dedent("""
            import os
            n, is_quick = len(os.listdir("runs")), "QUICK" in os.environ
            if not is_quick:
                os.mkdir(f"runs/{n}")
            shift = 0.5 if n < 2 and not is_quick else 0.6
            """)
        script = LOOP.replace("class Model", count + "class Model").replace("x + 0.5", "x + shift") + "    torch._clock.spend(24 * (not is_quick))\n"
        os.mkdir(self.path("runs"))
        mine = self.write("mine.py", '"""mine: x\nexact: yes\nenv: QUICK=1\n"""\n')
        self.assertEqual(self.one(script, "--remedy", mine)["verdict"], "gain")

    def test_random_numbers_are_the_same_without_a_seed(self):
        script = "import random\n" + LOOP.replace("x + 0.5", "x + random.random()")
        found = self.try_it(script, "--only", "fused-optimizer")
        self.assertEqual((found["loss_drift"], found["tried"][0]["difference"]), (0, 0))

    def test_a_program_whose_losses_differ_by_themselves(self):
        script = "import os\n" + LOOP.replace("x + 0.5", "x + 1 + os.urandom(1)[0] / 2550")
        found = self.try_it(script, "--only", "grads-to-none,fused-optimizer")
        self.assertGreater(found["loss_drift"], 0)

    def test_outputs_are_compared_where_nothing_is_trained(self):
        script = LOOP.replace("    loss.backward()\n    opt.step()\n", "")
        done = self.run_try(script, "-q", "--only", "loader-workers")
        self.assertIn("same outputs to the bit", done.stdout)

    def test_files_of_the_program_are_not_touched(self):
        self.write("checkpoint.pt", "precious")
        script = "import os\n" + LOOP + """
    torch.save({"step": i}, "checkpoint.tmp")
    assert os.path.exists("checkpoint.tmp")
    os.replace("checkpoint.tmp", "checkpoint.pt")
    assert torch.load("checkpoint.pt") == "['step']"
"""
        done = self.run_try(script, "-q", "--only", "fused-optimizer")
        with open(self.path("checkpoint.pt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "precious")
        self.assertFalse(os.path.exists(self.path("checkpoint.tmp")))
        self.assertIn("went to a scratch folder: checkpoint.tmp", done.stdout)
        self.assertIn("33.00 ms a step", done.stdout)


class Saved(Direct):
    """What programs do with a file that they have saved works as without lull try, also while another thread writes it."""

    HEAD = """
import glob, io, os, pathlib, shutil, tempfile, threading
from os import replace
import torch
class Word(str):
    # The file is not complete at once.
    def __repr__(self):
        threading.Event().wait(0.01)
        return "word"
def save(path):
    torch.save({Word("a"): 1, Word("b"): 2}, path)
def text(path):
    with open(path) as f:
        return f.read()
WHOLE = "[word, word]"
"""
    WAYS = {
        "open": "save(P); assert text(P) == WHOLE; assert io.open(P, 'rb').read() == WHOLE.encode()",
        "write again": "save(P); open(P, 'w').close(); assert text(P) == ''; open(P, 'a').write('x'); assert text(P) == 'x'",
        "sync": "save(P)\nfd = os.open(P, os.O_RDONLY)\nos.fsync(fd)\nassert os.read(fd, 99) == WHOLE.encode()\nos.close(fd)",
        "replace": "save(P + '.part'); replace(P + '.part', P); assert text(P) == WHOLE; assert not os.path.exists(P + '.part')",
        "rename by names": "save(P + 'x'); os.rename(src=P + 'x', dst=P); assert text(P) == WHOLE",
        "a name that is free again": "save(P); os.rename(P, P + '1'); save(P); os.rename(P, P + '2'); assert text(P + '1') == text(P + '2')",
        "look": "save(P); assert os.stat(P).st_size == os.path.getsize(P) == os.lstat(P).st_size == len(WHOLE)\n"
                "assert os.path.isfile(P) and not os.path.islink(P) and os.access(P, os.R_OK) and os.path.samefile(P, P)",
        "change": "save(P); os.chmod(P, 0o600); os.utime(P, (1, 2)); os.truncate(P, 3); assert os.stat(P).st_mtime != 2; assert text(P) == '[wo'",
        "list": "save(P)\nassert 'c.pt' in os.listdir(F) and P in [e.path for e in os.scandir(F)] and glob.glob(F + '/*.pt') == [P]\n"
                "assert [f for _, _, f in os.walk(F)] == [['c.pt']]\nassert [e.stat().st_size for e in os.scandir(F) if e.is_file()] == [12]",
        "remove": "save(P); os.remove(P); assert not os.path.exists(P) and os.listdir(F) == []\n"
                  "save(P); assert text(P) == WHOLE; os.unlink(P); assert not os.access(P, os.R_OK)\n"
                  "try:\n    open(P)\n    assert False\nexcept FileNotFoundError as e:\n    assert e.filename == P",
        "copy": "save(P); shutil.copy(P, P + '1'); shutil.copy2(P, P + '2'); assert text(P + '1') == text(P + '2') == text(P) == WHOLE",
        "move": "save(P); shutil.move(P, P + '1'); assert text(P + '1') == WHOLE; assert not os.path.exists(P)",
        "pathlib": "q = pathlib.Path(P); save(q); assert q.exists() and q.stat().st_size == 12 and q.read_text() == WHOLE\n"
                   "assert list(q.parent.iterdir()) == [q] == list(q.parent.glob('*.pt')) == list(q.parent.rglob('c.*'))\n"
                   "r = q.rename(q.with_suffix('.old')); assert r.read_bytes() == WHOLE.encode() and not q.exists()\n"
                   "save(q); q.replace(r); assert r.resolve().is_file(); r.unlink(); assert not r.exists(); r.unlink(missing_ok=True)",
        "by a class": "class Files:\n    see, give, drop, all, to = os.stat, open, os.remove, os.listdir, os.rename\nfiles = Files()\nsave(P)\n"
                      "assert files.see(P).st_size == 12 and files.give(P).read() == WHOLE and files.all(F) == ['c.pt']\n"
                      "files.to(P, P + '1'); files.drop(P + '1'); assert files.all(F) == []",
        "load": "save(P); assert torch.load(P) == WHOLE; assert torch.load(open(P).name) == WHOLE",
        "link": "save(P); os.link(P, P + '1'); os.symlink('c.pt', P + '2'); os.remove(P + '1'); assert text(P + '2') == WHOLE\n"
                "assert os.path.islink(P + '2'); os.unlink(P + '2'); assert text(P) == WHOLE",
        "a folder that gets its name last": "os.mkdir(F + '/part'); save(F + '/part/c.pt'); os.rename(F + '/part', F + '/step'); "
                                            "assert text(F + '/step/c.pt') == WHOLE; assert os.listdir(F) == ['step']",
        "a folder that is removed": "os.mkdir(F + '/s'); save(F + '/s/c.pt'); shutil.rmtree(F + '/s'); assert not os.path.exists(F + '/s/c.pt')",
        "a folder that is copied": "os.mkdir(F + '/s'); save(F + '/s/c.pt'); shutil.copytree(F + '/s', F + '/t'); assert text(F + '/t/c.pt') == WHOLE",
        "another way to the folder": "os.symlink(F, F + '.way'); save(F + '.way/c.pt'); assert text(P) == WHOLE; os.remove(F + '.way')",
        "a folder that is missing": "try:\n    save(F + '/none/c.pt')\n    assert False\nexcept FileNotFoundError as e:\n    assert e.filename == F + '/none/c.pt'",
        "a temporary file": "f = tempfile.NamedTemporaryFile(dir=F); save(f.name); assert os.path.getsize(f.name) == 12; assert f.read() == WHOLE.encode()",
        "to its place from a temporary file": "fd, name = tempfile.mkstemp(dir=F)\nos.close(fd)\nsave(name)\nos.replace(name, P)\n"
                                              "assert text(P) == WHOLE; assert os.listdir(F) == ['c.pt']",
        "old ones are removed": "for i in range(6):\n    save(F + f'/{i}.part')\n    os.replace(F + f'/{i}.part', F + f'/{i}.pt')\n"
                                "    [os.remove(old) for old in sorted(glob.glob(F + '/*.pt'))[:-2]]\nassert sorted(os.listdir(F)) == ['4.pt', '5.pt']",
    }

    def ways(self, folder, *remedies):
        for what, lines in self.WAYS.items():
            with self.subTest(what):
                script = self.HEAD + f"{folder}\nP = F + '/c.pt'\n{lines}\n"
                yield what, script, self.direct(script, *remedies)

    def test_as_without_lull(self):
        for what, script, _ in self.ways("F = tempfile.mkdtemp()"):
            done = runner.run([PYTHON, self.path("train.py")], env=self.env(), cwd=self.folder.name)
            self.assertEqual(done.returncode, 0, what + done.stderr)

    def check(self, *remedies):
        for what, _, found in self.ways("F = os.path.abspath('mine')\nshutil.rmtree(F, ignore_errors=True)\nos.mkdir(F)", *remedies):
            left = [name for _, _, names in os.walk(self.path("mine")) for name in names]
            self.assertEqual(left, [], "nothing is written where the program thinks it is")
            if "is missing" not in what and what != "a temporary file":
                self.assertTrue(found.get("k"), "the answer says so")

    def test_in_a_folder_of_the_user(self):
        self.check()

    def test_while_another_thread_writes(self):
        self.check("async-save")

    def test_a_temporary_folder_stays(self):
        for remedies in ((), ("async-save",)):
            for _, _, found in self.ways("F = tempfile.mkdtemp()", *remedies):
                self.assertNotIn("k", found)

    def test_the_files_of_the_user_stay(self):
        os.mkdir(self.path("mine"))
        names = ("c.pt", "best.pt", "moved.pt", "linked.pt")
        for name in names:
            self.write("mine/" + name, "precious")
        self.direct(self.HEAD + """
F = 'mine'
save(F + '/c.pt')
shutil.copy(F + '/c.pt', F + '/best.pt')
assert text(F + '/best.pt') == WHOLE
os.remove(F + '/best.pt')
assert not os.path.exists(F + '/best.pt') and 'best.pt' not in os.listdir(F)
os.rename(F + '/c.pt', F + '/moved.pt')
assert text(F + '/moved.pt') == WHOLE and not os.path.exists(F + '/c.pt')
try:
    os.link(F + '/moved.pt', F + '/linked.pt')
    assert False
except FileExistsError:
    pass
open(F + '/c.pt', 'w').close()
""", "async-save")
        for name in names:
            with open(self.path("mine/" + name), encoding="utf-8") as f:
                self.assertEqual(f.read(), "precious", name)

    def test_checkpoints_of_a_careful_program(self):
        # As load_forecaster.py of the corpus does it.
        script = "import atexit, os, shutil, tempfile\n" + LOOP.replace("for i, batch", "START\nfor i, batch") + """
    path = os.path.join(folder, f'{i}.pt')
    torch.save({'step': i}, path + '.part')
    fd = os.open(path + '.part', os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    os.replace(path + '.part', path)
"""
        for start in ("folder = tempfile.mkdtemp()\natexit.register(shutil.rmtree, folder)", "folder = 'out'\nos.makedirs(folder, exist_ok=True)"):
            found = self.try_it(script.replace("START", start), "--only", "async-save,fused-optimizer")
            self.assertIn(found["tried"][0]["verdict"], ("none", "unsure", "gain"), found)
            self.assertEqual(found["tried"][1]["verdict"], "gain")
        self.assertEqual(os.listdir(self.path("out")), [])

    def test_temporary_files_of_one_run_are_not_those_of_another(self):
        script = "import atexit, os, shutil, tempfile\nfolder = tempfile.mkdtemp()\natexit.register(shutil.rmtree, folder)\n" + LOOP + \
            "    torch.save({'step': i}, folder + '/c.pt')\n"
        found = self.try_it(script, "--only", "fused-optimizer")
        self.assertEqual((found["forked_runs"], found["not_forked"], found["tried"][0]["verdict"]), (0, "it has made temporary files", "gain"))


class Hostile(Case):
    def why(self, script, *options):
        entry = self.one(script, *options)
        return entry["verdict"], entry["why"]

    def test_a_data_set_that_cannot_be_forked(self):
        script = LOOP.replace("loader = torch", "class Data(list): cannot_fork = True\nloader = torch").replace(
            "range(1000)", "Data(range(1000))")
        verdict, why = self.why(script, "--only", "loader-workers")
        self.assertEqual(verdict, "failed")
        self.assertIn("RuntimeError: Cannot re-initialize CUDA", why)

    def test_a_custom_optimizer(self):
        script = LOOP.replace("opt = torch.optim.Adam(", "class Mine(torch.optim.Adam): pass\nopt = Mine(")
        self.assertEqual(self.why(script, "--only", "fused-optimizer")[0], "nothing to change")

    def test_an_exception_of_many_lines(self):
        # torch.compile ends its own with hints; what failed stands further up.
        script = LOOP.replace("import torch\n", "import os, torch\nif 'BAD' in os.environ:\n    raise RuntimeError('backend raised:\\n"
                              "CompileError: no Python.h\\n\\nYou can suppress this by setting:\\n    x.suppress_errors = True')\n", 1)
        verdict, why = self.why(script, "--env", "BAD=1")
        self.assertEqual((verdict, why), ("failed", "the program fails: RuntimeError: backend raised: CompileError: no Python.h"))

    def test_a_model_that_cannot_be_compiled(self):
        # The remedy fails, and the program goes on as it is.
        self.assertEqual(self.why(LOOP.replace("model.weights", "model.breaks = True\nmodel.weights"), "--only", "compile"),
                         ("nothing to change", "nothing in the program to change: RuntimeError: CUDA out of memory: planned"))

    def test_out_of_memory(self):
        script = "import os\n" + LOOP + "    if 'BIG' in os.environ: raise RuntimeError('CUDA out of memory. Tried 1 GiB')\n"
        self.assertEqual(self.why(script, "--env", "BIG=1"),
                         ("failed", "the program runs out of memory: RuntimeError: CUDA out of memory. Tried 1 GiB"))

    def test_a_crash(self):
        script = "import os\n" + LOOP + "    if 'BAD' in os.environ: os.kill(os.getpid(), 11)\n"
        self.assertEqual(self.why(script, "--env", "BAD=1"), ("failed", "the program fails with status 139"))

    def test_a_hang(self):
        script = "import os, signal\n" + LOOP + "    if 'HANG' in os.environ: signal.pause()\n"
        # On a busy machine the program as it is may also be silent for so long: then it gets more time.
        for seconds in (1, 4, 16, 64):
            file = self.write("train.py", script)
            done = runner.run([LULL, "try", "-q", "--format=json", "--env", "HANG=1", f"--timeout={seconds}", PYTHON, file], env=self.env(),
                              cwd=self.folder.name)
            if "time limit of --timeout" not in done.stderr and "made no progress" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([entry["verdict"] for entry in json.loads(done.stdout)["tried"]], ["hung"])

    def test_an_early_exit_without_handlers(self):
        # 20 steps, of which the first 5 or so are warm-up.
        script = "import os\n" + LOOP + "    if i == 20: os._exit(0)\n"
        found = self.try_it(script, "--only", "fused-optimizer")
        self.assertEqual(found["tried"][0]["verdict"], "gain")
        self.assertLess(found["steps"], 40)

    def test_a_program_that_goes_on_after_sys_exit(self):
        script = LOOP.replace("    opt.step()\n", """
    try:
        opt.step()
    except BaseException:
        pass
""")
        self.assertEqual(self.one(script, "--only", "fused-optimizer")["verdict"], "gain")

    def test_processes_that_the_program_leaves_end_with_it(self):
        # A server: of another session, with a parent that has ended.
        script = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('pid%d' % os.getpid(), 'w').close()
        signal.pause()
    os._exit(0)
os.wait()
""" + LOOP
        self.assertEqual(self.one(script, "--only", "fused-optimizer")["verdict"], "gain")
        pids = [int(p.rsplit("pid", 1)[1]) for p in glob.glob(self.path("pid*"))]
        self.assertTrue(pids)
        for pid in pids:
            runner.until(lambda: runner.has_ended(pid), f"process {pid} ends")

    def test_ranks_end_after_the_same_number_of_steps(self):
        # Each rank waits for the other at each step; the second never has two steps alike.
        script = """
            import atexit, os
            import lull, torch
            rank = int(os.environ["NUMBER"])
            if "WORLD_SIZE" not in os.environ:
                import torch.distributed
                torch.distributed.is_initialized, torch.distributed.get_world_size = lambda: True, lambda: 2
                torch.distributed.get_rank = lambda: rank
            # Not if it is killed because it waits for the other.
            atexit.register(lambda: open(f"ended{rank}-{os.getpid()}", "w").close())
            for i in range(1000):
                lull.step()
                torch._clock.spend(10 * (1 + i % 3) if rank else 10)
                os.write(4 if rank else 6, b"x")
                os.read(5 if rank else 3, 1)
            """
        self.write("rank.py", script)
        start = """
            import os, subprocess, sys
            (a, b), (c, d) = os.pipe(), os.pipe()
            for old, new in ((a, 103), (b, 104), (c, 105), (d, 106)):
                os.dup2(old, new)
            def rank(n):
                def place():
                    for fd in (3, 4, 5, 6):
                        os.dup2(100 + fd, fd)
                return subprocess.Popen([sys.executable, "rank.py"], pass_fds=(3, 4, 5, 6), preexec_fn=place,
                                        env={**os.environ, "NUMBER": str(n), **LAUNCHER})
            sys.exit(max(p.wait() for p in [rank(0), rank(1)]))
            """
        found = self.try_it(textwrap.dedent(start).replace("LAUNCHER", '{"RANK": str(n), "WORLD_SIZE": "2"}'), "--env", "ANY=1")
        self.assertEqual(found["baseline"]["step_ns"], 10e6)
        self.assertEqual(found["tried"][0]["verdict"], "none")
        self.assertEqual([len(glob.glob(self.path(f"ended{rank}-*"))) for rank in (0, 1)], [4, 4])
        # A program that starts its ranks without a launcher.
        found = self.try_it(textwrap.dedent(start).replace("LAUNCHER", "{}"), "--env", "ANY=1")
        self.assertEqual(found["baseline"]["step_ns"], 10e6)
        self.assertEqual([len(glob.glob(self.path(f"ended{rank}-*"))) for rank in (0, 1)], [8, 8])

    def test_steps_that_take_seconds(self):
        script = LOOP + "    torch._clock.spend(2976)\n"
        found = self.try_it(script, "--only", "fused-optimizer,compile")
        # 3 s each: 8 s are enough for 3 of them.
        self.assertEqual((found["steps"], found["baseline"]["step_ns"]), (3, 3e9))
        self.assertAlmostEqual(found["tried"][0]["gain"]["ratio"], 3000 / 2992, places=6)
        self.assertEqual(self.try_it(script, "--only", "no-gc", "--steps=12")["steps"], 12)
        # 0.6 s each: 4 blocks of 4 steps, though others might have had more.
        self.assertEqual(self.try_it(script.replace("2976", "576"), "--only", "no-gc")["steps"], 16)

    def test_steps_that_the_program_marks_count(self):
        script = "import lull\n" + LOOP.replace("    loss = model", "    lull.step() if i % 2 else None\n    loss = model")
        found = self.try_it(script, "--only", "fused-optimizer")
        self.assertAlmostEqual(found["baseline"]["step_ns"], 48e6, delta=1)

    def test_interrupted_it_shows_what_was_measured(self):
        file = self.write("train.py", "import os, signal\n" + LOOP + "    if 'HANG' in os.environ: signal.pause()\n")
        p = runner.start([LULL, "try", "--env", "HANG=1", PYTHON, file], env=self.env(), cwd=self.folder.name,
                         stdout=runner.subprocess.PIPE, stderr=runner.subprocess.PIPE, text=True)
        while "run 2: HANG=1" not in p.stderr.readline():
            self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        out, _ = runner.finish(p)
        self.assertEqual(p.returncode, 130)
        self.assertIn("24.00 ms a step   (1 run of 40 steps)", out)
        self.assertIn("Stopped; this is what was measured until then.", out)
        self.assertEqual(os.listdir(self.scratch), [])


class Written(Case):
    """Results of programs that have no losses: numbers that they write."""
    GUEST = os.path.join(BUILD, "e2e/change_guest")

    def entry(self, script, *options):
        self.write("run.sh", script)
        done = runner.run([LULL, "try", "-q", "--format=json", "--whole", *options, "sh", "run.sh"], env=self.env(), cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["tried"][0]
        # However long its first run took by chance: it was short.
        self.assertGreater(found["runs"], 1)
        return found

    def test_numbers_that_stay_the_same_are_compared(self):
        # The second number is another one each time, and does not count.
        found = self.entry("echo result ${N:-5}, time $(date +%N) ns, x7", "--env", "N=5")
        self.assertEqual((found["difference"], found["verdict"] in ("none", "slower", "unsure", "gain")), (0, True))
        found = self.entry("echo result ${N:-5}, time $(date +%N) ns, x7", "--env", "N=6")
        self.assertEqual(found["verdict"], "differs")
        found = self.entry("echo result ${N:-5} of ten", "--env", "N=5.01")
        self.assertAlmostEqual(found["difference"], 0.01 / 5.01)
        self.assertNotEqual(found["verdict"], "differs")

    def test_output_without_numbers_says_nothing(self):
        self.assertIsNone(self.entry("echo x7 seven", "--env", "N=5")["difference"])

    def test_steps_of_a_program_in_c(self):
        env = {**self.env(), "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
        done = runner.run([LULL, "try", "-q", "--steps=8", "--only", "staged-copies", self.GUEST, "dlsym", "100000"], env=env)
        self.assertRegex(done.stdout + done.stderr, "(?s)as it is.*a step.*staged-copies ")
        if "Best" in done.stdout:
            self.assertIn("same outputs to the bit", " ".join(done.stdout.split()))

    def test_whole_runs_are_told_as_such(self):
        self.write("run.sh", "sleep 0.1")
        done = runner.run([LULL, "try", "-q", "--whole", "--env", "N=1", "sh", "run.sh"], env=self.env(), cwd=self.folder.name)
        self.assertRegex(done.stdout, r"as it is +\d+\.\d+ m?s a run   \(\d runs, \+-")


class Stepless(Case):
    """Programs of PyTorch whose loops call nothing that the hooks know: whole runs are compared, less their start."""

    # As denoise_sampler.py of the corpus: a model that is called many times.
    CALLS = LOOP.replace("    loss.backward()\n    opt.step()\n", "").replace("for i, batch in enumerate(loader):", "for batch in range(400):")

    # As block_norms.py of the corpus: operators alone.
    LOOP = """
import os, sys
import torch
for i in range(60):
    torch._clock.spend(10 if 'QUICK' in os.environ else 20)
print('mean', os.environ.get('MEAN', 0.5))
"""

    def test_whole_runs_are_compared(self):
        found = self.try_it(self.LOOP, "--env", "QUICK=1", "--env", "MEAN=0.7", "--only", "cudnn-benchmark,fused-optimizer")
        self.assertEqual((found["steps"], found["baseline"]["step_ns"]), (0, 1200e6))
        self.assertEqual({e["remedies"][0]: e["verdict"] for e in found["tried"]},
                         {"QUICK=1": "gain", "MEAN=0.7": "differs", "cudnn-benchmark": "none", "fused-optimizer": "nothing to change"})
        best = found["tried"][found["best"]]
        self.assertEqual((best["remedies"], best["gain"]["ratio"], best["difference"]), (["QUICK=1"], 2, 0))
        self.assertGreater(found["forked_runs"], 0)

    def test_the_start_does_not_count(self):
        # Also where runs are not forked: the clock of the stand-in knows nothing of what came before it.
        for before in ("", "import socket\ns = socket.socket()\n"):
            found = self.try_it(before + self.LOOP, "--env", "QUICK=1")
            self.assertEqual((found["baseline"]["step_ns"], found["tried"][0]["gain"]["ratio"]), (1200e6, 2))
            self.assertEqual(found["forked_runs"] == 0, bool(before))

    def test_the_answer_says_so(self):
        done = self.run_try(self.LOOP, "-q", "--env", "QUICK=1")
        self.assertIn("as it is                1.20 s a run   (", done.stdout)
        self.assertIn("No steps were found, so whole runs are compared, from where PyTorch is loaded.", " ".join(done.stdout.split()))
        self.assertIn("same outputs to the bit", done.stdout)

    def test_a_model_that_is_called_without_an_end_of_a_step(self):
        script = LOOP.replace("    loss.backward()\n    opt.step()\n", "").replace("for i, batch in enumerate(loader):", "for batch in range(9):")
        found = self.try_it(script, "--only", "compile")
        self.assertEqual((found["steps"], found["baseline"]["step_ns"], found["tried"][0]["step_ns"]), (0, 54e6, 9e6))

    def test_calls_of_the_model_are_steps(self):
        # A compiler that takes a minute at the first call would hide what it brings in a whole run.
        script = self.CALLS.replace("model.weights", "compile = model.compile\nmodel.compile = lambda **how: (torch._clock.spend(60000), compile(**how))\n"
                                    "model.weights")
        found = self.try_it(script, "--only", "compile,compile-graphs,no-gc")
        self.assertEqual((found["steps"], found["baseline"]["step_ns"]), (40, 6e6))
        self.assertEqual([(e["verdict"], e["step_ns"]) for e in found["tried"]], [("gain", 1e6), ("gain", 0.5e6), ("none", 6e6)])
        self.assertEqual(found["tried"][0]["difference"], 0)
        text = self.run_try(self.CALLS, "-q", "--only", "compile").stdout
        self.assertIn("6.00 ms a call   (2 runs of 40 calls", text)
        self.assertIn("No steps were found, so calls of the model are compared, each with what comes before the next.", " ".join(text.split()))

    def test_of_two_models_the_first_counts(self):
        # Both are compiled.
        script = self.CALLS.replace("for batch", "other = Model()\nother.weights = model.weights\nfor batch") + "    other(batch)\n"
        found = self.try_it(script, "--only", "compile")
        self.assertEqual((found["baseline"]["step_ns"], found["tried"][0]["step_ns"]), (12e6, 2e6))

    def test_a_loop_that_goes_on_after_sys_exit(self):
        script = self.CALLS.replace("    loss = model(batch)\n", "    try:\n        loss = model(batch)\n    except BaseException:\n        pass\n")
        found = self.try_it(script, "--only", "compile")
        self.assertEqual((found["steps"], found["tried"][0]["step_ns"]), (40, 1e6))

    def test_with_steps_nothing_changes(self):
        # A remedy with which the program ends without a step has failed.
        script = "import os, sys\n" + LOOP.replace("model = Model()", "if 'BAD' in os.environ:\n    sys.exit(0)\nmodel = Model()")
        found = self.try_it(script, "--env", "BAD=1")
        self.assertEqual((found["steps"], found["tried"][0]["why"]), (40, "it ended after 0 steps"))

    def test_a_program_that_ends_at_once(self):
        script = "import os\n" + self.LOOP.replace("print(", "sys.stdout.flush()\nprint(") + "sys.stdout.flush()\nos._exit(0)\n"
        self.assertEqual(self.try_it(script, "--env", "QUICK=1")["tried"][0]["gain"]["ratio"], 2)


class Served(Case):
    """A server, and a client that asks it."""
    SERVER = """
        import os, socket
        import lull
        server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
        while True:
            with server.accept()[0] as asked, lull.request("double"):
                asked.sendall(b"%d\\n" % (2 * int(asked.recv(20)) + int(os.environ.get("MORE", "0"))))
        """
    CLIENT = """
        import os, socket
        for i in range(12):
            with socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))) as asked:
                asked.sendall(b"%d" % i)
                print(asked.recv(20).decode().strip())
                asked.recv(1)  # until the connection is closed: the request has ended before that
        """

    def serve(self, *options, client=None, server=SERVER):
        self.write("client.py", self.CLIENT)
        return runner.run([LULL, "try", "-q", "--format=json", "--client", client or f"{PYTHON} client.py", *options, PYTHON,
                           self.write("server.py", server)], env={**self.env(), "PORT": str(runner.free_port())}, cwd=self.folder.name)

    def test_requests_are_measured_and_answers_compared(self):
        done = self.serve("--env", "ANY=1", "--env", "MORE=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        one, other = found["tried"]
        self.assertEqual((found["steps"], one["difference"], other["verdict"]), (12, 0, "differs"))
        self.assertGreaterEqual(one["p99_ns"], one["step_ns"])
        self.assertNotIn(one["verdict"], ("differs", "failed"))
        self.assertEqual(os.listdir(self.scratch), [])

    def test_a_client_or_a_server_that_fails(self):
        for options, text in (({"client": "false"}, "the client does not succeed"), ({"client": "true"}, "no requests"),
                              ({"server": "exit(3)"}, "no requests could be measured")):
            done = self.serve("--timeout", "1", "--env", "ANY=1", **options)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)


class BadInput(Case):
    def says(self, text, *options, status=1, script=LOOP):
        done = self.run_try(script, "-q", *options, status=status)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_no_steps(self):
        self.says("no steps found", "--only", "no-gc", script="print(1)\n")

    def test_few_steps(self):
        self.says("the program ended after 2 steps;", "--only", "no-gc", script=LOOP.replace("1000", "2"))

    def test_a_program_that_fails_by_itself(self):
        self.says("the program fails by itself, with status 1: ValueError: planned", "--only", "no-gc",
                  script=LOOP + "    raise ValueError('planned')\n")

    def test_a_program_that_misses_a_file_is_not_blamed(self):
        # What other programs do with the file cannot be changed.
        self.says("status 1: subprocess.CalledProcessError: Command '['cat', 'c.pt']' returned non-zero exit status 1.; files that it saves "
                  "are in a scratch folder meanwhile (c.pt), which may be why", "--only", "no-gc",
                  script="import subprocess\n" + LOOP + "    torch.save({}, 'c.pt')\n    subprocess.run(['cat', 'c.pt'], check=True)\n")

    def test_a_remedy_that_does_not_exist(self):
        self.says("there is no remedy fused-optimiser; did you mean fused-optimizer?", "--only", "fused-optimiser", status=2)

    def test_a_file_that_is_no_remedy(self):
        self.says("line 2: a remedy starts with", "--remedy", self.write("x.py", "\nimport os\n"))
        self.says("reading the remedy nowhere.py", "--remedy", "nowhere.py")

    def test_a_word_that_is_no_variable(self):
        self.says("'A' is not NAME=VALUE", "--env", "A", status=2)

    def test_a_budget_that_is_too_short(self):
        self.says("the budget is too short", "--budget", "1ms", "--only", "no-gc")

    def test_a_budget_for_some_of_the_remedies(self):
        # Whatever the time is enough for, perhaps nothing: what was not tried is told, and what was is decided or not.
        done = runner.run([LULL, "try", "-q", "--format=json", "--budget=3s", "--only",
                           "fused-optimizer,loader-workers,compile,no-gc,keep-cache,tf32,bf16", PYTHON, self.write("train.py", LOOP)],
                          env=self.env(), cwd=self.folder.name)
        if done.returncode:
            self.assertIn("the budget is too short", done.stderr)
            return
        found = json.loads(done.stdout)
        verdicts = [entry["verdict"] for entry in found["tried"]]
        self.assertTrue(found["over_budget"] or "not tried" not in verdicts)
        self.assertLessEqual(set(verdicts), {"gain", "none", "unsure", "slower", "nothing to change", "not tried"})
        for entry in found["tried"]:
            self.assertEqual(entry["runs"] > 0, entry["verdict"] not in ("nothing to change", "not tried"))

    def test_a_run_that_outlasts_the_budget(self):
        # It would go on until --timeout, 300 s without a step.
        path = self.write("slow.py", '"""slow: takes an hour to begin"""\nimport time\n\ndef apply(trial):\n    time.sleep(3600)\n')
        done = runner.run([LULL, "try", "-q", "--format=json", "--budget=12s", "--remedy", path, PYTHON,
                           self.write("train.py", LOOP)], env=self.env(), cwd=self.folder.name)
        if done.returncode:
            self.assertIn("the budget is too short", done.stderr)
            return
        found = json.loads(done.stdout)
        self.assertTrue(found["over_budget"])
        self.assertEqual([entry["verdict"] for entry in found["tried"]], ["not tried"])

    def test_too_few_runs(self):
        self.says("4 runs at least", "--runs", "3", "--only", "no-gc", status=2)

    def test_nothing_is_overwritten(self):
        self.write("p.patch", "precious")
        self.says("'p.patch' exists", "--patch", "p.patch", "--only", "no-gc", status=2)
        os.mkdir(self.path("kept"))
        self.says("'kept' exists", "-o", "kept", "--only", "no-gc", status=2)


class Output(Case):
    def test_a_patch_that_can_be_applied(self):
        self.run_try(LOOP, "-q", "--only", "fused-optimizer+loader-workers", "--patch", "p.patch")
        done = runner.run(["patch", "-p1", "-i", "p.patch"], cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.path("train.py"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn("lr=0.1, fused=True)", text)
        self.assertIn("DataLoader(range(1000), num_workers=", text)
        # The changed program is as fast as was promised.
        workers = self.try_it(text, "--only", "no-gc")
        self.assertAlmostEqual(workers["baseline"]["step_ns"], 9e6, delta=1)

    def test_no_patch_where_the_call_is_not_certain(self):
        script = LOOP.replace("lr=0.1", "**{'lr': 0.1}")
        done = self.run_try(script, "-q", "--only", "fused-optimizer", "--patch", "p.patch")
        self.assertIn("no patch: the place to change is not certain", done.stderr)
        self.assertFalse(os.path.exists(self.path("p.patch")))

    def test_a_call_inside_of_another_package(self):
        os.makedirs(self.path("packages/site-packages"))
        self.write("packages/site-packages/trainer.py", "import torch\ndef make(p):\n    return torch.optim.Adam(p, lr=0.1)\n")
        script = "import sys\nsys.path.append('packages/site-packages')\nimport trainer\n" + \
            LOOP.replace("torch.optim.Adam(model.parameters(), lr=0.1)", "trainer.make(model.parameters())")
        done = self.run_try(script, "-q", "--only", "fused-optimizer", "--patch", "p.patch")
        self.assertIn("opt = trainer.make(model.parameters())\n      in what this calls: add fused=True\n", done.stdout)
        self.assertIn("no patch", done.stderr)

    def test_markdown(self):
        done = self.run_try(LOOP, "-q", "--only", "fused-optimizer", "--format", "markdown")
        self.assertIn("| fused-optimizer | 16.00 ms | 1.50 x (1.50 to 1.50) | same losses to the bit |", done.stdout)
        self.assertIn("```diff\n--- a/train.py", done.stdout)

    def test_the_json_has_what_the_schema_says(self):
        found = self.try_it(LOOP, "--only", "fused-optimizer")
        schema = json.loads(runner.run([LULL, "schema", "try"], check=True).stdout)
        self.assertEqual(set(found), set(schema["properties"]))
        entry = schema["properties"]["tried"]["items"]["properties"]
        self.assertEqual(set(found["tried"][0]), set(entry))

    def test_a_dry_run_runs_nothing(self):
        done = self.run_try("open('ran', 'w')\n", "--dry-run", "--only", "fused-optimizer,no-gc")
        self.assertIn("fused-optimizer", done.stdout)
        self.assertFalse(os.path.exists(self.path("ran")))


class Chosen(Direct):
    """What is tried without an option that names it, and in which order."""

    CUDA = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")
def ok(result):
    assert result == 0, result
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
ok(cu.cuInit(0))
ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cu.cuCtxSetCurrent(context))
ok(cu.cuModuleLoadData(ctypes.byref(module), b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry add_one(.param .u64 p)\\n{ ret; }\\n"))
ok(cu.cuModuleGetFunction(ctypes.byref(function), module, b"add_one"))
ok(cu.cuMemAlloc_v2(ctypes.byref(memory), 4))
streams = [ctypes.c_void_p() for _ in range(N_STREAMS)]
argument = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
for stream in streams:
    ok(cu.cuStreamCreate(ctypes.byref(stream), 1))
    ok(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, argument, None))
    ok(cu.cuStreamSynchronize(stream))
"""
    # Each line of it is there for one remedy.
    FULL = ("import gc\n" + LOOP.replace("lr=0.1", "lr=0.1, foreach=False") + """
    x = torch.Tensor(1.0, n=5000).to('cuda')
    torch.save({'step': i}, 'c.pt')
    torch.cuda.empty_cache()
    opt.zero_grad(set_to_none=False)
    if i == 12: break
""")

    def env(self):
        return {**super().env(), "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}

    def plan(self, script, *options):
        """(names of what would be tried, in order; what is left out, with the reason; how it was chosen)"""
        found = self.try_it(script, "--dry-run", *options)
        names = [(entry["remedies"][0], entry) for entry in found["tried"]]
        self.assertTrue(all(entry["runs"] == 0 for _, entry in names))
        left_out = {name: entry["why"] for name, entry in names if entry["verdict"] == "nothing to change"}
        return [name for name, entry in names if entry["verdict"] == "not tried"], left_out, found

    def test_what_would_change_nothing_costs_no_run(self):
        tried, left_out, _ = self.plan(LOOP)
        nothing = "nothing in the program to change"
        self.assertEqual(left_out, {name: nothing for name in (
            "async-save", "blocking-waits", "channels-last", "foreach-optimizer", "grads-to-none", "keep-cache", "model-graphs",
            "near-cpus", "pinned-copies", "spin-waits")})
        tried, left_out, _ = self.plan(self.FULL)
        self.assertEqual(set(left_out), {"blocking-waits", "channels-last", "model-graphs", "near-cpus", "spin-waits"})
        self.assertLessEqual({"async-save", "foreach-optimizer", "grads-to-none", "keep-cache", "pinned-copies"}, set(tried))

    def test_all_that_can_be_asked_do_ask(self):
        for path in glob.glob(os.path.join(ROOT, "python/lull/remedies/*.py")):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            asks = re.search(r"trial\.(changes|compile_model|set_context_flag)\(", text) is not None
            self.assertEqual((asks, "\nasks: yes\n" in text), ("def apply" in text,) * 2, path)

    def test_to_be_asked_changes_nothing(self):
        # Losses, files and the arguments of what it calls are those of the program.
        script = self.FULL + """
print(loss.value, opt.ms, loader.num_workers, loader.pin_memory, torch.backends.cudnn.benchmark, model._compiled_call_impl,
      torch._clock.now, gc.get_threshold(), file=open('told-%s' % ('ASKED' if 'LULL_TRY_ASKS' in __import__('os').environ else 'PLAIN'), 'w'))
"""
        self.plan(script)
        runner.run([PYTHON, self.path("train.py")], env=self.env(), cwd=self.folder.name, check=True)
        with open(self.path("told-ASKED"), encoding="utf-8") as asked, open(self.path("told-PLAIN"), encoding="utf-8") as plain:
            self.assertEqual(asked.read(), plain.read())

    def test_a_program_that_fails_is_not_believed(self):
        # What it did not reach might have been changed.
        _, left_out, _ = self.plan(LOOP + "    raise ValueError('planned')\n")
        self.assertEqual(left_out, {})

    def test_without_a_recording_quick_ones_that_fit_come_first(self):
        tried, _, found = self.plan(LOOP)
        self.assertIn("no GPU work", found["chosen_by"])
        self.assertEqual(tried[:5], ["loader-pinned", "no-gc", "cudnn-benchmark", "fused-optimizer", "loader-workers"])
        self.assertEqual(tried[-3:], ["compile", "compile-dynamic", "compile-graphs"])

    def test_the_likeliest_first_where_lull_why_cannot_tell(self):
        # One kernel is all of the device's time, but one step proves nothing.
        script = self.CUDA.replace("N_STREAMS", "1") + LOOP.replace("1000", "1")
        tried, left_out, found = self.plan(script, "--whole")
        self.assertIn("only one step", found["chosen_by"])
        self.assertIn("the likeliest first: perhaps gpu-bound 100 %", found["chosen_by"])
        self.assertEqual(tried[:2], ["cudnn-benchmark", "compile"])
        for name in ("nccl-buffers", "nccl-channels", "nccl-ring", "nccl-tree"):
            self.assertEqual(left_out[name], "the recording has no collectives")
        self.assertEqual(left_out["connections"], "the program uses one stream")
        promises = [entry["promise"] for entry in found["tried"] if entry["verdict"] == "not tried"]
        self.assertEqual(promises, sorted(promises, reverse=True))
        self.assertEqual({entry["predicted"] for entry in found["tried"]}, {None})
        tried, left_out, _ = self.plan(script.replace("range(1)", "range(2)", 1), "--whole")
        self.assertIn("connections", tried)
        self.assertNotIn("connections", left_out)

    def test_a_dry_run_in_words(self):
        text = self.run_try(LOOP, "-q", "--dry-run").stdout
        plan, left_out = text.split("Not with these:\n")
        self.assertIn("  fused-optimizer        one kernel updates all parameters\n", plan)
        self.assertIn("  async-save             nothing in the program to change\n", left_out)

    def test_without_a_device_nothing_is_chosen(self):
        steps = "import lull\nfor i in range(60): lull.step(i)\n"
        plain = "import time\nfor i in range(20): time.sleep(0.01)\n"
        for script, options in ((plain, ["--dry-run"]), (steps, ["--dry-run"]), (steps, [])):
            done = self.run_try(script, "-q", *options, status=1)
            self.assertIn("does nothing on a GPU, so there is nothing to choose from", done.stderr)

    def test_what_is_left_out_is_not_run(self):
        found = self.try_it(LOOP.replace("DataLoader(range(1000))", "DataLoader(range(1000), 1, None, None, None, 2, None, True)"), "--steps=4")
        self.assertEqual({e["remedies"][0] for e in found["tried"] if e["verdict"] == "nothing to change"} &
                         {"loader-workers", "loader-pinned", "async-save"}, {"loader-workers", "loader-pinned", "async-save"})
        ran = sum(e["runs"] for e in found["tried"]) + found["baseline"]["runs"]
        # The recording is one more.
        self.assertEqual(found["runs"], ran + 1)

    def test_the_compiler_says_what_it_made_of_it(self):
        counters = "counters = {'stats': {'unique_graphs': 2, 'calls_captured': 9}, 'graph_break': {'call to print\\nmore': 3}, " \
                   "'inductor': {'cudagraph_skips': 1}}\n"
        script = f"import logging, sys, types\nm = types.ModuleType('utils')\nexec({counters!r}, m.__dict__)\nsys.modules['torch._dynamo.utils'] = m\n"
        script += "u = types.ModuleType('u')\nu.perf_hint_log = logging.getLogger('of torch')\nu.perf_hint_log.disabled = True\n" \
                  "sys.modules['torch._inductor.cudagraph_utils'] = u\n" + LOOP
        script += "    if i == 3: u.perf_hint_log.warning('skipping cudagraphs due to mutated inputs\\nmore')\n"
        self.assertEqual(self.direct(script, "compile-graphs")["h"], [
            "skipping cudagraphs due to mutated inputs", "compiled graphs: 2, of 9 operators",
            "graph breaks: 3, most because: call to print", "graphs that do not become CUDA graphs: 1"])


class Warm(Case):
    """Runs that are forked where `import torch` ends."""

    def imports(self, script, *options):
        """How often the program came to its first line, to its import, and to what comes after; and what lull try says."""
        script = "note = lambda c: open('lines', 'a').write(c)\nnote('a')\n" + script.replace("import torch\n", "import torch\nnote('b')\n", 1)
        if os.path.exists(self.path("lines")):
            os.remove(self.path("lines"))
        found = self.try_it(script, *options)
        with open(self.path("lines"), encoding="utf-8") as f:
            text = f.read()
        return text.count("a"), text.count("b"), found

    def test_the_import_is_done_once(self):
        first, second, found = self.imports(LOOP, "--only", "fused-optimizer,loader-workers,no-gc")
        self.assertEqual((first, second, found["forked_runs"]), (1, found["runs"], found["runs"]))
        self.assertGreater(second, 8)
        again = self.imports(LOOP, "--fresh", "--only", "fused-optimizer,loader-workers,no-gc")
        self.assertEqual(again[:2] + (again[2]["forked_runs"],), (second, second, 0))
        # What is measured is the same.
        for one, other in zip([found["baseline"], *found["tried"]], [again[2]["baseline"], *again[2]["tried"]]):
            self.assertEqual([one[k] for k in ("remedies", "verdict", "step_ns", "gain", "difference", "runs", "places")],
                             [other[k] for k in ("remedies", "verdict", "step_ns", "gain", "difference", "runs", "places")])

    def test_variables_need_their_own_import(self):
        script = "import os\nQUICK = 'QUICK' in os.environ\n" + LOOP + "    torch._clock.spend(0 if QUICK else 24)\n"
        first, _, found = self.imports(script, "--env", "QUICK=1", "--only", "no-gc")
        self.assertEqual((first, found["forked_runs"]), (2, found["runs"]))
        self.assertEqual([e["verdict"] for e in found["tried"]], ["none", "gain"])

    def test_a_program_that_shares_more_than_memory_is_not_forked(self):
        before = {
            "a thread": "import threading, time\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
            "a child": "import subprocess\nchild = subprocess.Popen(['sleep', '100'])\n",
            "a file": "log = open('log', 'w')\n",
            "a socket": "import socket\ns = socket.socket()\n",
        }
        for what, lines in before.items():
            with self.subTest(what):
                first, second, found = self.imports(lines + LOOP, "--only", "fused-optimizer")
                self.assertEqual((first, found["forked_runs"]), (found["runs"], 0))
                self.assertIn({"a thread": "2 threads", "a child": "child processes", "a file": "opened " + self.path("log"),
                               "a socket": "opened socket"}[what], found["not_forked"])
                self.assertEqual(found["tried"][0]["verdict"], "gain")
        _, _, found = self.imports("data = open(__file__)\n" + LOOP, "--only", "fused-optimizer")
        self.assertEqual(found["forked_runs"], found["runs"])

    def test_a_program_behind_a_shell_is_not_forked(self):
        file = self.write("train.py", LOOP)
        link = self.path("python-of-mine")
        self.write("python-of-mine", f"#!/bin/sh\n{PYTHON} {file}\n")
        os.chmod(link, 0o755)
        done = runner.run([LULL, "try", "-q", "--format=json", "--only", "fused-optimizer", link], env=self.env(), cwd=self.folder.name)
        found = json.loads(done.stdout)
        self.assertEqual((found["forked_runs"], found["tried"][0]["verdict"]), (0, "gain"))

    def test_modules_of_all_runs_are_loaded_ahead(self):
        os.mkdir(self.path("packages/torchvision"))
        self.write("packages/torchvision/__init__.py", "open('lines', 'a').write('v')\n")
        script = LOOP.replace("class Model", "import os, torchvision\nos.environ['CUDA_MODULE_LOADING'] = 'LAZY'  # as PyTorch does\nclass Model")
        _, second, found = self.imports(script, "--only", "fused-optimizer,no-gc")
        with open(self.path("lines"), encoding="utf-8") as f:
            self.assertEqual(f.read().count("v"), 2)
        self.assertEqual(found["forked_runs"], found["runs"])
        # One that starts a thread spoils the process; the next one does without.
        self.write("packages/torchvision/__init__.py",
                   "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n")
        first, _, found = self.imports(LOOP.replace("class Model", "import torchvision\nclass Model"), "--only", "fused-optimizer,no-gc")
        self.assertEqual(found["tried"][0]["verdict"], "gain")
        self.assertLess(1, first)
        self.assertLess(first, found["runs"])

    def test_nothing_is_left_if_lull_is_killed(self):
        file = self.write("train.py", "import os, signal\n" + LOOP + "    if i == 9:\n        print(os.getppid(), os.getpid(), file=open('pids', 'w'), flush=True)\n        signal.pause()\n")
        p = runner.start([LULL, "try", "-q", "--only", "no-gc", PYTHON, file], env=self.env(), cwd=self.folder.name,
                         stdout=runner.subprocess.DEVNULL, stderr=runner.subprocess.DEVNULL)
        runner.until(lambda: os.path.exists(self.path("pids")) and os.path.getsize(self.path("pids")), "the first run is forked")
        p.kill()
        runner.finish(p)
        with open(self.path("pids"), encoding="ascii") as f:
            pids = [int(pid) for pid in f.read().split()]
        for pid in pids:
            runner.until(lambda: runner.has_ended(pid), f"process {pid} ends")
        shutil.rmtree(self.scratch)


class Real(Case):
    """One run with Debian's PyTorch, whose names the stand-in only copies."""

    def test_steps_losses_and_a_remedy(self):
        if runner.run([PYTHON, "-c", "import importlib.util as u; exit(not u.find_spec('torch'))"]).returncode:
            runner.skip("there is no PyTorch for " + PYTHON)
        file = self.write("train.py", """
            import torch
            model = torch.nn.Linear(8, 1)
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            data = [(torch.full((8,), float(i % 3)), 1.0) for i in range(1000)]
            for x, y in torch.utils.data.DataLoader(data, batch_size=2):
                loss = (model(x).squeeze(1) - y).square().mean()
                opt.zero_grad(set_to_none=False)
                loss.backward()
                opt.step()
            """)
        folder = self.path("log")
        os.mkdir(folder)
        # The other one finds nothing to change without a device, and must not be noticed.
        remedies = [os.path.join(ROOT, f"python/lull/remedies/{name}.py") for name in ("grads_to_none", "model_graphs")]
        done = runner.run([PYTHON, file], env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "LULL_TRY": folder,
                                               "LULL_TRY_STEPS": "5,8,2", "LULL_TRY_REMEDIES": ":".join(remedies)})
        self.assertEqual(done.returncode, 0, done.stderr)
        log = [line for path in glob.glob(folder + "/*.log") for line in open(path, encoding="utf-8")]
        self.assertEqual([line[0] for line in log if line[0] in "mbe"], ["m", "b", "b", "b", "b", "e"])
        losses = [float.fromhex(line[2:]) for line in log if line[0] == "l"]
        self.assertEqual(len(losses), 10)
        self.assertGreater(len(set(losses)), 5)
        self.assertEqual([line for line in log if line[0] in "dt"], ["d grads-to-none\n"])
        self.assertIn(f"w grads-to-none {file}:8 remove set_to_none=False\n", log)


class Simulated(Case):
    """A program in C on the simulated device: steps of lull.h, the choice by lull why, the recordings."""

    def test_the_example(self):
        env = {**self.env(), "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
        train = os.path.join(BUILD, "examples/train_cuda")
        # Where nothing but the CPU was missing in the short recording, the copies are not named: then it is made again.
        for _ in range(5):
            shutil.rmtree(self.path("kept"), ignore_errors=True)
            done = runner.run([LULL, "try", "-q", "--format=json", "--steps=12", "-o", self.path("kept"), train, "--steps=100000"],
                              env=env, cwd=self.folder.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(found["steps"], 12)
            verdicts = {entry["remedies"][0]: entry["verdict"] for entry in found["tried"]}
            if "staged-copies" in verdicts and "lull why: " in found["chosen_by"]:
                break
        self.assertIn("lull why: ", found["chosen_by"])
        # It copies from pageable memory; it neither frees memory in its steps, nor has the device flags for waits.
        self.assertIn(verdicts["staged-copies"], ("gain", "none", "slower", "unsure"), found)
        # On a busy machine the short recording may not name what this one is for.
        self.assertEqual(verdicts.get("alloc-pool", "nothing to change"), "nothing to change")
        for verdict in verdicts.values():
            self.assertIn(verdict, ("gain", "none", "slower", "unsure", "nothing to change"), found)
        self.assertEqual(os.listdir(self.scratch), [])
        report = self.path("kept/baseline.lull")
        steps = json.loads(runner.run([LULL, "query", "--format", "json", report, "select count(*) n from step"], check=True).stdout)
        self.assertEqual(steps[0]["n"], 20)


class Unmarked(Case):
    """Programs in C that mark no steps: their loops are found in a recording, and their calls are counted in other runs."""
    GUEST = os.path.join(BUILD, "e2e/unmarked_guest")

    def run_guest(self, words, *options, status=0, env=()):
        done = runner.run([LULL, "try", "-q", *options, *words], cwd=self.folder.name,
                          env={**self.env(), "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), **dict(env)})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(os.listdir(self.scratch), [])
        return done

    def try_guest(self, *words, options=()):
        return json.loads(self.run_guest([self.GUEST, *words], "--format=json", *options).stdout)

    def test_the_loop_is_found(self):
        # Six launches a round, however the calls are found; three come before.
        for way in ("dlsym", "address", "thread"):
            found = self.try_guest(way, "alloc", "400")
            self.assertRegex(found["steps_by"], "^Steps: every 6 kernel launches, (a round of the loop that lull why finds|"
                             "after which its calls of CUDA repeat)[.]$")
            self.assertGreater(found["steps"], 0)
            self.assertIn("lull why", found["chosen_by"])
            # On a busy machine the recording may not name what it is for; where it is tried, it has changed something.
            for entry in found["tried"]:
                if entry["remedies"] == ["alloc-pool"]:
                    self.assertIn(entry["verdict"], ("gain", "none", "slower", "unsure"))
                    self.assertGreater(entry["step_ns"], 0)

    def test_a_gain_is_told_with_results_of_whole_runs(self):
        # The first run is slow, and yet whole runs are worth it.
        script = f"[ -e ran ] || {{ touch ran; sleep 2; }}; exec {self.GUEST} address copy 60"
        found = json.loads(self.run_guest(["sh", "-c", script], "--format=json", "--steps=8", "--only", "staged-copies,alloc-pool").stdout)
        self.assertIn("every 6 kernel launches", found["steps_by"])
        entries = {entry["remedies"][0]: entry for entry in found["tried"]}
        self.assertEqual(entries["alloc-pool"]["verdict"], "nothing to change")
        self.assertIn(entries["staged-copies"]["verdict"], ("gain", "unsure", "none", "slower"))
        if entries["staged-copies"]["verdict"] == "gain":
            # The time that it prints differs from run to run, and does not count.
            self.assertEqual((found["best"], entries["staged-copies"]["difference"]), (0, 0))

    def test_a_gain_with_other_results_is_out(self):
        script = f"{self.GUEST} dlsym copy 60 ${{LULL_MEND:-42}} | sed s/staged-copies/7/"
        found = json.loads(self.run_guest(["sh", "-c", script], "--format=json", "--steps=8", "--only", "staged-copies").stdout)
        self.assertNotEqual(found["tried"][0]["verdict"], "gain")
        self.assertIsNone(found["best"])

    def steps_of(self, words, counted):
        """How many steps one run has, as lull try would start it; it never leaves warm-up."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        libraries = ":".join(os.path.join(BUILD, name) for name in ("liblull-agent.so", "liblull-mend.so"))
        runner.run(words, check=True,
                   env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), "LD_PRELOAD": libraries,
                        "LULL_TRY": folder, "LULL_TRY_STEPS": "1000,1,1", "LULL_TRY_COUNT": counted})
        return sum(line[0] == "s" for path in glob.glob(folder + "/*.log") for line in open(path, encoding="ascii"))

    def test_what_is_counted(self):
        # One wait comes after the loop.
        numbers = {"launches:6:3": 40, "launches:12:3": 20, "launches:6:0": 41, "launches:6:123": 20, "copies:1:0": 40,
                   "waits:1:0": 41, "waits:4:0": 11, "others:1:0": 0, "launches:0:0": 0, "launches": 0, "": 0}
        for way in ("dlsym", "address"):
            for counted, n in numbers.items():
                self.assertEqual(self.steps_of([self.GUEST, way, "copy", "40"], counted), n, (way, counted))
        self.assertEqual(self.steps_of([self.GUEST, "thread", "copy", "40"], "launches:6:3"), 40)

    def test_calls_of_a_runtime_that_is_linked_to_the_driver(self):
        # By all functions that launch, and from two threads.
        self.assertEqual(self.steps_of([os.path.join(BUILD, "e2e/cudart_guest")], "launches:1:0"), 75)

    def test_rounds_that_differ(self):
        done = self.run_guest([self.GUEST, "address", "vary", "300"], "--only", "alloc-pool")
        self.assertRegex(" ".join(done.stdout.split()), "^The program marks no steps, and [a-z A-Z]+, so whole runs are compared, from start to end. "
                         r"as it is \d+.\d+ m?s a run ")
        self.assertNotIn("a step", done.stdout)

    def test_few_rounds(self):
        found = self.try_guest("dlsym", "alloc", "4", options=("--only", "alloc-pool"))
        self.assertEqual((found["steps"], found["tried"][0]["runs"] > 0), (0, True))
        self.assertIn("so whole runs are compared", found["steps_by"])

    def test_a_program_that_goes_on_and_on(self):
        found = self.try_guest("dlsym", "alloc", "1000000000", options=("--timeout=10", "--only", "alloc-pool"))
        self.assertIn("every 6 kernel launches", found["steps_by"])
        self.assertGreater(found["tried"][0]["runs"], 0)
        # It never ends, so there is nothing to compare.
        self.assertIsNone(found["tried"][0]["difference"])

    def test_a_program_without_cuda(self):
        done = self.run_guest([self.GUEST, "dlsym", "idle"], status=1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "lull try: the program marks no steps and does nothing on a GPU, so there is nothing to choose "
                         "from; --only or --env name what to try\n")
        found = self.try_guest("dlsym", "idle", options=("--env", "A=1"))
        # Null if it was out before the program as it is had run twice.
        self.assertEqual((found["steps"], found["tried"][0]["difference"] or 0), (0, 0))

    def test_a_dry_run(self):
        for _ in range(5):  # as of the example
            done = self.run_guest([self.GUEST, "dlsym", "copy", "60"], "--dry-run")
            if "  staged-copies " in done.stdout:
                break
        self.assertIn("  staged-copies ", done.stdout)

    def test_recordings_are_kept(self):
        self.run_guest([self.GUEST, "dlsym", "alloc", "200"], "--only", "alloc-pool", "-o", self.path("kept"))
        out = runner.run([LULL, "query", "--format", "json", self.path("kept/baseline.lull"), "select count(*) n from kernel"], check=True)
        self.assertEqual(json.loads(out.stdout)[0]["n"], 1203)


class Changed(Case):
    """Calls of CUDA that liblull-mend.so changes, in a program that would notice a mistake."""
    GUEST = os.path.join(BUILD, "e2e/change_guest")

    def guest(self, way, changes, device="e2e/part/lazy"):
        folder = tempfile.mkdtemp(dir=self.scratch)
        libraries = [os.path.join(BUILD, name) for name in ("liblull-agent.so", "liblull-mend.so")] if changes else []
        done = runner.run([self.GUEST, way, "12"],
                          env={**os.environ, "LD_LIBRARY_PATH": os.path.join(BUILD, device), "LULL_TRY": folder,
                               "LULL_MEND": ",".join(changes), "LD_PRELOAD": ":".join(libraries)})
        self.assertEqual(done.returncode, 0, done.stderr)
        log = [line for path in glob.glob(folder + "/*.log") for line in open(path, encoding="ascii")]
        return done.stdout, sorted(line[2:].strip() for line in log)

    def test_results_stay_the_same_however_the_calls_are_found(self):
        for way in ("dlsym", "address", "old"):
            plain = self.guest(way, [])[0]
            for changes in (["alloc-pool"], ["staged-copies"], ["alloc-pool", "staged-copies"]):
                self.assertEqual(self.guest(way, changes), (plain, changes))

    def test_on_the_simulated_device(self):
        changes = ["alloc-pool", "staged-copies"]
        self.assertEqual(self.guest("address", changes, "sim"), (self.guest("address", [], "sim")[0], changes))

    def test_a_change_that_does_not_exist_or_cannot_be_made(self):
        # The simulated device has neither these flags nor a place on a bus.
        self.assertEqual(self.guest("dlsym", ["spin-waits", "near-cpus", "other"], "sim"), (self.guest("dlsym", [], "sim")[0], []))

    def test_a_program_in_c(self):
        env = {**self.env(), "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
        done = runner.run([LULL, "try", "-q", "--format=json", "--steps=8", "--only", "alloc-pool,staged-copies,spin-waits,huge-pages",
                           "-o", self.path("kept"), self.GUEST, "address", "100000"], env=env, cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {entry["remedies"][0]: entry for entry in json.loads(done.stdout)["tried"] if len(entry["remedies"]) == 1}
        for name in ("alloc-pool", "staged-copies", "huge-pages"):
            self.assertIn(found[name]["verdict"], ("gain", "none", "slower", "unsure"))
        self.assertEqual(found["spin-waits"]["verdict"], "nothing to change")
        self.assertTrue(os.path.exists(self.path("kept/baseline.lull")))

    def test_a_program_in_python(self):
        copies = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")
context, at, data = ctypes.c_void_p(), ctypes.c_uint64(), bytes(1 << 20)
assert cu.cuInit(0) == 0 and cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cu.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(len(data))) == 0
"""
        copy = "    assert cu.cuMemcpyHtoD_v2(at, data, ctypes.c_size_t(len(data))) == 0\n"
        for script, verdicts in ((copies + LOOP + copy, ("gain", "none", "slower", "unsure")), (LOOP, ("nothing to change",))):
            file = self.write("train.py", script)
            env = {**self.env(), "LD_LIBRARY_PATH": os.path.join(BUILD, "sim")}
            done = runner.run([LULL, "try", "-q", "--format=json", "--steps=8", "--only=staged-copies", PYTHON, file], env=env, cwd=self.folder.name)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(json.loads(done.stdout)["tried"][0]["verdict"], verdicts)


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
