#!/usr/bin/env python3
"""A small model that trains slowly, for the tutorial (doc/tutorial.md).

A network with two layers of attention learns to tell ten kinds of signals apart. As it is, the
training thread prepares each batch itself, asks for the loss in every step, and keeps what it does
not need. Each option repairs one of these:

    train.py                  the original loop
    train.py --workers 4      other processes prepare the batches
    train.py --log-every 20   look at the loss now and then
    train.py --forget         keep numbers, not tensors

    train.py --trace FILE     write a trace of PyTorch's own profiler, of three steps
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, WIDTH, KINDS, BATCH = 128, 256, 10, 64


class Signals(torch.utils.data.Dataset):
    """Sums of waves with noise; one item takes about a millisecond, as decoding a picture does."""

    def __len__(self):
        return 1 << 16

    def __getitem__(self, i):
        kind = i % KINDS
        t = torch.arange(LENGTH * WIDTH, dtype=torch.float32)
        signal = torch.randn(LENGTH * WIDTH, generator=torch.Generator().manual_seed(i))
        for harmonic in range(1, 4):
            signal += torch.sin(t * (kind + 1) * harmonic / 50) / harmonic
        return signal.view(LENGTH, WIDTH), kind


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n = x.shape[0]
        q, k, v = self.qkv(self.norm1(x)).view(n, LENGTH, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
        x = x + self.out(attention(q, k, v).transpose(1, 2).reshape(n, LENGTH, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v)
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, KINDS)

    def forward(self, x):
        features = self.blocks(x)
        return features, self.head(features.mean(1))


def train(options, device, on_step=lambda: None):
    torch.manual_seed(0)
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    more = {"pin_memory": device == "cuda", "prefetch_factor": 4} if options.workers else {}
    batches = iter(torch.utils.data.DataLoader(Signals(), BATCH, num_workers=options.workers, **more))
    kept, loss = [], None
    for step in range(options.steps):
        signals, kinds = next(batches)
        signals, kinds = signals.to(device, non_blocking=True), kinds.to(device, non_blocking=True)
        features, scores = model(signals)
        loss = F.cross_entropy(scores, kinds)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        kept.append(features.shape if options.forget else features)
        if step % options.log_every == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        on_step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=1)
    parser.add_argument("--forget", action="store_true")
    parser.add_argument("--trace", metavar="FILE")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if not options.trace:
        train(options, device)
        return
    profile = torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=1, warmup=2, active=3), record_shapes=True, profile_memory=True,
        with_stack=True, on_trace_ready=lambda p: p.export_chrome_trace(options.trace))
    options.steps = 6
    with profile:
        train(options, device, profile.step)


if __name__ == "__main__":
    main()
