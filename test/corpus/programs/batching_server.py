"""Batch image requests from several clients for one model."""
import argparse
import queue
import threading
import time

import torch
import torch.nn as nn


class Request:
    def __init__(self, image):
        self.image = image
        self.result = None
        self.done = threading.Event()


class BatchServer:
    def __init__(self, model, max_batch, blocking):
        self.model = model
        self.max_batch = max_batch
        self.blocking = blocking
        self.inbox = queue.Queue()
        self.running = True
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def submit(self, req):
        self.inbox.put(req)

    def take(self):
        if self.blocking:
            first = self.inbox.get()
            batch = [first] if first is not None else []
        else:
            if self.inbox.empty():
                time.sleep(0.01)
            batch = []
        while len(batch) < self.max_batch:
            try:
                req = self.inbox.get_nowait()
            except queue.Empty:
                break
            if req is not None:
                batch.append(req)
        return batch

    @torch.inference_mode()
    def loop(self):
        while self.running:
            batch = self.take()
            if not batch:
                continue
            x = torch.stack([r.image for r in batch]).cuda()
            labels = self.model(x.half()).argmax(1).tolist()
            for r, label in zip(batch, labels):
                r.result = label
                r.done.set()

    def wait(self, req):
        if self.blocking:
            req.done.wait()
        else:
            while req.result is None:
                time.sleep(0.01)
        return req.result

    def close(self):
        self.running = False
        self.inbox.put(None)
        self.thread.join()


def build_model():
    layers, c = [], 3
    for width in (64, 128, 256, 512):
        layers += [nn.Conv2d(c, width, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def client(server, images, n, stamps):
    for i in range(n):
        t0 = time.perf_counter()
        req = Request(images[i % len(images)])
        server.submit(req)
        server.wait(req)
        stamps.append((t0, time.perf_counter() - t0))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400, help="requests in all")
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = build_model().cuda().half().eval()
    with torch.inference_mode():
        for n in range(1, 5):
            model(torch.zeros(n, 3, 224, 224, device="cuda").half()).argmax(1).tolist()
    images = [torch.rand(3, 224, 224) for _ in range(8)]
    server = BatchServer(model, max_batch=16, blocking=args.fixed)
    stamps = []
    clients = [threading.Thread(target=client, args=(server, images, args.steps // 4, stamps)) for _ in range(4)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    server.close()
    stamps.sort()
    kept = [d for _, d in stamps[len(stamps) // 4:]]
    print(f"{len(stamps)} requests")
    print(f"round_ms {1e3 * sum(kept) / len(kept):.3f}")


if __name__ == "__main__":
    main()
