"""Rerank retrieved passages for a question; passage vectors lie in memory-mapped shard files."""
import argparse
import os
import shutil
import statistics
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn

SHARDS, ROWS, DIM, PER_SHARD, TOP = 4, 65536, 512, 3000, 10


def build_index(folder):
    rng = np.random.default_rng(77)
    table = rng.standard_normal((ROWS, DIM), dtype=np.float32)
    for s in range(SHARDS):
        table[:, s] += 1.0
        table.tofile(os.path.join(folder, f"vectors.{s}.f32"))


class MappedPassages:
    """Opens the shards for each question and takes out the candidates' rows."""

    def __init__(self, folder):
        self.paths = [os.path.join(folder, f"vectors.{s}.f32") for s in range(SHARDS)]

    def gather(self, candidates):
        parts = []
        for path, rows in zip(self.paths, candidates):
            table = np.memmap(path, dtype=np.float32, mode="r", shape=(ROWS, DIM))
            parts.append(np.asarray(table[rows]))
        return torch.from_numpy(np.concatenate(parts)).cuda()


class ResidentPassages:
    """All shards on the GPU, read once."""

    def __init__(self, folder):
        self.table = torch.empty(SHARDS, ROWS, DIM, device="cuda")
        for s in range(SHARDS):
            shard = np.fromfile(os.path.join(folder, f"vectors.{s}.f32"), dtype=np.float32)
            self.table[s].copy_(torch.from_numpy(shard).view(ROWS, DIM))
        self.table = self.table.view(-1, DIM)
        self.base = np.arange(SHARDS)[:, None] * ROWS

    def gather(self, candidates):
        rows = torch.from_numpy((candidates + self.base).ravel())
        return self.table.index_select(0, rows.cuda())


class Reranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.question = nn.Linear(DIM, DIM)
        self.mix = nn.Sequential(nn.Linear(2 * DIM, 1024), nn.GELU(), nn.Linear(1024, 256), nn.GELU(),
                                 nn.Linear(256, 1))

    def forward(self, question, passages):
        q = self.question(question).expand_as(passages)
        return self.mix(torch.cat([passages, q * passages], 1)).squeeze(1)


class Answerer:
    def __init__(self, passages):
        self.passages = passages
        self.model = Reranker().cuda().eval()

    @torch.inference_mode()
    def ask(self, question, candidates):
        with torch.profiler.record_function("candidates"):
            vectors = self.passages.gather(candidates)
        with torch.profiler.record_function("rerank"):
            best = self.model(question.cuda(), vectors).topk(TOP)
        return best.indices.tolist()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seconds", type=float, default=2.2)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(9)
    torch.set_float32_matmul_precision("high")
    folder = tempfile.mkdtemp(prefix="passages_")
    try:
        build_index(folder)
        answerer = Answerer((ResidentPassages if args.fixed else MappedPassages)(folder))
        rng = np.random.default_rng(5)
        questions = torch.randn(32, DIM)
        lists = [np.stack([np.sort(rng.choice(ROWS, PER_SHARD, replace=False)) for _ in range(SHARDS)])
                 for _ in range(32)]
        for i in range(6):
            answerer.ask(questions[i], lists[i])
        took, began, hits = [], time.perf_counter(), 0
        while time.perf_counter() - began < args.seconds:
            t = time.perf_counter()
            i = len(took) % 32
            hits += len(answerer.ask(questions[i], lists[i]))
            took.append(time.perf_counter() - t)
        print(f"questions {len(took)} passages {hits} p95 {sorted(took)[int(len(took) * 0.95)] * 1e3:.2f} ms")
        print(f"round_ms {statistics.median(took) * 1e3:.4f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
