"""Train a scoring model on feature blocks from a feature store."""
import argparse
import multiprocessing as mp
import queue
import socket
import struct
import threading
import time

import numpy as np
import torch
import torch.nn as nn

ROWS, DIM = 4096, 1024
BLOCK = ROWS * DIM * 2


def handle(conn, blocks):
    with conn:
        while True:
            head = conn.recv(4)
            if len(head) < 4:
                return
            (k,) = struct.unpack("<I", head)
            time.sleep(0.02)
            conn.sendall(blocks[k % len(blocks)])


def serve(port_out):
    rng = np.random.default_rng(5)
    blocks = [rng.standard_normal((ROWS, DIM), dtype=np.float32).astype(np.float16).tobytes()
              for _ in range(4)]
    srv = socket.create_server(("127.0.0.1", 0))
    port_out.send(srv.getsockname()[1])
    while True:
        conn, _ = srv.accept()
        threading.Thread(target=handle, args=(conn, blocks), daemon=True).start()


class Store:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port))

    def get(self, k):
        self.sock.sendall(struct.pack("<I", k))
        buf = bytearray(BLOCK)
        view, got = memoryview(buf), 0
        while got < BLOCK:
            n = self.sock.recv_into(view[got:])
            if n == 0:
                raise ConnectionError("store closed")
            got += n
        return torch.frombuffer(buf, dtype=torch.float16).view(ROWS, DIM)


def direct(port, steps):
    store = Store(port)
    for k in range(steps):
        yield store.get(k)


def read_ahead(port, steps, lanes=6):
    qs = [queue.Queue(maxsize=2) for _ in range(lanes)]

    def lane(i):
        store = Store(port)
        for k in range(i, steps, lanes):
            qs[i].put(store.get(k))

    for i in range(lanes):
        threading.Thread(target=lane, args=(i,), daemon=True).start()
    for k in range(steps):
        yield qs[k % lanes].get()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=80)
    args = ap.parse_args()

    ctx = mp.get_context("fork")
    here, there = ctx.Pipe()
    server = ctx.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()

    torch.manual_seed(0)
    dev = torch.device("cuda")
    model = nn.Sequential(nn.Linear(DIM, 8192), nn.GELU(), nn.Linear(8192, 8192), nn.GELU(),
                          nn.Linear(8192, 1)).to(dev, torch.bfloat16)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    blocks = read_ahead(port, args.steps) if args.fixed else direct(port, args.steps)

    first = args.steps // 4
    t0 = 0.0
    for step, block in enumerate(blocks):
        if step == first:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        x = block.to(dev).to(torch.bfloat16)
        y = x[:, :1] * 0.5
        loss = (model(x) - y).float().square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
    print(f"loss {loss.item():.4f}")
    print(f"round_ms {ms:.4f}")
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
