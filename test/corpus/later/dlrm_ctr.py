#!/usr/bin/env python3
"""Click-through-rate model (DLRM family): sparse features -> one stacked embedding
table, dense features -> bottom MLP, pairwise interactions, top MLP."""
import argparse
import sys
import time

import torch
import torch.nn as nn

NUM_DENSE = 13
CARDINALITIES = [400_000, 300_000, 250_000, 200_000, 150_000, 120_000, 100_000, 80_000,
                 60_000, 50_000, 40_000, 30_000, 20_000, 10_000, 8_000, 5_000,
                 3_000, 2_000, 1_000, 500, 300, 100, 60, 30, 12, 6]


def mlp(sizes, last_activation=True):
    layers = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers.append(nn.Linear(a, b))
        if last_activation or i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class StackedEmbedding(nn.Module):
    """All categorical tables in one weight; feature f starts at row offsets[f]."""

    def __init__(self, cardinalities, dim):
        super().__init__()
        starts = torch.tensor([0] + cardinalities[:-1]).cumsum(0)
        self.register_buffer("offsets", starts)
        self.table = nn.Embedding(sum(cardinalities), dim, sparse=True,
                                  _weight=torch.empty(sum(cardinalities), dim).uniform_(-0.01, 0.01))

    def forward(self, cat):
        return self.table(cat + self.offsets)


class DenseTower(nn.Module):
    def __init__(self, num_cat, dim):
        super().__init__()
        self.bottom = mlp([NUM_DENSE, 512, 256, dim])
        n = num_cat + 1
        self.register_buffer("tri", torch.tril_indices(n, n, offset=-1))
        self.top = mlp([dim + n * (n - 1) // 2, 1024, 1024, 512, 256, 1], last_activation=False)

    def forward(self, dense, emb):
        bot = self.bottom(dense)
        feats = torch.cat([bot.unsqueeze(1), emb], dim=1)
        inter = torch.bmm(feats, feats.transpose(1, 2))
        flat = inter[:, self.tri[0], self.tri[1]]
        return self.top(torch.cat([bot, flat], dim=1)).squeeze(1)


class DLRM(nn.Module):
    def __init__(self, dim, tower_device, table_device):
        super().__init__()
        self.tower_device, self.table_device = tower_device, table_device
        self.embeddings = StackedEmbedding(CARDINALITIES, dim).to(table_device)
        self.tower = DenseTower(len(CARDINALITIES), dim).to(tower_device)

    def forward(self, dense, cat):
        emb = self.embeddings(cat.to(self.table_device, non_blocking=True))
        return self.tower(dense.to(self.tower_device, non_blocking=True), emb.to(self.tower_device))


def zipf_batches(count, batch, seed=11):
    g = torch.Generator().manual_seed(seed)
    card = torch.tensor(CARDINALITIES, dtype=torch.float32)
    out = []
    for _ in range(count):
        u = torch.rand(batch, len(CARDINALITIES), generator=g)
        cat = (card.pow(u) - 1).long().clamp_(min=0)
        cat = torch.minimum(cat, card.long() - 1)
        dense = torch.randn(batch, NUM_DENSE, generator=g)
        score = 0.8 * dense[:, 0] + 0.3 * ((cat[:, 3] % 7) - 3).float() - 1.0
        click = (torch.rand(batch, generator=g) < torch.sigmoid(score)).float()
        out.append((dense.pin_memory(), cat.pin_memory(), click.pin_memory()))
    return out


def parse(argv):
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=260)
    ap.add_argument("--batch-size", type=int, default=2048)
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--lr", type=float, default=0.05)
    ap.add_argument("--fixed", action="store_true")
    return ap.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    gpu = torch.device("cuda")
    table_device = gpu if args.fixed else torch.device("cpu")

    model = DLRM(args.dim, gpu, table_device)
    rows = model.embeddings.table.num_embeddings
    print(f"{rows} embedding rows x {args.dim} ({rows * args.dim * 4 / 2**20:.0f} MiB) on {table_device}", flush=True)
    opt_table = torch.optim.SGD(model.embeddings.parameters(), lr=args.lr * 10)
    opt_tower = torch.optim.Adagrad(model.tower.parameters(), lr=args.lr / 10)
    criterion = nn.BCEWithLogitsLoss()
    batches = zipf_batches(64, args.batch_size)

    warm = args.steps // 4
    loss_avg = torch.zeros((), device=gpu)
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            tic = time.perf_counter()
        dense, cat, click = batches[step % len(batches)]
        logit = model(dense, cat)
        loss = criterion(logit, click.to(gpu, non_blocking=True))
        opt_table.zero_grad(set_to_none=True)
        opt_tower.zero_grad(set_to_none=True)
        loss.backward()
        opt_table.step()
        opt_tower.step()
        loss_avg.lerp_(loss.detach(), 0.02)
        if (step + 1) % 50 == 0:
            print(f"iter {step + 1:5d} | bce {loss_avg.item():.4f}", flush=True)
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - tic) * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    sys.exit(main())
