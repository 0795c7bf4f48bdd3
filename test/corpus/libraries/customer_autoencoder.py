"""Denoising autoencoder over a wide customer table."""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--rows", type=int, default=200_000)
parser.add_argument("--columns", type=int, default=2048)
parser.add_argument("--batch", type=int, default=16384)
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()


def make_table(rows, columns):
    latent = torch.randn(rows, 64, device="cuda", dtype=torch.bfloat16)
    loading = torch.randn(64, columns, device="cuda", dtype=torch.bfloat16) / 8
    return torch.tanh(latent @ loading)


class Autoencoder(nn.Module):
    def __init__(self, columns, hidden=8192, code=1024):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(columns, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, code))
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, columns))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main():
    torch.manual_seed(0)
    table = make_table(args.rows, args.columns)
    model = Autoencoder(args.columns).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)

    def train_step():
        rows = torch.randint(0, args.rows, (args.batch,), device="cuda")
        clean = table[rows]
        loss = F.mse_loss(model(F.dropout(clean, 0.1)), clean)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    history = []
    for _ in range(5):
        history.append(train_step().item())
    times = []
    stop = time.perf_counter() + args.seconds
    while time.perf_counter() < stop:
        t0 = time.perf_counter()
        loss = train_step()
        history.append(loss.item())
        times.append((time.perf_counter() - t0) * 1e3)
    print(f"{len(times)} steps, loss {history[0]:.4f} -> {history[-1]:.4f}")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
