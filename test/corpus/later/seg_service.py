"""In-process segmentation service: callers submit images, worker threads form
small batches, run the network and answer with deflated label / confidence maps."""
import argparse
import queue
import threading
import time
import zlib
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import torch
from torchvision.models.segmentation import fcn_resnet50


@dataclass
class Request:
    image: np.ndarray
    arrived: float
    future: Future = field(default_factory=Future)


@dataclass
class Answer:
    label_map: bytes
    confidence_map: bytes
    coverage: dict


class SegmentationService:
    CLASSES = 21

    def __init__(self, workers, max_batch, fixed):
        self.device = torch.device("cuda")
        self.max_batch = max_batch
        self.fixed = fixed
        self.requests = queue.Queue(maxsize=512)
        self.batch_log = queue.Queue()
        self.model_lock = threading.Lock()
        net = fcn_resnet50(weights=None, weights_backbone=None, num_classes=self.CLASSES)
        self.net = net.to(self.device, torch.bfloat16).to(memory_format=torch.channels_last).eval()
        self.mean = torch.tensor([123.7, 116.3, 103.5], device=self.device).view(1, 3, 1, 1)
        self.std = torch.tensor([58.4, 57.1, 57.4], device=self.device).view(1, 3, 1, 1)
        self.threads = [threading.Thread(target=self._work, name=f"seg-{i}", daemon=True)
                        for i in range(workers)]

    def start(self):
        for t in self.threads:
            t.start()

    def stop(self):
        for _ in self.threads:
            self.requests.put(None)
        for t in self.threads:
            t.join()

    def submit(self, image):
        req = Request(image, time.perf_counter())
        self.requests.put(req)
        return req.future

    def _next_batch(self):
        first = self.requests.get()
        if first is None:
            return None
        batch = [first]
        deadline = time.perf_counter() + 0.003
        while len(batch) < self.max_batch:
            try:
                item = self.requests.get(timeout=max(0.0, deadline - time.perf_counter()))
            except queue.Empty:
                break
            if item is None:
                self.requests.put(None)
                break
            batch.append(item)
        return batch

    @torch.inference_mode()
    def infer(self, images):
        x = torch.from_numpy(images).to(self.device).permute(0, 3, 1, 2)
        x = ((x - self.mean) / self.std).to(torch.bfloat16)
        logits = self.net(x)["out"]
        conf, label = torch.softmax(logits.float(), dim=1).max(dim=1)
        packed = torch.stack([label.to(torch.uint8), (conf * 255).to(torch.uint8)])
        return packed.cpu().numpy()

    def encode(self, label, conf):
        label_map = zlib.compress(label.tobytes(), 6)
        confidence_map = zlib.compress(conf.tobytes(), 6)
        counts = np.bincount(label.ravel(), minlength=self.CLASSES)
        coverage = {c: int(n) for c, n in enumerate(counts) if n}
        return Answer(label_map, confidence_map, coverage)

    def process(self, images):
        if self.fixed:
            with self.model_lock:
                labels, confs = self.infer(images)
            return [self.encode(a, b) for a, b in zip(labels, confs)]
        with self.model_lock:
            labels, confs = self.infer(images)
            return [self.encode(a, b) for a, b in zip(labels, confs)]

    def _work(self):
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            answers = self.process(np.stack([r.image for r in batch]))
            now = time.perf_counter()
            for r, a in zip(batch, answers):
                r.future.set_result(a)
            self.batch_log.put((len(batch), now - batch[0].arrived))


class LoadGenerator(threading.Thread):
    """Closed loop: never more than `outstanding` requests in flight."""

    def __init__(self, service, outstanding, size):
        super().__init__(daemon=True)
        rng = np.random.default_rng(0)
        self.service = service
        self.images = []
        for _ in range(24):
            coarse = rng.integers(0, 256, (size // 16, size // 16, 3), dtype=np.uint8)
            img = coarse.repeat(16, axis=0).repeat(16, axis=1)
            self.images.append(img // 2 + rng.integers(0, 96, img.shape, dtype=np.uint8))
        self.slots = threading.Semaphore(outstanding)
        self.halt = threading.Event()

    def run(self):
        i = 0
        while not self.halt.is_set():
            self.slots.acquire()
            fut = self.service.submit(self.images[i % len(self.images)])
            fut.add_done_callback(lambda _: self.slots.release())
            i += 1


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batches", type=int, default=160)
    ap.add_argument("--workers", type=int, default=8)
    ap.add_argument("--max-batch", type=int, default=4)
    ap.add_argument("--size", type=int, default=512)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    service = SegmentationService(args.workers, args.max_batch, args.fixed)
    load = LoadGenerator(service, args.workers * args.max_batch * 2, args.size)
    service.infer(np.stack(load.images[:args.max_batch]))
    service.start()
    load.start()

    warm = args.batches // 4
    latencies, images = [], 0
    for n in range(args.batches):
        if n == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        size, latency = service.batch_log.get()
        latencies.append(latency)
        images += size
        if (n + 1) % 40 == 0:
            print(f"{n + 1} batches, {images} images, p50 latency {np.median(latencies[-40:]) * 1e3:.0f} ms",
                  flush=True)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - t0
    load.halt.set()
    load.slots.release()
    load.join()
    service.stop()
    print(f"round_ms {elapsed * 1000 / (args.batches - warm):.3f}")


if __name__ == "__main__":
    main()
