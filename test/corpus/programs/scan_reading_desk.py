"""Lesion maps for a reading room: a TCP service with few readers who open a scan now and then."""
import argparse
import queue
import random
import socket
import socketserver
import struct
import threading
import time

import numpy as np
import torch
import torch.nn as nn

SIZE, READERS, MEAN_GAP, WARM, STEADY = 512, 3, 0.18, 0.8, 2.6


def stage(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1), nn.GroupNorm(8, cout), nn.SiLU())


class LesionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(stage(1, 32), stage(32, 64, 2), stage(64, 128, 2), stage(128, 128))
        self.up = nn.Sequential(nn.Upsample(scale_factor=4, mode="bilinear"), nn.Conv2d(128, 1, 1))

    def forward(self, x):
        return torch.sigmoid(self.up(self.down(x)))


class Reader:
    """The single GPU worker; blocks until a scan comes."""

    def __init__(self):
        self.net = LesionNet().cuda().eval()
        self.todo = queue.Queue()
        self.stage = torch.empty(1, 1, SIZE, SIZE, pin_memory=True)
        self.result = torch.empty(1, 1, SIZE, SIZE, pin_memory=True)
        threading.Thread(target=self.work, daemon=True).start()

    @torch.inference_mode()
    def work(self):
        while True:
            scan, answer = self.todo.get()
            self.stage.copy_(torch.from_numpy(scan).view_as(self.stage))
            self.result.copy_(self.net(self.stage.cuda(non_blocking=True)), non_blocking=True)
            torch.cuda.synchronize()
            answer.put(self.result.numpy().tobytes())


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        answer = queue.Queue()
        while True:
            head = self.rfile.read(4)
            if len(head) < 4:
                return
            raw = self.rfile.read(struct.unpack("<I", head)[0])
            self.server.reader.todo.put((np.frombuffer(raw, dtype=np.float32).copy(), answer))
            self.wfile.write(answer.get())


class Desk(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Person(threading.Thread):
    """Opens a scan, looks at the map, opens the next one when ready."""

    def __init__(self, address, seed, closing):
        super().__init__()
        self.address, self.rng, self.closing, self.served = address, random.Random(seed), closing, []
        self.scan = np.random.default_rng(seed).random((SIZE, SIZE), dtype=np.float32).tobytes()

    def run(self):
        with socket.create_connection(self.address) as s:
            incoming = s.makefile("rb")
            while not self.closing.wait(self.rng.expovariate(1 / MEAN_GAP)):
                s.sendall(struct.pack("<I", len(self.scan)) + self.scan)
                incoming.read(len(self.scan))
                self.served.append(time.perf_counter())
            incoming.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true", help="accepted; there is nothing to repair")
    ap.parse_args()
    torch.manual_seed(6)
    desk = Desk(("127.0.0.1", 0), Handler)
    desk.reader = Reader()
    threading.Thread(target=desk.serve_forever, daemon=True).start()
    closing = threading.Event()
    people = [Person(desk.server_address, 40 + i, closing) for i in range(READERS)]
    for p in people:
        p.start()
    closing.wait(WARM)
    t0 = time.perf_counter()
    closing.wait(STEADY)
    t1 = time.perf_counter()
    closing.set()
    for p in people:
        p.join()
    desk.shutdown()
    count = sum(t0 <= t <= t1 for p in people for t in p.served)
    print(f"scans read {count}")
    print(f"round_ms {(t1 - t0) * 1e3 / max(count, 1):.4f}")


if __name__ == "__main__":
    main()
