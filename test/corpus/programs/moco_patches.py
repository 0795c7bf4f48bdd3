"""Contrastive pretraining on image patches with a queue of negatives."""
import argparse
import copy
import time
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class NegativeQueue:
    def __init__(self, size, dim):
        start = F.normalize(torch.randn(size, dim), dim=1)
        self.items = deque(start.unbind(0), maxlen=size)

    def negatives(self):
        return torch.stack(list(self.items)).cuda()

    def push(self, keys):
        self.items.extend(keys.cpu().unbind(0))


class RingQueue:
    def __init__(self, size, dim):
        self.bank = F.normalize(torch.randn(size, dim), dim=1).cuda()
        self.at = 0

    def negatives(self):
        return self.bank.clone()

    def push(self, keys):
        n = len(keys)
        self.bank[self.at:self.at + n] = keys
        self.at = (self.at + n) % len(self.bank)


def encoder(dim):
    def block(i, o, s):
        return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    return nn.Sequential(block(3, 64, 1), block(64, 128, 2), block(128, 256, 2), block(256, 256, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, dim))


@torch.no_grad()
def follow(slow, fast, m=0.99):
    torch._foreach_lerp_(list(slow.parameters()), list(fast.parameters()), 1 - m)


def main(args):
    torch.manual_seed(9)
    dim, temperature = 128, 0.2
    fast = encoder(dim).cuda()
    slow = copy.deepcopy(fast).requires_grad_(False)
    queue = (RingQueue if args.fixed else NegativeQueue)(args.queue, dim)
    opt = torch.optim.SGD(fast.parameters(), lr=0.03, momentum=0.9)
    patches = torch.rand(4, args.batch, 3, 64, 64, device="cuda")
    target = torch.zeros(args.batch, dtype=torch.long, device="cuda")
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        x = patches[step % 4]
        a = x + 0.1 * torch.randn_like(x)
        b = x.flip(-1) + 0.1 * torch.randn_like(x)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            q = F.normalize(fast(a).float(), dim=1)
            with torch.no_grad():
                k = F.normalize(slow(b).float(), dim=1)
            pos = (q * k).sum(1, keepdim=True)
            neg = q @ queue.negatives().t()
        logits = torch.cat([pos, neg.float()], dim=1) / temperature
        loss = F.cross_entropy(logits, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        follow(slow, fast)
        queue.push(k)
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"nce {loss.item():.4f}")
    print(f"round_ms {(t1 - t0) * 1e3 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=45)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--queue", type=int, default=65536)
    p.add_argument("--fixed", action="store_true")
    main(p.parse_args())
