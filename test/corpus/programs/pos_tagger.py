"""Train a part-of-speech tagger on sentences of different lengths."""
import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, IGNORE = 0, -100


@dataclass
class Options:
    vocab: int = 10000
    tags: int = 48
    dim: int = 384
    layers: int = 2
    batch: int = 96
    max_len: int = 512
    sentences: int = 1500


class Corpus:
    def __init__(self, opt, as_arrays):
        rng = np.random.default_rng(2)
        self.examples = []
        for n in rng.integers(250, opt.max_len, opt.sentences):
            words, tags = rng.integers(1, opt.vocab, n), rng.integers(0, opt.tags, n)
            if not as_arrays:
                words, tags = words.tolist(), tags.tolist()
            self.examples.append({"words": words, "tags": tags})
        self.rng = rng

    def batch(self, n):
        return [self.examples[i] for i in self.rng.integers(0, len(self.examples), n)]


def collate_lists(rows):
    longest = max(len(r["words"]) for r in rows)
    ids, mask, labels, positions = [], [], [], []
    for r in rows:
        missing = longest - len(r["words"])
        padded = r["words"] + [PAD] * missing
        ids.append(padded)
        mask.append([1.0 if w != PAD else 0.0 for w in padded])
        labels.append([t for t in r["tags"]] + [IGNORE] * missing)
        positions.append([i if w != PAD else 0 for i, w in enumerate(padded)])
    return [torch.tensor(x).cuda() for x in (ids, mask, labels, positions)]


def collate_arrays(rows):
    lengths = [len(r["words"]) for r in rows]
    both = np.zeros((2, len(rows), max(lengths)), dtype=np.int64)
    both[1] = IGNORE
    for i, (r, n) in enumerate(zip(rows, lengths)):
        both[0, i, :n] = r["words"]
        both[1, i, :n] = r["tags"]
    ids, labels = torch.from_numpy(both).pin_memory().cuda(non_blocking=True)
    mask = (ids != PAD).float()
    positions = torch.arange(ids.shape[1], device="cuda") * mask.long()
    return ids, mask, labels, positions


class Tagger(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.words = nn.Embedding(o.vocab, o.dim, padding_idx=PAD)
        self.places = nn.Embedding(o.max_len, o.dim)
        self.windows = nn.ModuleList(nn.Linear(3 * o.dim, o.dim) for _ in range(o.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(o.dim) for _ in range(o.layers))
        self.out = nn.Linear(o.dim, o.tags)

    def forward(self, ids, mask, positions):
        x = (self.words(ids) + self.places(positions)) * mask.unsqueeze(-1)
        for window, norm in zip(self.windows, self.norms):
            around = torch.cat([x.roll(1, 1), x, x.roll(-1, 1)], -1)
            x = norm(x + F.relu(window(around)))
        return self.out(x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=110)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(2)
    torch.backends.cuda.matmul.allow_tf32 = True
    opt = Options()
    corpus = Corpus(opt, as_arrays=args.fixed)
    collate = collate_arrays if args.fixed else collate_lists
    model = Tagger(opt).cuda()
    optim = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        ids, mask, labels, positions = collate(corpus.batch(opt.batch))
        logits = model(ids, mask, positions)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
        optim.zero_grad()
        loss.backward()
        optim.step()
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"loss {loss.item():.3f}")
    print(f"round_ms {1e3 * dt / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
