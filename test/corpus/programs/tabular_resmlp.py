"""Residual MLP over many categorical columns of insurance claims."""
import argparse
import logging
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("claims")


def column_sizes(count):
    return [40 + (17 * k * k + 29 * k) % 460 for k in range(count)]


class ColumnEmbeddings(nn.Module):
    """One table per categorical column."""

    def __init__(self, sizes, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, dim) for n in sizes)

    def forward(self, codes):
        parts = []
        for j, table in enumerate(self.tables):
            parts.append(table(codes[:, j]))
        return torch.cat(parts, dim=1)


class JoinedEmbeddings(nn.Module):
    """All columns in one table; every column has its own range of rows."""

    def __init__(self, sizes, dim):
        super().__init__()
        self.table = nn.Embedding(sum(sizes), dim)
        starts = torch.tensor([0] + sizes[:-1]).cumsum(0)
        self.register_buffer("starts", starts)

    def forward(self, codes):
        return self.table(codes + self.starts).flatten(1)


class ResBlock(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class ResMLP(nn.Module):
    def __init__(self, sizes, numeric, dim=16, width=384, depth=3, joined=False):
        super().__init__()
        self.columns = (JoinedEmbeddings if joined else ColumnEmbeddings)(sizes, dim)
        self.enter = nn.Linear(len(sizes) * dim + numeric, width)
        self.blocks = nn.Sequential(*[ResBlock(width, 2 * width) for _ in range(depth)])
        self.leave = nn.Linear(width, 1)

    def forward(self, codes, numbers):
        x = torch.cat([self.columns(codes), numbers], dim=1)
        return self.leave(self.blocks(self.enter(x))).squeeze(1)


class Claims:
    """The table lies on the GPU: it is small."""

    def __init__(self, rows, sizes, numeric):
        self.codes = torch.stack([torch.randint(0, n, (rows,), device="cuda") for n in sizes], 1)
        self.numbers = torch.randn(rows, numeric, device="cuda")
        signal = (self.codes[:, :6] % 5).float().sum(1) + self.numbers[:, 0] * 2
        self.target = (signal - signal.mean()) / signal.std()

    def batches(self, size):
        while True:
            order = torch.randperm(self.target.shape[0], device="cuda")
            for lo in range(0, order.shape[0] - size + 1, size):
                rows = order[lo:lo + size]
                yield self.codes[rows], self.numbers[rows], self.target[rows]


def fit(model, claims, opt, sched, args):
    model.train()
    source = claims.batches(args.batch)
    mean_loss = torch.zeros((), device="cuda")
    count, t_begin = 0, 0.0
    while True:
        if count == args.warmup:
            torch.cuda.synchronize()
            t_begin = time.perf_counter()
        codes, numbers, target = next(source)
        loss = F.smooth_l1_loss(model(codes, numbers), target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        mean_loss.mul_(0.98).add_(loss.detach(), alpha=0.02)
        count += 1
        if count % 100 == 0:
            log.info("iteration %d loss %.4f", count, mean_loss.item())
        if count > args.warmup and time.perf_counter() - t_begin >= args.seconds:
            break
    torch.cuda.synchronize()
    return (time.perf_counter() - t_begin) / (count - args.warmup)


@torch.no_grad()
def rmse(model, claims, rows=4096):
    model.eval()
    guess = model(claims.codes[:rows], claims.numbers[:rows])
    return F.mse_loss(guess, claims.target[:rows]).sqrt().item()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--warmup", type=int, default=25)
    ap.add_argument("--seconds", type=float, default=2.2)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    torch.manual_seed(5)
    sizes = column_sizes(160)
    claims = Claims(60000, sizes, 24)
    model = ResMLP(sizes, 24, joined=args.fixed).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3, fused=True)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9995)
    seconds = fit(model, claims, opt, sched, args)
    log.info("rmse %.4f", rmse(model, claims))
    print(f"round_ms {seconds * 1e3:.4f}")


if __name__ == "__main__":
    main()
