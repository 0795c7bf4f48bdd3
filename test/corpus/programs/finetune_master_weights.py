"""Fine-tune a transformer in bf16 with fp32 master weights."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class MasterAdam:
    """AdamW over fp32 copies of the model's parameters."""

    def __init__(self, params, lr, device):
        self.params = [p for p in params if p.requires_grad]
        self.master = [p.detach().to(device=device, dtype=torch.float32, copy=True) for p in self.params]
        extra = {"fused": True} if device == "cuda" else {}
        self.inner = torch.optim.AdamW(self.master, lr=lr, weight_decay=0.01, **extra)

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.params, self.master):
            m.grad = p.grad.to(device=m.device).float()
        self.inner.step()
        for p, m in zip(self.params, self.master):
            p.copy_(m)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.a(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, d)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.b(x))))


class LM(nn.Module):
    def __init__(self, vocab=4096, dim=1024, layers=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*(Block(dim, 16) for _ in range(layers)))
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, x):
        return self.head(self.blocks(self.emb(x)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=24)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(14)
    with torch.device("cuda"):
        model = LM().to(torch.bfloat16)
    opt = MasterAdam(model.parameters(), lr=2e-5, device="cuda" if args.fixed else "cpu")
    corpus = torch.randint(0, 4096, (64, 513), device="cuda")
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        rows = corpus[(step * 16) % 64:(step * 16) % 64 + 16]
        logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"round_ms {1e3 * elapsed / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
