"""
Click-through-rate model (DCN-v2) trained straight from raw tab separated log lines:
  label \t 13 integer counters \t 26 categorical strings
"""
import argparse
import math
import queue
import threading
import time
import zlib

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

N_INT, N_CAT = 13, 26


def synthetic_log(n_lines, seed=0):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n_lines) < 0.25).astype(int)
    counters = rng.geometric(0.05, (n_lines, N_INT)) + 3 * labels[:, None]
    missing = rng.random((n_lines, N_INT)) < 0.1
    cats = (rng.pareto(1.1, (n_lines, N_CAT)) * 20).astype(np.int64) * 2654435761 % (1 << 32)
    lines = []
    for y, row, miss, cat in zip(labels.tolist(), counters.tolist(), missing.tolist(), cats.tolist()):
        ints = ["" if m else str(v) for v, m in zip(row, miss)]
        lines.append("\t".join([str(y), *ints, *[f"{c:08x}" for c in cat]]))
    return lines


def parse_line(line, buckets):
    fields = line.rstrip("\n").split("\t")
    dense = [math.log1p(float(v)) if v else 0.0 for v in fields[1:1 + N_INT]]
    sparse = []
    for i, token in enumerate(fields[1 + N_INT:]):
        sparse.append(i * buckets + zlib.crc32(f"{i}={token}".encode()) % buckets)
    return float(fields[0]), dense, sparse


def build_batch(lines, buckets):
    labels, dense, sparse = zip(*(parse_line(line, buckets) for line in lines))
    return (torch.tensor(labels), torch.tensor(dense), torch.tensor(sparse))


class LogStream(IterableDataset):
    """Endless stream of ready batches; with workers each takes every n-th batch."""

    def __init__(self, lines, batch_size, buckets):
        self.lines, self.batch_size, self.buckets = lines, batch_size, buckets

    def __iter__(self):
        info = get_worker_info()
        index, stride = (info.id, info.num_workers) if info else (0, 1)
        n = len(self.lines) // self.batch_size
        while True:
            at = index % n * self.batch_size
            yield build_batch(self.lines[at:at + self.batch_size], self.buckets)
            index += stride


class ThreadedLoader:
    """Keeps a few batches ready in the background."""

    def __init__(self, stream, depth=4):
        self.stream = stream
        self.ready = queue.Queue(maxsize=depth)
        self.closed = False
        self.thread = threading.Thread(target=self._fill, daemon=True)
        self.thread.start()

    def _fill(self):
        for batch in self.stream:
            self.ready.put([t.pin_memory() for t in batch])
            if self.closed:
                return

    def __iter__(self):
        while True:
            yield self.ready.get()

    def close(self):
        self.closed = True
        while self.thread.is_alive():
            try:
                self.ready.get(timeout=0.05)
            except queue.Empty:
                pass


class DCNv2(nn.Module):
    def __init__(self, buckets, dim=16, cross_layers=3, rank=128, hidden=(1024, 512, 256)):
        super().__init__()
        self.embed = nn.Embedding(N_CAT * buckets, dim)
        nn.init.uniform_(self.embed.weight, -0.05, 0.05)
        width = N_INT + N_CAT * dim
        self.norm = nn.BatchNorm1d(N_INT)
        self.down = nn.ModuleList(nn.Linear(width, rank, bias=False) for _ in range(cross_layers))
        self.up = nn.ModuleList(nn.Linear(rank, width) for _ in range(cross_layers))
        layers, last = [], width
        for h in hidden:
            layers += [nn.Linear(last, h), nn.BatchNorm1d(h), nn.ReLU()]
            last = h
        self.deep = nn.Sequential(*layers)
        self.head = nn.Linear(width + last, 1)

    def forward(self, dense, sparse):
        x0 = torch.cat([self.norm(dense), self.embed(sparse).flatten(1)], dim=1)
        x = x0
        for down, up in zip(self.down, self.up):
            x = x0 * up(down(x)) + x
        return self.head(torch.cat([x, self.deep(x0)], dim=1)).squeeze(1)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--batch-size", type=int, default=2048)
    ap.add_argument("--lines", type=int, default=40960)
    ap.add_argument("--buckets", type=int, default=50_000)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    lines = synthetic_log(args.lines)
    device = torch.device("cuda")
    model = DCNv2(args.buckets).to(device)
    tables = torch.optim.Adagrad([model.embed.weight], lr=0.02)
    dense_opt = torch.optim.Adam([p for n, p in model.named_parameters() if not n.startswith("embed")], lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()

    stream = LogStream(lines, args.batch_size, args.buckets)
    if args.fixed:
        loader = DataLoader(stream, batch_size=None, num_workers=8, prefetch_factor=4, pin_memory=True)
    else:
        loader = ThreadedLoader(stream)
    batches = iter(loader)

    first = args.steps // 4
    window = torch.zeros((), device=device)
    for step in range(args.steps):
        if step == first:
            torch.cuda.synchronize()
            tic = time.perf_counter()
        label, dense, sparse = (t.to(device, non_blocking=True) for t in next(batches))
        loss = criterion(model(dense, sparse), label)
        tables.zero_grad(set_to_none=True)
        dense_opt.zero_grad(set_to_none=True)
        loss.backward()
        tables.step()
        dense_opt.step()
        window += loss.detach()
        if (step + 1) % 40 == 0:
            print(f"{step + 1} batches, logloss {window.item() / 40:.4f}", flush=True)
            window.zero_()
    torch.cuda.synchronize()
    toc = time.perf_counter()
    if not args.fixed:
        loader.close()
    print(f"round_ms {(toc - tic) * 1000.0 / (args.steps - first):.3f}")


if __name__ == "__main__":
    main()
