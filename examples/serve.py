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
    burst     it comes together with seven others

The device is a GPU, or the simulated one (LD_LIBRARY_PATH=build/sim). Its kernels compute nothing:
they take a time. Status 77: there is no driver.
"""
import argparse
import asyncio
import ctypes
import gc
import http.client
import http.server
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.parse

try:
    import lull
except ImportError:  # without lull profile: nothing is recorded
    lull = None

CAUSES = ("none", "gc", "prompt", "read", "code", "lock", "burst")
EVERY = 8  # requests: one of so many is slow
TOKENS, PROMPT = 4, 32
CHUNK = 16  # tokens of a prompt that one kernel takes
MAX_BATCH = 8

# Both kernels take so long, on a GPU by its clock, on the simulated device by this variable.
PREFILL_NS, DECODE_NS = 200_000, 400_000
os.environ.setdefault("LULL_SIM_COST", f"prefill:{PREFILL_NS},decode:{DECODE_NS}")
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


class Model:
    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            sys.exit(77)
        self.context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.do("cuInit", 0)
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.use()
        self.do("cuModuleLoadData", ctypes.byref(module), PTX.encode())
        self.kernels = {}
        for name, ns in (("prefill", PREFILL_NS), ("decode", DECODE_NS)):
            kernel, ns = ctypes.c_void_p(), ctypes.c_uint64(ns)
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


# ---- what makes a request slow ----


class Trouble:
    def __init__(self, cause):
        self.objects = [[i] for i in range(400_000)] if cause == "gc" else []
        self.is_computing = threading.Event()
        self.goes_on = threading.Event()
        if cause == "lock":
            sys.setswitchinterval(0.02)
            threading.Thread(target=self.compute, daemon=True).start()
        gc.disable()  # it runs when we say so

    def compute(self):
        while True:
            self.is_computing.wait()
            until = time.monotonic() + 0.1
            while time.monotonic() < until:
                sum(range(1000))
            self.is_computing.clear()
            self.goes_on.set()

    def make(self, cause):
        """What a request suffers from before it is served; called on its thread."""
        if cause == "gc":
            gc.collect()
        elif cause == "code":
            until = time.thread_time() + 0.08
            while time.thread_time() < until:
                pass
        elif cause == "lock":
            self.goes_on.clear()
            self.is_computing.set()
            while not self.goes_on.is_set():
                time.sleep(0)  # gives the lock away, and wants it back


# ---- a thread for each request ----


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        ask = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        server = self.server
        server.trouble.make(ask["cause"])
        if ask["cause"] == "read":
            time.sleep(0.1)
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
            if lull:
                with lull.serve(*(job.request for job in batch)):
                    self.step(batch)
            else:
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
    writer.close()


async def generate(ask, writer, engine, trouble):
    trouble.make(ask["cause"])
    if ask["cause"] == "read":
        await asyncio.sleep(0.1)
    job = Job(int(ask["prompt"]), int(ask["tokens"]), asyncio.get_running_loop())
    engine.todo.put(job)
    writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
    is_last = False
    while not is_last:
        is_last = await job.tokens.get() == 0
        writer.write(b"token\n")
        await writer.drain()


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
    env = {k: v for k, v in os.environ.items() if not k.startswith("LULL_")}
    env.pop("LD_PRELOAD", None)
    words = [sys.executable, os.path.realpath(__file__), "--client", str(port), "--requests", str(options.requests), "--cause", options.cause]
    subprocess.run(words, env=env, check=True)


def ask_one(port, cause, taken):
    prompt = PROMPT * 100 if cause == "prompt" else PROMPT
    start = time.monotonic()
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("GET", f"/generate?prompt={prompt}&tokens={TOKENS}&cause={cause}")
    c.getresponse().read()
    c.close()
    taken.append(time.monotonic() - start)


def ask_many(port, n, cause):
    taken = []
    for i in range(n):
        is_slow = i % EVERY == EVERY - 1
        if is_slow and cause == "burst":
            threads = [threading.Thread(target=ask_one, args=(port, "none", taken)) for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        else:
            ask_one(port, cause if is_slow else "none", taken)
    taken.sort()
    at = [1000 * taken[min(len(taken) - 1, int(p * len(taken)))] for p in (0.5, 0.9, 0.99)]
    print("client: %d requests, p50 %.2f ms, p90 %.2f ms, p99 %.2f ms" % (len(taken), *at), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--style", choices=("threads", "asyncio"), default="threads", help="how requests are served")
    parser.add_argument("--cause", choices=CAUSES, default="gc", help="what makes every eighth request slow")
    parser.add_argument("--requests", type=int, default=96, help="how many the client asks")
    parser.add_argument("--client", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return ask_many(options.client, options.requests, options.cause)
    model, trouble = Model(), Trouble(options.cause)
    if options.style == "threads":
        serve_by_threads(model, trouble, options)
    else:
        asyncio.run(serve_by_asyncio(model, trouble, options))


if __name__ == "__main__":
    main()
