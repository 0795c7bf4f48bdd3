"""Train an MLP-mixer on synthetic image patches."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class MixerLayer(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.t1, self.t2 = nn.Linear(tokens, tokens * 2), nn.Linear(tokens * 2, tokens)
        self.c1, self.c2 = nn.Linear(dim, dim * 4), nn.Linear(dim * 4, dim)

    def forward(self, x):
        y = self.n1(x).transpose(1, 2)
        x = x + self.t2(F.gelu(self.t1(y))).transpose(1, 2)
        return x + self.c2(F.gelu(self.c1(self.n2(x))))


class Mixer(nn.Module):
    def __init__(self, tokens=196, dim=1024, depth=4, classes=100):
        super().__init__()
        self.embed = nn.Linear(768, dim)
        self.layers = nn.Sequential(*[MixerLayer(tokens, dim) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.layers(self.embed(x)).mean(1))


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=50)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=1e-4)
    ap.add_argument("--fixed", action="store_true")
    return ap.parse_args()


def main():
    args = parse()
    torch.manual_seed(21)
    if args.fixed:
        torch.set_float32_matmul_precision("high")
    model = Mixer().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    x = torch.randn(4, args.batch, 196, 768, device="cuda")
    y = torch.randint(0, 100, (4, args.batch), device="cuda")
    history = torch.zeros(args.steps, device="cuda")
    warm = args.steps // 4
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = F.cross_entropy(model(x[i % 4]), y[i % 4])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        history[i] = loss.detach()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print("loss first/last", history[0].item(), history[-1].item())
    print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
