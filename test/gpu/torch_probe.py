#!/usr/bin/env python3
"""Work in PyTorch whose truth is known; see run.py.

    profiler        ten training steps inside torch.profiler; prints {kernel: count}
    steps N         training steps
    memory          allocates; prints what torch has reserved at most
    behind [kill]   much work at once, and torch.cuda.profiler.stop() in the middle of it, or SIGKILL after 0.9 s
    workers HOW     a DataLoader with workers by fork or spawn; _exit: leaves by os._exit(6)
    turns N FLOOR   N recordings by lull.start() and stop(), steps all the time; prints how often CUPTI was away then
    ranks           two NCCL ranks on the one GPU, five all-reduces
    rank N PORT     one of them
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time


def steps(n):
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256)).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 256, device="cuda")
    for _ in range(n):
        model(x).square().mean().backward()
        opt.step()
        opt.zero_grad()
    torch.cuda.synchronize()


def profiler():
    import torch
    from torch.profiler import ProfilerActivity, profile
    steps(3)
    torch.cuda.profiler.start()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        steps(10)
    torch.cuda.profiler.stop()
    counts = {}
    for e in prof.events():
        if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset")):
            counts[e.name] = counts.get(e.name, 0) + 1
    # Ranges on the device that carry the names of operators are no kernels.
    print(json.dumps({k: v for k, v in counts.items() if not k.startswith(("aten::", "Optimizer", "ProfilerStep"))}))
    steps(3)


def memory():
    import torch
    keep = [torch.empty(n * 1000003, dtype=torch.uint8, device="cuda") for n in (1, 7, 50, 300)]
    most = torch.cuda.memory_reserved()
    del keep
    torch.cuda.empty_cache()
    again = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    print("reserved_bytes=%d" % max(most, torch.cuda.memory_reserved()), again.numel())


def behind(how=""):
    """600 kernels of some 3 ms at once; the recording is stopped after 0.3 s, and waits for less than what is left."""
    import torch
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for _ in range(600):
        torch.cuda._sleep(5000000)
    time.sleep(0.3)
    if how == "kill":
        time.sleep(0.6)
        os.kill(os.getpid(), signal.SIGKILL)
    torch.cuda.profiler.stop()
    time.sleep(0.5)
    torch.cuda.synchronize()


class Numbers:
    def __len__(self):
        return 32

    def __getitem__(self, i):
        import torch
        return torch.full((16,), float(i))


def workers(how):
    import torch
    steps(2)
    if how == "_exit":
        sys.stdout.flush()
        os._exit(6)
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context=how)
    print(sum(float(batch.cuda().sum()) for batch in loader))


def turns(n, floor):
    import ctypes

    import lull
    floor = ctypes.CDLL(floor)
    away = 0
    for _ in range(int(n)):
        for _ in range(300):
            lull.start()
            if lull.is_recording():
                break
            time.sleep(0.01)
        else:
            sys.exit("no recording")
        steps(20)
        lull.stop()
        for _ in range(10):
            steps(5)
            lull.is_recording()
        away += floor.floor_is_alone()
    print("turns=%s away=%d" % (n, away))


def rank(number, port):
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=number, WORLD_SIZE="2")
    dist.init_process_group("nccl")
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(5):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def ranks():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    both = [subprocess.Popen([sys.executable, __file__, "rank", str(i), port],
                             env={**os.environ, "NCCL_HOSTID": "host%d" % i, "NCCL_SOCKET_IFNAME": "lo",
                                  "NCCL_IB_DISABLE": "1"}) for i in range(2)]
    sys.exit(max(p.wait() for p in both))


if __name__ == "__main__":
    dict(steps=lambda n: steps(int(n)), profiler=profiler, memory=memory, behind=behind, workers=workers, turns=turns, ranks=ranks,
         rank=rank)[sys.argv[1]](*sys.argv[2:])
