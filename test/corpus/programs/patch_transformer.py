"""Fine-tune a patch transformer on synthetic image patches of varying count."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.proj(a)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class PatchModel(nn.Module):
    def __init__(self, dim=768, depth=4, heads=12, classes=50):
        super().__init__()
        self.embed = nn.Linear(3 * 16 * 16, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def fit(model, steps, batch, trim):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    gen = torch.Generator(device="cuda").manual_seed(9)
    warm = steps // 4
    counts = (256, 240, 224, 248)
    for step in range(steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        n = counts[step % 4]
        x = torch.randn(batch, n, 768, device="cuda", generator=gen).bfloat16()
        y = torch.randint(0, 50, (batch,), device="cuda", generator=gen)
        loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        last = loss.detach()
        del x, y, loss
        if trim:
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    return (time.perf_counter() - t0) / (steps - warm), last.item()


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    net = PatchModel().cuda().bfloat16()
    per_step, loss = fit(net, args.steps, args.batch, trim=not args.fixed)
    print(f"last loss {loss:.4f}")
    print(f"round_ms {per_step * 1000:.3f}")
