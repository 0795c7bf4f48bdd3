"""Run a routed feed-forward layer over batches of token states."""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Router(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.proj = nn.Linear(dim, experts, bias=False)

    def forward(self, x):
        return self.proj(x).softmax(-1).max(-1)


class MaskedExperts(nn.Module):
    def __init__(self, dim, hidden, experts):
        super().__init__()
        self.router = Router(dim, experts)
        self.up = nn.Parameter(torch.randn(experts, dim, hidden) / math.sqrt(dim))
        self.down = nn.Parameter(torch.randn(experts, hidden, dim) / math.sqrt(hidden))

    def forward(self, x):
        gate, expert = self.router(x)
        out = torch.zeros_like(x)
        for e in range(len(self.up)):
            idx = (expert == e).nonzero().squeeze(1)
            if idx.numel() == 0:
                continue
            y = F.silu(x[idx] @ self.up[e]) @ self.down[e]
            out[idx] = y * gate[idx].unsqueeze(1)
        return out


class CapacityExperts(MaskedExperts):
    capacity_factor = 1.25

    def forward(self, x):
        tokens, dim = x.shape
        experts = len(self.up)
        room = int(self.capacity_factor * tokens / experts)
        gate, expert = self.router(x)
        member = expert.unsqueeze(1) == torch.arange(experts, device=x.device)
        place = member.int().cumsum(0).gather(1, expert.unsqueeze(1)).squeeze(1) - 1
        slot = torch.where(place < room, expert * room + place, experts * room)
        table = x.new_zeros(experts * room + 1, dim)
        table.index_copy_(0, slot, x)
        y = torch.bmm(F.silu(torch.bmm(table[:-1].view(experts, room, dim), self.up)), self.down)
        table[:-1] = y.view(-1, dim)
        table[-1].zero_()
        return table.index_select(0, slot) * gate.unsqueeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--tokens", type=int, default=4096)
    ap.add_argument("--experts", type=int, default=8)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(1)
    kind = CapacityExperts if args.fixed else MaskedExperts
    with torch.device("cuda"):
        layer = kind(1024, 2048, args.experts).to(torch.bfloat16).eval()
        norm = nn.LayerNorm(1024).to(torch.bfloat16)
        states = torch.randn(4, args.tokens, 1024, dtype=torch.bfloat16)
        total = torch.zeros(1024)
    warm = args.steps // 4
    with torch.inference_mode():
        for i in range(args.steps):
            if i == warm:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            x = states[i % 4]
            x = x + layer(norm(x))
            total += x.float().mean(0)
        torch.cuda.synchronize()
        t1 = time.perf_counter()
    print("mean state", round(total.abs().mean().item() / args.steps, 5))
    print(f"round_ms {(t1 - t0) / (args.steps - warm) * 1e3:.3f}")


if __name__ == "__main__":
    main()
