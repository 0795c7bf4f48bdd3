"""Score candidate items for users with a two-part ranking model."""
import argparse
import time

import torch
import torch.nn as nn

FIELDS, ROWS, DIM = 26, 40000, 64


class Tables(nn.Module):
    """One table for all fields; ids are shifted into the rows of their field."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(FIELDS * ROWS, DIM).uniform_(-0.05, 0.05), requires_grad=False)
        self.register_buffer("shift", torch.arange(FIELDS) * ROWS)

    def forward(self, ids):
        return nn.functional.embedding(ids + self.shift, self.weight)


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(FIELDS * DIM + 13, 2048), nn.ReLU(),
            nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, emb, dense):
        return self.mlp(torch.cat([emb.flatten(1), dense], 1)).squeeze(1)


class Scorer:
    def __init__(self, table_device):
        self.table_device = torch.device(table_device)
        self.tables = Tables().to(self.table_device)
        self.ranker = Ranker().cuda().bfloat16().eval()

    @torch.inference_mode()
    def score(self, ids, dense):
        emb = self.tables(ids.to(self.table_device))
        emb = emb.to("cuda").bfloat16()
        return self.ranker(emb, dense.to("cuda").bfloat16()).topk(100).indices


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--batch", type=int, default=16384)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(6)
    scorer = Scorer("cuda" if args.fixed else "cpu")
    ids = torch.randint(0, ROWS, (4, args.batch, FIELDS))
    dense = torch.rand(4, args.batch, 13)
    warm = args.steps // 4
    top = []
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        top.append(scorer.score(ids[i % 4], dense[i % 4]))
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print("first", int(top[0][0]))
    print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
