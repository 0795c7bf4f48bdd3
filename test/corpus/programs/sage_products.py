"""Train GraphSAGE on a product co-purchase graph with sampled neighbourhoods."""
import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, DEGREE, FEATS, CLASSES = 60000, 14, 256, 40
BATCH, FANOUT = 512, (10, 10)


class Graph:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        deg = rng.integers(4, 2 * DEGREE, NODES)
        self.indptr = np.concatenate([[0], np.cumsum(deg)])
        self.indices = rng.integers(0, NODES, self.indptr[-1])

    def adjacency(self):
        flat, ptr = self.indices.tolist(), self.indptr.tolist()
        return {n: flat[ptr[n]:ptr[n + 1]] for n in range(NODES)}


class DictSampler:
    def __init__(self, graph, seed):
        self.adj = graph.adjacency()
        self.rng = random.Random(seed)

    def sample(self):
        seeds = [self.rng.randrange(NODES) for _ in range(BATCH)]
        layers = [seeds]
        for k in FANOUT:
            nxt = []
            for node in layers[-1]:
                neigh = self.adj[node]
                for _ in range(k):
                    nxt.append(neigh[self.rng.randrange(len(neigh))])
            layers.append(nxt)
        return [torch.tensor(layer).cuda() for layer in layers]


class DeviceSampler:
    def __init__(self, graph):
        self.ptr = torch.from_numpy(graph.indptr).cuda()
        self.idx = torch.from_numpy(graph.indices).cuda()

    def sample(self):
        layers = [torch.randint(0, NODES, (BATCH,), device="cuda")]
        for k in FANOUT:
            nodes = layers[-1]
            start, deg = self.ptr[nodes], self.ptr[nodes + 1] - self.ptr[nodes]
            off = (torch.rand(nodes.numel(), k, device="cuda") * deg.unsqueeze(1)).long()
            layers.append(self.idx[start.unsqueeze(1) + off].flatten())
        return layers


class SAGE(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.l1 = nn.Linear(2 * FEATS, hidden)
        self.l2 = nn.Linear(2 * hidden, CLASSES)

    def forward(self, x0, x1, x2):
        h0 = F.relu(self.l1(torch.cat([x0, x1.view(x0.shape[0], -1, FEATS).mean(1)], 1)))
        h1 = F.relu(self.l1(torch.cat([x1, x2.view(x1.shape[0], -1, FEATS).mean(1)], 1)))
        return self.l2(torch.cat([h0, h1.view(h0.shape[0], -1, h1.shape[1]).mean(1)], 1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(12)
    graph = Graph(12)
    sampler = DeviceSampler(graph) if args.fixed else DictSampler(graph, 12)
    feats = torch.randn(NODES, FEATS, device="cuda")
    labels = torch.randint(0, CLASSES, (NODES,), device="cuda")
    model = SAGE().cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        seeds, hop1, hop2 = sampler.sample()
        out = model(feats[seeds], feats[hop1], feats[hop2])
        loss = F.cross_entropy(out, labels[seeds])
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - t0
    print(f"loss {loss.item():.4f}")
    print(f"round_ms {1e3 * elapsed / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
