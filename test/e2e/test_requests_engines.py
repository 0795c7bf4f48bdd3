#!/usr/bin/env python3
"""Requests inside engines that serve language models. The engines here are stand-ins: modules, classes and methods have the names of the real
ones, and the fields that these methods take and give.

Usage: test_requests_engines.py BUILD [NAME...]
"""
import json
import os
import sys
import tempfile
import textwrap
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
LULL = os.path.join(BUILD, "lull")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# A step of a device, with a name that the test finds again.
STEP = """
import lull
def step(name):
    with lull.record(name):
        pass
class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)
"""

VLLM = """
class Scheduler:
    def __init__(self): self.waiting, self.running = [], []
    def add_request(self, request): self.waiting.append(request)
    def schedule(self):
        counts = {r.request_id: 1 for r in self.running}
        counts.update({r.request_id: r.n_prompt for r in self.waiting})
        self.running, self.waiting = self.running + self.waiting, []
        return Thing(num_scheduled_tokens=counts)
    def update_from_output(self, scheduler_output, model_runner_output):
        outputs = []
        for r in self.running:
            r.n_left -= 1
            outputs.append(Thing(request_id=r.request_id, new_token_ids=[7], finish_reason=None if r.n_left else 1))
        self.running = [r for r in self.running if r.n_left]
        return {0: Thing(outputs=outputs)}
    def finish_requests(self, request_ids, finished_status):
        self.running = [r for r in self.running if r.request_id not in request_ids]
"""

SGLANG = """
class Scheduler:
    def __init__(self): self.waiting, self.running = [], []
    def handle_generate_request(self, recv_req): self.waiting.append(recv_req)
    def get_next_batch_to_run(self):
        is_extend, reqs = bool(self.waiting), self.waiting or self.running
        self.running, self.waiting = self.running + self.waiting, []
        return Thing(reqs=reqs, forward_mode=Thing(is_extend=lambda: is_extend, is_decode=lambda: not is_extend))
    def run_batch(self, batch): step(",".join(r.rid for r in batch.reqs))
    def process_batch_result(self, batch, result):
        for r in batch.reqs:
            r.n_left -= 1
        self.running = [r for r in self.running if r.n_left]
    def abort_request(self, recv_req):
        self.running = [r for r in self.running if r.rid != recv_req.rid]
"""

TENSORRT = """
class PyExecutor:
    def __init__(self): self.n, self.new, self.active = 0, [], []
    def enqueue_requests(self, requests, result_wait_queue=None):
        for r in requests:
            self.n += 1
            r.py_request_id = self.n
        self.new += requests
        return [r.py_request_id for r in requests]
    def _forward_step(self, scheduled_requests, new_tensors_device=None):
        step(",".join(str(r.py_request_id) for r in scheduled_requests.context_requests + scheduled_requests.generation_requests))
    def _update_requests(self, sample_state):
        for r in self.active: r.n_left -= 1
    def _enqueue_responses(self, responses):
        self.told = dict(responses)
    def one_step(self):
        batch = Thing(context_requests=self.new, generation_requests=self.active)
        self._forward_step(batch)
        self.new, self.active = [], self.active + self.new
        self._update_requests(None)
        self._enqueue_responses((r.py_request_id, Thing(result=Thing(is_final=not r.n_left))) for r in self.active)
        self.active = [r for r in self.active if r.n_left]
"""

TRANSFORMERS = """
class GenerationMixin:
    def generate(self, n):
        kwargs = {}
        for i in range(n):
            kwargs = self._update_model_kwargs_for_generation(i, kwargs)
        return n
    def _update_model_kwargs_for_generation(self, outputs, model_kwargs, is_encoder_decoder=False): return {"n": outputs}
"""


class Engines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lull-engines-")
        self.addCleanup(self.folder.cleanup)

    def module(self, name, text):
        """A module of a package that has only this one."""
        *packages, last = name.split(".")
        folder = self.folder.name
        for package in packages:
            folder = os.path.join(folder, package)
            os.makedirs(folder)
            with open(os.path.join(folder, "__init__.py"), "w", encoding="utf-8"):
                pass
        with open(os.path.join(folder, last + ".py"), "w", encoding="utf-8") as f:
            f.write(STEP + text)

    def record(self, script):
        program, self.report = (os.path.join(self.folder.name, name) for name in ("program.py", "report"))
        with open(program, "w", encoding="utf-8") as f:
            f.write(STEP + textwrap.dedent(script))
        run = runner.run([LULL, "profile", "-q", "-f", "true", "-s", "none", "--cpuctxsw", "none", "--python-sampling=false", "-o", self.report, PYTHON, program])
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def rows(self, sql):
        run = runner.run([LULL, "query", "-f", "json", self.report + ".lull", sql])
        self.assertEqual(run.returncode, 0, run.stderr)
        return [tuple(row.values()) for row in json.loads(run.stdout)]

    def requests(self):
        return self.rows("SELECT name, status, tokens FROM request ORDER BY id")

    def owners(self):
        """Of each step: the requests it is for."""
        return [(name, of) for name, of in self.rows("""
            SELECT l.name, (SELECT group_concat(w.payload) FROM (SELECT DISTINCT w.payload FROM range w JOIN label k ON k.id = w.label
                            WHERE k.api = 7 AND w.start_ns <= r.start_ns AND w.start_ns + w.dur_ns >= r.start_ns + r.dur_ns ORDER BY 1) w)
            FROM range r JOIN label l ON l.id = r.label WHERE l.api = 2 ORDER BY r.start_ns""")]

    def phases(self):
        return [name for (name,) in self.rows("SELECT l.name FROM range r JOIN label l ON l.id = r.label WHERE l.api = 6 "
                                              "AND (l.name LIKE 'prefill%' OR l.name = 'decode') ORDER BY r.start_ns")]

    def test_vllm(self):
        self.module("vllm.v1.core.sched.scheduler", VLLM)
        self.record("""
            from vllm.v1.core.sched.scheduler import Scheduler
            scheduler = Scheduler()
            def steps(n):
                for i in range(n):
                    output = scheduler.schedule()
                    step(",".join(output.num_scheduled_tokens))
                    scheduler.update_from_output(output, None)
            for name, n_left in (("a", 3), ("b", 2)):
                scheduler.add_request(Thing(request_id=name, n_prompt=20, n_left=n_left))
            steps(1)
            scheduler.add_request(Thing(request_id="c", n_prompt=9, n_left=50))
            steps(2)
            scheduler.finish_requests(["c"], None)
            step("nobody")
            """)
        self.assertEqual(self.requests(), [("vllm.generate", "done", 3), ("vllm.generate", "done", 2), ("vllm.generate", "hung up", 2)])
        self.assertEqual(self.owners(), [("a,b", "1,2"), ("a,b,c", "1,2,3"), ("a,c", "1,3"), ("nobody", "")])
        self.assertEqual(self.phases(), ["prefill", "prefill+decode", "decode"])

    def test_sglang(self):
        self.module("sglang.srt.managers.scheduler", SGLANG)
        self.record("""
            from sglang.srt.managers.scheduler import Scheduler
            scheduler = Scheduler()
            def request(rid, n): return Thing(rid=rid, n_left=n)
            def steps(n):
                for i in range(n):
                    batch = scheduler.get_next_batch_to_run()
                    scheduler.process_batch_result(batch, scheduler.run_batch(batch))
            for r in (request("a", 3), request("b", 2), request("c", 50)):
                r.finished = lambda r=r: not r.n_left
                scheduler.handle_generate_request(r)
            steps(3)
            scheduler.abort_request(Thing(rid="c"))
            """)
        self.assertEqual(self.requests(), [("sglang.generate", "done", 3), ("sglang.generate", "done", 2), ("sglang.generate", "hung up", 3)])
        self.assertEqual(self.owners(), [("a,b,c", "1,2,3"), ("a,b,c", "1,2,3"), ("a,c", "1,3")])
        self.assertEqual(self.phases(), ["prefill", "decode", "decode"])

    def test_tensorrt_llm(self):
        self.module("tensorrt_llm._torch.pyexecutor.py_executor", TENSORRT)
        self.record("""
            from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor
            executor = PyExecutor()
            executor.enqueue_requests([Thing(n_left=3)])
            executor.one_step()
            executor.enqueue_requests([Thing(n_left=1)])
            executor.one_step()
            executor.one_step()
            assert list(executor.told) == [1], executor.told
            """)
        self.assertEqual(self.requests(), [("tensorrt_llm.generate", "done", 3), ("tensorrt_llm.generate", "done", 1)])
        self.assertEqual(self.owners(), [("1", "1"), ("2,1", "1,2"), ("1", "1")])
        self.assertEqual(self.phases(), ["prefill", "prefill+decode", "decode"])

    def test_triton(self):
        self.module("triton_python_backend_utils", "")
        self.record("""
            import triton_python_backend_utils as pb_utils
            class Base:
                def __init_subclass__(cls, name, function): cls.words = name, function
            class TritonPythonModel(Base, name="x", function="y"):
                def execute(self, requests):
                    step("batch")
                    if not all(requests):
                        raise ValueError("of the model")
                    return list(requests)
            model = TritonPythonModel()
            assert model.words == ("x", "y")
            assert model.execute(["a", "b"]) == ["a", "b"]
            try:
                model.execute([""])
            except ValueError as error:
                print(error)
            step("nobody")
            """)
        self.assertEqual(self.requests(), [("triton.execute", "done", 0)] * 2 + [("triton.execute", "failed", 0)])
        self.assertEqual(self.owners(), [("batch", "1,2"), ("batch", "3"), ("nobody", "")])
        self.assertEqual(self.phases(), [])

    def test_transformers(self):
        """Tokens are those of the request around generate(), or of generate() itself."""
        self.module("transformers.generation.utils", TRANSFORMERS)
        self.record("""
            from transformers.generation.utils import GenerationMixin
            assert GenerationMixin().generate(3) == 3
            with lull.request("outer"):
                GenerationMixin().generate(2)
            """)
        self.assertEqual(self.requests(), [("generate", "done", 3), ("outer", "done", 2)])


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])
