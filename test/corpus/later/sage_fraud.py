import argparse
import random
import time
from collections import namedtuple

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import SAGEConv

Graph = namedtuple("Graph", "rowptr col x y")


def account_graph(n, avg_degree, feats, max_degree=64, seed=0):
    """Transfers between accounts: heavy-tailed degrees, fraud label correlated with the features."""
    rng = np.random.default_rng(seed)
    degree = np.clip(rng.zipf(1.7, n) + avg_degree // 2, 1, max_degree)
    rowptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(degree, out=rowptr[1:])
    y = (rng.random(n) < 0.2).astype(np.int64)
    col = (n * rng.random(rowptr[-1]) ** 1.5).astype(np.int64)
    x = rng.standard_normal((n, feats), dtype=np.float32)
    x[:, :8] += 0.6 * y[:, None]
    return Graph(rowptr, col, x, y)


class NeighborSampler:
    """Uniform sampling without replacement; returns node ids and one edge list per hop."""

    def __init__(self, graph, fanouts, device):
        flat = graph.col.tolist()
        ends = graph.rowptr.tolist()
        self.adj = [flat[a:b] for a, b in zip(ends[:-1], ends[1:])]
        self.fanouts = fanouts
        self.device = device

    def __call__(self, seeds):
        nodes = seeds.tolist()
        local = {v: i for i, v in enumerate(nodes)}
        sizes, hops = [len(nodes)], []
        for fanout in self.fanouts:
            src, dst = [], []
            for i in range(len(nodes)):
                neighbors = self.adj[nodes[i]]
                if len(neighbors) > fanout:
                    neighbors = random.sample(neighbors, fanout)
                for u in neighbors:
                    if u not in local:
                        local[u] = len(nodes)
                        nodes.append(u)
                    src.append(local[u])
                    dst.append(i)
            hops.append(torch.tensor([src, dst], device=self.device))
            sizes.append(len(nodes))
        return torch.tensor(nodes, device=self.device), sizes, hops


class DeviceNeighborSampler:
    def __init__(self, graph, fanouts, device):
        self.rowptr = torch.from_numpy(graph.rowptr).to(device)
        self.col = torch.from_numpy(graph.col).to(device)
        self.max_degree = int(np.diff(graph.rowptr).max())
        self.local = torch.full((len(graph.y),), -1, device=device)
        self.slots = torch.arange(self.max_degree, device=device)
        self.fanouts = fanouts
        self.device = device

    def __call__(self, seeds):
        nodes = seeds.to(self.device)
        self.local[nodes] = torch.arange(len(nodes), device=self.device)
        sizes, hops = [len(nodes)], []
        for fanout in self.fanouts:
            start = self.rowptr[nodes]
            degree = self.rowptr[nodes + 1] - start
            key = torch.rand(len(nodes), self.max_degree, device=self.device)
            key = key.masked_fill(self.slots >= degree.unsqueeze(1), -1.0)
            value, slot = key.topk(min(fanout, self.max_degree), dim=1)
            dst, pos = (value >= 0).nonzero(as_tuple=True)
            picked = self.col[start[dst] + slot[dst, pos]]
            found = picked.unique()
            found = found[self.local[found] < 0]
            self.local[found] = torch.arange(len(nodes), len(nodes) + len(found), device=self.device)
            nodes = torch.cat([nodes, found])
            hops.append(torch.stack([self.local[picked], dst]))
            sizes.append(len(nodes))
        self.local[nodes] = -1
        return nodes, sizes, hops


class FraudSAGE(torch.nn.Module):
    def __init__(self, feats, hidden):
        super().__init__()
        self.inner = SAGEConv(feats, hidden)
        self.outer = SAGEConv(hidden, hidden)
        self.head = torch.nn.Linear(hidden, 2)

    def forward(self, x, sizes, hops):
        seeds, middle, _ = sizes
        h = F.relu(self.inner((x, x[:middle]), hops[1]))
        h = F.dropout(h, 0.3, self.training)
        h = F.relu(self.outer((h, h[:seeds]), hops[0]))
        return self.head(h)


parser = argparse.ArgumentParser(description="GraphSAGE fraud detection, mini-batch training")
parser.add_argument("--steps", type=int, default=160)
parser.add_argument("--accounts", type=int, default=200_000)
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--fanout", type=int, nargs=2, default=[10, 5])
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--fixed", action="store_true")


def train(args):
    torch.manual_seed(0)
    random.seed(0)
    device = torch.device("cuda")
    graph = account_graph(args.accounts, 16, 128)
    features = torch.from_numpy(graph.x).to(device)
    labels = torch.from_numpy(graph.y).to(device)
    sampler = (DeviceNeighborSampler if args.fixed else NeighborSampler)(graph, args.fanout, device)
    model = FraudSAGE(features.shape[1], args.hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    weight = torch.tensor([1.0, 4.0], device=device)
    order = torch.randperm(args.accounts)

    warm = args.steps // 4
    begin = None
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        at = step * args.batch % (args.accounts - args.batch)
        nodes, sizes, hops = sampler(order[at:at + args.batch])
        logits = model(features[nodes], sizes, hops)
        loss = F.cross_entropy(logits, labels[nodes[:sizes[0]]], weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:4d} | loss {loss.item():.4f} | {sizes[-1]} nodes, "
                  f"{sum(h.shape[1] for h in hops)} edges", flush=True)
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin) / (args.steps - warm)


if __name__ == "__main__":
    print(f"round_ms {train(parser.parse_args()):.3f}")
