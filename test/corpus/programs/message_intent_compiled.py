"""Score the intent of support messages, batched by arrival, with a compiled encoder."""
import argparse
import logging
import statistics
import time
from dataclasses import dataclass

import torch
import torch._dynamo
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("intent")


@dataclass
class IntentConfig:
    vocab: int = 24000
    dim: int = 384
    heads: int = 6
    layers: int = 3
    intents: int = 64
    batch: int = 32
    longest: int = 256
    bucket: int = 128
    warm: int = 3
    seconds: float = 2.4


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.norm_a, self.norm_b = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.merge = nn.Linear(c.dim, 3 * c.dim), nn.Linear(c.dim, c.dim)
        self.wide, self.back = nn.Linear(c.dim, 4 * c.dim), nn.Linear(4 * c.dim, c.dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.merge(y.transpose(1, 2).reshape(b, t, d))
        return x + self.back(F.gelu(self.wide(self.norm_b(x))))


class IntentEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c.vocab, c.dim, padding_idx=0)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.head = nn.Linear(c.dim, c.intents)

    def forward(self, tokens):
        real = tokens != 0
        x, mask = self.emb(tokens), real[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask)
        weight = real.unsqueeze(-1).to(x.dtype)
        return self.head((x * weight).sum(1) / weight.sum(1))


class Inbox:
    """Messages in order of arrival; a batch is as long as its longest message."""

    def __init__(self, c, bucketed):
        self.c, self.bucketed = c, bucketed
        self.rng = torch.Generator().manual_seed(15)
        self.order = torch.randperm(c.longest - 20, generator=self.rng).add_(20).tolist()

    def batch(self, i):
        longest = self.order[i % len(self.order)]
        width = longest
        if self.bucketed:
            width = -(-longest // self.c.bucket) * self.c.bucket
        tokens = torch.zeros(self.c.batch, width, dtype=torch.long)
        lengths = torch.randint(8, longest + 1, (self.c.batch,), generator=self.rng)
        lengths[0] = longest
        words = torch.randint(1, self.c.vocab, (self.c.batch, longest), generator=self.rng)
        tokens[:, :longest] = words * (torch.arange(longest) < lengths[:, None])
        return tokens


class Scorer:
    def __init__(self, c):
        self.net = IntentEncoder(c).cuda().eval()
        # aot_eager: building kernels for a new release takes too long on the front nodes
        self.run = torch.compile(self.net, backend="aot_eager", dynamic=False)

    @torch.no_grad()
    def __call__(self, tokens):
        return self.run(tokens.cuda()).argmax(-1).tolist()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 256  # messages come in many lengths
    c = IntentConfig()
    inbox, scorer = Inbox(c, args.fixed), Scorer(c)
    if args.fixed:
        for width in range(c.bucket, c.longest + 1, c.bucket):
            scorer(torch.ones(c.batch, width, dtype=torch.long))
    for i in range(c.warm):
        scorer(inbox.batch(i))
    times, began, i = [], time.perf_counter(), c.warm
    while time.perf_counter() - began < c.seconds:
        t = time.perf_counter()
        found = scorer(inbox.batch(i))
        times.append(time.perf_counter() - t)
        i += 1
        if i % 20 == 0:
            log.info("batch %d first intent %d", i, found[0])
    print(f"round_ms {statistics.mean(times) * 1e3:.4f}")


if __name__ == "__main__":
    main()
