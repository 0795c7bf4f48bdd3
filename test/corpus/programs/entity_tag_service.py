"""Entity tagging service: asyncio front, micro-batched tagger on the GPU, span extraction afterwards."""
import argparse
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TYPES = ["PER", "ORG", "LOC", "MISC", "DATE", "MONEY"]
LABELS = 1 + 2 * len(TYPES)  # O, then B-x / I-x pairs
CONFIG = SimpleNamespace(vocab=20000, dim=256, length=256, max_batch=48, clients=144, post_threads=8,
                         ticks=7)  # half-second reports; the first two are warm-up


class ConvTagger(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.convs = nn.ModuleList(nn.Conv1d(cfg.dim, cfg.dim, 5, padding=2) for _ in range(4))
        self.out = nn.Linear(cfg.dim, LABELS)

    def forward(self, tokens):
        x = self.emb(tokens).transpose(1, 2)
        for conv in self.convs:
            x = x + F.gelu(conv(x))
        return torch.softmax(self.out(x.transpose(1, 2)), -1).max(-1)


def read_spans(labels, conf, offsets):
    spans, start, kind, total = [], -1, -1, 0.0
    for i, lab in enumerate(labels):
        k = (lab - 1) // 2 if lab else -1
        if start >= 0 and (k != kind or lab % 2 == 1):
            spans.append((TYPES[kind], offsets[start], offsets[i], total / (i - start)))
            start = -1
        if k >= 0:
            start, kind, total = (start, kind, total) if start >= 0 else (i, k, 0.0)
            total += conf[i]
    if start >= 0:
        spans.append((TYPES[kind], offsets[start], offsets[-1], total / (len(labels) - start)))
    return spans


def batch_spans(labels, conf):
    """Same spans for the whole batch with tensor operations: rows, type, first, last, mean confidence."""
    kind = torch.where(labels > 0, (labels - 1) // 2, torch.full_like(labels, -1))
    begin = labels % 2
    prev, follow = F.pad(kind[:, :-1], (1, 0), value=-1), F.pad(kind[:, 1:], (0, 1), value=-1)
    next_begin = F.pad(begin[:, 1:], (0, 1), value=1)
    first = ((kind >= 0) & ((begin == 1) | (kind != prev))).nonzero()
    last = ((kind >= 0) & ((next_begin == 1) | (kind != follow))).nonzero()
    run = conf.cumsum(1)
    (row, s), e = first.T, last[:, 1]
    mean = (run[row, e] - run[row, s] + conf[row, s]) / (e - s + 1)
    return torch.stack([row.double(), kind[row, s].double(), s.double(), e.double(), mean.double()], 1)


class TagService:
    def __init__(self, cfg, fixed):
        self.cfg, self.fixed, self.served = cfg, fixed, 0
        self.model, self.queue = ConvTagger(cfg).cuda().eval(), asyncio.Queue()
        self.gpu = ThreadPoolExecutor(1)
        self.post = ThreadPoolExecutor(cfg.post_threads)
        self.jobs = set()

    async def tag(self, doc):
        reply = asyncio.get_running_loop().create_future()
        await self.queue.put((doc, reply))
        return await reply

    @torch.inference_mode()
    def forward(self, docs):
        tokens = torch.from_numpy(np.stack([d["tokens"] for d in docs])).cuda()
        conf, labels = self.model(tokens)
        if not self.fixed:
            return labels.cpu().numpy(), conf.cpu().numpy()
        table = batch_spans(labels, conf).cpu().numpy()
        return np.split(table, np.searchsorted(table[:, 0], np.arange(1, len(docs))))

    async def answer(self, doc, reply, labels, conf):
        spans = await asyncio.get_running_loop().run_in_executor(
            self.post, lambda: read_spans(labels.tolist(), conf.tolist(), doc["offsets"]))
        if not reply.done():
            reply.set_result(spans)
        self.served += 1

    async def serve(self):
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.queue.get()]
            while len(batch) < self.cfg.max_batch and not self.queue.empty():
                batch.append(self.queue.get_nowait())
            result = await loop.run_in_executor(self.gpu, self.forward, [doc for doc, _ in batch])
            if self.fixed:
                for (_, reply), spans in zip(batch, result):
                    if not reply.done():
                        reply.set_result(spans)
                self.served += len(batch)
                continue
            for (doc, reply), labels, conf in zip(batch, *result):
                job = asyncio.create_task(self.answer(doc, reply, labels, conf))
                self.jobs.add(job)
                job.add_done_callback(self.jobs.discard)


async def client(service, docs, seed):
    while True:
        seed = (seed * 7 + 1) % len(docs)
        await service.tag(docs[seed])


async def run(cfg, fixed):
    rng = np.random.default_rng(3)
    docs = [{"tokens": rng.integers(0, cfg.vocab, cfg.length), "offsets": list(range(0, 5 * cfg.length + 1, 5))}
            for _ in range(400)]
    service = TagService(cfg, fixed)
    tasks = [asyncio.create_task(service.serve())]
    tasks += [asyncio.create_task(client(service, docs, i)) for i in range(cfg.clients)]
    for tick in range(cfg.ticks):
        if tick == 2:
            t0, base = time.perf_counter(), service.served
        await asyncio.sleep(0.5)
        print("served", service.served)
    per_batch = (time.perf_counter() - t0) / max(service.served - base, 1) * cfg.max_batch
    list(map(asyncio.Task.cancel, tasks))
    await asyncio.gather(*tasks, return_exceptions=True)
    service.post.shutdown(wait=True)
    service.gpu.shutdown(wait=True)
    print(f"round_ms {per_batch * 1e3:.4f}", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    torch.manual_seed(1)
    asyncio.run(run(CONFIG, ap.parse_args().fixed))
