#!/usr/bin/env python3
"""Programs of PyTorch that make steps when they are told to, for twins.py.

    twin_steps.py training|server|server2|digits|chat

Says "ready PID". Answers each line "WARM N SLOW_US" of the standard input with the nanoseconds of N steps, after WARM that
do not count; each sleeps for SLOW_US. training: attach_train.py's model. server: a request goes through a queue to a thread
that has the model, and its numbers back to the host; in server2 the first thread calls CUDA, too. digits, chat: programs of test/corpus, the worst that launches limit.
"""
import importlib.util
import os
import queue
import sys
import threading
import time

import torch
import torch.nn as nn

HERE = os.path.dirname(os.path.abspath(__file__))


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def corpus(name):
    return load(os.path.join(HERE, "..", "..", "test", "corpus", "programs", name + ".py"))


def training():
    net, opt = load(os.path.join(HERE, "attach_train.py")).model()

    def step():
        x = torch.special.erfinv(torch.rand(256, 512, device="cuda") * 0.9)
        nn.functional.mse_loss(net(x), x).backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
    return step


def server():
    torch.manual_seed(1)
    net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512))]).cuda().eval()
    requests, answers = queue.Queue(), queue.Queue()

    def serve():
        with torch.no_grad():
            while True:
                answers.put(net(requests.get().cuda()).cpu())

    threading.Thread(target=serve, daemon=True).start()
    numbers = torch.rand(32, 512)

    def step():
        requests.put(numbers)
        answers.get()
    return step


def digits():
    torch.manual_seed(4)
    session = corpus("digits_convnet").Session(32, False)
    x, y = torch.randn(32, 1, 28, 28, device="cuda"), torch.randint(0, 10, (32,), device="cuda")
    return lambda: session.step(x, y)


def chat():
    module = corpus("chat_greedy")
    torch.set_grad_enabled(False)
    torch.manual_seed(11)
    with torch.device("cuda"):
        model = module.Decoder().to(torch.bfloat16).eval()
    generator = module.Generator(model, use_graph=False)
    count = [0]

    def step():
        if count[0] % 400 == 0:
            generator.token.fill_(17)
            generator.pos.zero_()
        count[0] += 1
        generator.next()
    return step


def place_threads():
    """Threads of Python and the backward pass on the twins' CPU, all others elsewhere."""
    if "TWIN_CPU" not in os.environ:
        return
    ours = {t.native_id for t in threading.enumerate()}
    cpu, others = int(os.environ["TWIN_CPU"]), [int(c) for c in os.environ["TWIN_OTHERS"].split(",")]
    for task in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/comm" % task, encoding="utf-8") as f:
            is_loop = int(task) in ours or f.read().startswith("pt_autograd")
        os.sched_setaffinity(int(task), [cpu] if is_loop else others)


def main():
    programs = {"training": training, "server": server, "server2": server, "digits": digits, "chat": chat}
    step = programs[sys.argv[1]]()
    # A server has waited for its device when it answers.
    synchronize = torch.cuda.synchronize if sys.argv[1] != "server" else bool
    for _ in range(30):
        step()
    synchronize()
    place_threads()
    print("ready", os.getpid(), flush=True)
    for line in sys.stdin:
        warm, n, slow_us = map(int, line.split())
        for i in range(warm + n):
            if i == warm:
                synchronize()
                begin = time.perf_counter_ns()
            if slow_us:
                time.sleep(slow_us / 1e6)
            step()
        synchronize()
        print(time.perf_counter_ns() - begin, flush=True)


main()
