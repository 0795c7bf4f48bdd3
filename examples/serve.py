#!/usr/bin/env python3
"""A small language model that is served, with slow answers to look for (lull requests).

    lull profile -o serve -- python3 examples/serve.py --cause gc
    lull requests serve.lull

The server answers requests for a number of tokens after a prompt of some length. It comes in two
styles: a thread for each request, which share the device by a lock, and asyncio with an engine
that batches the requests that are there. A client, which is another process, asks one request
after the other and prints what it measured. Every eighth request is slow for the chosen reason:

    none      no request is slow
    gc        the garbage collector runs over many objects
    prompt    its prompt is a hundred times as long
    read      it waits for another service
    code      it computes on the CPU
    lock      another thread of Python computes meanwhile
    burst     it comes together with fifteen others (one burst in 32)
    copy      it copies much to the device
    alloc     it allocates memory of the device and frees it
    load      kernels are loaded and compiled for it
    crowd     other processes compute on its CPU
    job       the device works for a job that is no request
    compile   torch.compile compiles for a new shape (needs PyTorch 2)

With --rate requests come at random times, so many a second, whether or not others are answered.

The device is a GPU, or the simulated one (LD_LIBRARY_PATH=build/sim). Its kernels compute nothing:
they take a time. Status 77: there is no driver.
"""
import argparse
import asyncio
import ctypes
import gc
import http.server
import json
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

try:
    import lull
except ImportError:  # without lull profile: nothing is recorded
    lull = None

CAUSES = ("none", "gc", "prompt", "read", "code", "lock", "burst", "copy", "alloc", "load", "crowd", "job", "compile")
EVERY = 8  # requests: one of so many is slow
BURST, BURST_EVERY = 16, 32
TOKENS, PROMPT = 4, 32
CHUNK = 16  # tokens of a prompt that one kernel takes
MAX_BATCH = 4

# Both kernels take so long, on a GPU by its clock, on the simulated device by a variable.
PREFILL_NS, DECODE_NS = 200_000, 400_000
COPY_BYTES = 8 << 20
KERNEL = """.visible .entry %s(.param .u64 ns)
{
	.reg .pred %%p<2>;
	.reg .b64 %%rd<5>;
	ld.param.u64 %%rd1, [ns];
	mov.u64 %%rd2, %%globaltimer;
again:
	mov.u64 %%rd3, %%globaltimer;
	sub.u64 %%rd4, %%rd3, %%rd2;
	setp.lt.u64 %%p1, %%rd4, %%rd1;
	@%%p1 bra again;
	ret;
}
"""
PTX = ".version 6.0\n.target sm_50\n.address_size 64\n" + KERNEL % "prefill" + KERNEL % "decode"


# ---- the model ----


def simulate(scale, cause):
    """How long kernels and calls take, if the device is the simulated one."""
    cost = f"prefill:{int(PREFILL_NS * scale)},decode:{int(DECODE_NS * scale)}"
    os.environ.setdefault("LULL_SIM_COST", cost)
    if cause in ("alloc", "load"):
        os.environ.setdefault("LULL_SIM_CALL_NS", "200000")


class Model:
    def __init__(self, scale=1.0):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            sys.exit(77)
        self.room = ctypes.c_uint64()
        self.context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.do("cuInit", 0)
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.use()
        self.do("cuModuleLoadData", ctypes.byref(module), PTX.encode())
        self.kernels = {}
        for name, ns in (("prefill", PREFILL_NS), ("decode", DECODE_NS)):
            kernel, ns = ctypes.c_void_p(), ctypes.c_uint64(int(ns * scale))
            self.do("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
            params = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(ns), ctypes.c_void_p))
            self.kernels[name] = kernel, params, ns

    def do(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result:
            sys.exit(f"{name} gave {result}")

    def use(self):
        """Each thread that uses the device says so once."""
        self.do("cuCtxSetCurrent", self.context)

    def launch(self, name):
        kernel, params, _ = self.kernels[name]
        self.do("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, params, None)

    def prefill(self, n_tokens):
        for _ in range(0, n_tokens, CHUNK):
            self.launch("prefill")

    def decode(self):
        """The next token of each request of a batch."""
        self.launch("decode")
        self.do("cuCtxSynchronize")

    def copy(self, data):
        """From memory that is not pinned."""
        if not self.room:
            self.do("cuMemAlloc_v2", ctypes.byref(self.room), ctypes.c_size_t(len(data)))
        self.do("cuMemcpyHtoD_v2", self.room, data, ctypes.c_size_t(len(data)))

    def allocate(self):
        at = ctypes.c_uint64()
        self.do("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(1 << 28))
        self.do("cuMemFree_v2", at)

    def load(self, number):
        """Code that no cache has: its name is new."""
        module, kernels = ctypes.c_void_p(), "".join(KERNEL % f"k{number}_{i}_{os.getpid()}" for i in range(64))
        head = PTX.split(".visible", 1)[0]
        self.do("cuModuleLoadData", ctypes.byref(module), (head + kernels).encode())


# ---- what makes a request slow ----


BURN = """import os, sys, time
while os.read(0, 1):
    until = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until:
        pass
"""


class Trouble:
    """What takes `for_s` is 0.1 s, unless everything takes longer."""

    def __init__(self, cause, model, scale):
        self.model, self.for_s, self.n = model, 0.1 * max(1, scale / 4), 0
        self.objects = [[i] for i in range(int(400_000 * max(1, scale / 4)))] if cause == "gc" else []
        self.is_computing = threading.Event()
        self.goes_on = threading.Event()
        if cause in ("lock", "job"):
            sys.setswitchinterval(0.02 if cause == "lock" else 0.005)
            threading.Thread(target=self.compute if cause == "lock" else self.occupy, daemon=True).start()
        if cause == "copy":
            self.data = ctypes.create_string_buffer(COPY_BYTES)
        if cause == "crowd":
            self.cpus, self.one = os.sched_getaffinity(0), min(os.sched_getaffinity(0))
            self.crowd = [self.burner() for _ in range(5)]
        if cause == "compile":
            self.compiled = compiled_function()
        gc.disable()  # it runs when we say so

    def burner(self):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("LULL_")}
        return subprocess.Popen([sys.executable, "-c", BURN, str(self.for_s)], stdin=subprocess.PIPE, env=env,
                                preexec_fn=lambda: os.sched_setaffinity(0, {self.one}))

    def compute(self):
        while True:
            self.is_computing.wait()
            until = time.monotonic() + self.for_s
            while time.monotonic() < until:
                sum(range(1000))
            self.is_computing.clear()
            self.goes_on.set()

    def occupy(self):
        """Work on the device, of a thread that serves nobody."""
        self.model.use()
        while True:
            self.is_computing.wait()
            self.is_computing.clear()
            for _ in range(int(self.for_s * 1e9 / self.model.kernels["decode"][2].value)):
                self.model.launch("decode")
            self.goes_on.set()

    def ask(self):
        """Have the other thread do its part, and wait for it as code of Python does that gets no lock."""
        self.goes_on.clear()
        self.is_computing.set()
        while not self.goes_on.is_set():
            time.sleep(0)  # gives the lock away, and wants it back

    def spend(self, what):
        """Do it again and again."""
        self.model.use()
        until = time.monotonic() + self.for_s
        while time.monotonic() < until:
            self.n += 1
            what()

    def crowded(self):
        os.sched_setaffinity(0, {self.one})
        for p in self.crowd:
            p.stdin.write(b"x")
            p.stdin.flush()
        until = time.thread_time() + self.for_s / 6
        while time.thread_time() < until:
            pass
        os.sched_setaffinity(0, self.cpus)

    def make(self, cause):
        """What a request suffers from before it is served; called on its thread."""
        if hasattr(self, "compiled"):
            self.n += cause == "compile"
            self.compiled(8 + (self.n if cause == "compile" else 0))
        if cause == "gc":
            gc.collect()
        elif cause == "code":
            until = time.thread_time() + self.for_s
            while time.thread_time() < until:
                pass
        elif cause in ("lock", "job"):
            self.ask()
        elif cause == "alloc":
            self.spend(self.model.allocate)
        elif cause == "load":
            self.spend(lambda: self.model.load(self.n))
        elif cause == "crowd":
            self.crowded()
        elif cause == "copy":
            self.spend(lambda: self.model.copy(self.data))


def compiled_function():
    """A function of a size: for each new one it is compiled again."""
    try:
        import torch
        import torch._dynamo
        torch._dynamo.config.recompile_limit = 1000
    except ImportError as error:
        sys.exit(f"--cause compile needs PyTorch 2: {error}")
    function = torch.compile(lambda x: (x * 2 + 1).relu().sum(), dynamic=False, backend="eager")
    function(torch.ones(8))
    return lambda size: function(torch.ones(size))


# ---- a thread for each request ----


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        ask = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        server = self.server
        server.trouble.make(ask["cause"])
        if ask["cause"] == "read":
            time.sleep(server.trouble.for_s)
        self.send_response(200)
        self.end_headers()
        with server.device:
            server.model.use()
            server.model.prefill(int(ask["prompt"]))
            for i in range(int(ask["tokens"])):
                server.model.decode()
                if lull:
                    lull.token()
                self.wfile.write(b"token %d\n" % i)


class Threads(http.server.ThreadingHTTPServer):
    request_queue_size = 64

    def __init__(self, model, trouble):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model, self.trouble = model, trouble
        self.device = threading.Lock()


def serve_by_threads(model, trouble, options):
    server = Threads(model, trouble)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run_client(server.server_port, options)
    server.shutdown()


# ---- asyncio, and an engine that batches ----


class Job:
    def __init__(self, prompt, n_tokens, loop):
        self.prompt, self.n_left, self.is_new = prompt, n_tokens, True
        self.loop, self.tokens = loop, asyncio.Queue()
        self.request = lull.current_request() if lull else None


class Engine(threading.Thread):
    """Decodes one token for all requests that are there, again and again."""

    def __init__(self, model):
        super().__init__(daemon=True)
        self.model, self.todo = model, queue.Queue()

    def run(self):
        self.model.use()
        batch = []
        while True:
            while not batch or (len(batch) < MAX_BATCH and not self.todo.empty()):
                batch.append(self.todo.get())
            self.step(batch)
            batch = [job for job in batch if job.n_left]

    def step(self, batch):
        for job in batch:
            if job.is_new:
                self.model.prefill(job.prompt)
                job.is_new = False
        self.model.decode()
        for job in batch:
            job.n_left -= 1
            if lull:
                lull.token(job.request)
            job.loop.call_soon_threadsafe(job.tokens.put_nowait, job.n_left)


async def answer(reader, writer, engine, trouble):
    head = await reader.readuntil(b"\r\n\r\n")
    ask = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(head.split()[1].decode()).query))
    if lull:
        with lull.request("GET /generate"):
            await generate(ask, writer, engine, trouble)
    else:
        await generate(ask, writer, engine, trouble)


async def generate(ask, writer, engine, trouble):
    trouble.make(ask["cause"])
    if ask["cause"] == "read":
        await asyncio.sleep(trouble.for_s)
    job = Job(int(ask["prompt"]), int(ask["tokens"]), asyncio.get_running_loop())
    engine.todo.put(job)
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
    is_last = False
    while not is_last:
        is_last = await job.tokens.get() == 0
        writer.write(b"token\n")
        await writer.drain()
    writer.close()  # which is how the client knows that this was all
    await writer.wait_closed()


async def serve_by_asyncio(model, trouble, options):
    engine = Engine(model)
    engine.start()
    server = await asyncio.start_server(lambda r, w: answer(r, w, engine, trouble), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.get_running_loop().run_in_executor(None, run_client, port, options)
    server.close()


# ---- the client ----


def run_client(port, options):
    """In another process: what it computes must not slow the server down."""
    if options.alone:
        print("port %d" % port, flush=True)
        sys.stdin.read()
        return
    env = {k: v for k, v in os.environ.items() if not k.startswith("LULL_")}
    env.pop("LD_PRELOAD", None)
    words = [sys.executable, os.path.realpath(__file__), "--client", str(port), "--requests", str(options.requests),
             "--cause", options.cause, "--rate", str(options.rate)]
    subprocess.run(words + (["--log", options.log] if options.log else []), env=env, check=True)


def ask_one(port, cause, taken):
    """A request on a connection that is open already, as clients that ask often have it."""
    prompt = PROMPT * 100 if cause == "prompt" else PROMPT
    with socket.create_connection(("127.0.0.1", port), timeout=600) as c:
        start = time.monotonic()
        c.sendall(f"GET /generate?prompt={prompt}&tokens={TOKENS}&cause={cause} HTTP/1.0\r\n\r\n".encode())
        while c.recv(4096):
            pass
        taken.append((start, time.monotonic() - start))


def at_once(n, port, taken):
    threads = [threading.Thread(target=ask_one, args=(port, "none", taken)) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def ask_in_turn(port, n, cause, taken):
    """One after the other."""
    for i in range(n):
        is_slow = i % EVERY == EVERY - 1
        if cause == "burst":
            at_once(BURST if i % BURST_EVERY == BURST_EVERY - 1 else 1, port, taken)
        else:
            ask_one(port, cause if is_slow else "none", taken)


def ask_at_random(port, n, cause, rate, taken):
    """At times that are the same in each run."""
    rng, at, threads = random.Random(1), time.monotonic() + 0.2, []
    for i in range(n):
        at += rng.expovariate(rate)
        is_slow = i % EVERY == EVERY - 1
        t = threading.Thread(target=ask_one, args=(port, cause if is_slow else "none", taken))
        time.sleep(max(0, at - time.monotonic()))
        t.start()
        threads.append(t)
    for t in threads:
        t.join()


def ask_many(options):
    taken = []
    if options.rate:
        ask_at_random(options.client, options.requests, options.cause, options.rate, taken)
    else:
        ask_in_turn(options.client, options.requests, options.cause, taken)
    taken = [latency for _, latency in sorted(taken)]
    if options.log:
        with open(options.log, "w", encoding="utf-8") as f:
            json.dump(taken, f)
    taken.sort()
    at = [1000 * taken[min(len(taken) - 1, int(p * len(taken)))] for p in (0.5, 0.9, 0.99)]
    print("client: %d requests, p50 %.2f ms, p90 %.2f ms, p99 %.2f ms" % (len(taken), *at), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--style", choices=("threads", "asyncio"), default="threads", help="how requests are served")
    parser.add_argument("--cause", choices=CAUSES, default="gc", help="what makes every eighth request slow")
    parser.add_argument("--requests", type=int, default=96, help="how many the client asks")
    parser.add_argument("--rate", type=float, default=0, metavar="HZ", help="requests a second; one after the other if not given")
    parser.add_argument("--scale", type=float, default=1, metavar="X", help="all that is served takes X times as long")
    parser.add_argument("--log", metavar="FILE", help="where the client writes its latencies, in seconds and in order, as JSON")
    parser.add_argument("--alone", action="store_true", help="no client: print the port and serve until the input ends")
    parser.add_argument("--client", type=int, metavar="PORT", help="be the client of a server that was started with --alone")
    options = parser.parse_args()
    if options.client:
        return ask_many(options)
    simulate(options.scale, options.cause)
    model = Model(options.scale)
    trouble = Trouble(options.cause, model, options.scale)
    if options.style == "threads":
        serve_by_threads(model, trouble, options)
    else:
        asyncio.run(serve_by_asyncio(model, trouble, options))


if __name__ == "__main__":
    main()
