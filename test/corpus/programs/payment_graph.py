"""Flag suspicious accounts in a payment graph with sampled neighbourhoods."""
import argparse
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

ACCOUNTS, LINKS, FEATURES = 50000, 700000, 96
FANOUT = (15, 10)
SEEDS = 768


class PaymentGraph:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        payer = torch.randint(0, ACCOUNTS, (LINKS,), generator=g)
        payee = (torch.rand(LINKS, generator=g) ** 2 * ACCOUNTS).long().clamp_(max=ACCOUNTS - 1)
        own = torch.arange(ACCOUNTS)
        src, dst = torch.cat([payer, payee, own]), torch.cat([payee, payer, own])
        order = torch.argsort(src)
        self.targets = dst[order]
        counts = torch.bincount(src, minlength=ACCOUNTS)
        self.starts = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
        self.features = torch.randn(ACCOUNTS, FEATURES, generator=g).cuda()
        self.flags = (self.features[:, :8].sum(1) > 3).long()

    def adjacency(self):
        flat, cuts = self.targets.tolist(), self.starts.tolist()
        return [flat[a:b] for a, b in zip(cuts, cuts[1:])]


class ListSampler:
    """Walks the adjacency lists."""

    def __init__(self, graph, seed):
        self.neighbours = graph.adjacency()
        self.rng = random.Random(seed)

    def expand(self, accounts, k):
        picked = []
        for account in accounts:
            choices = self.neighbours[account]
            for _ in range(k):
                picked.append(choices[int(self.rng.random() * len(choices))])
        return picked

    def sample(self):
        layers = [[self.rng.randrange(ACCOUNTS) for _ in range(SEEDS)]]
        for k in FANOUT:
            layers.append(self.expand(layers[-1], k))
        return [torch.tensor(layer).cuda() for layer in layers]


class DeviceSampler:
    """The same draw from the compressed rows, on the GPU."""

    def __init__(self, graph):
        self.starts, self.targets = graph.starts.cuda(), graph.targets.cuda()

    def sample(self):
        layers = [torch.randint(0, ACCOUNTS, (SEEDS,), device="cuda")]
        for k in FANOUT:
            last = layers[-1]
            low = self.starts[last].unsqueeze(1)
            degree = self.starts[last + 1].unsqueeze(1) - low
            shift = (torch.rand(last.shape[0], k, device="cuda", dtype=torch.float64) * degree).long()
            layers.append(self.targets[low + shift].flatten())
        return layers


class SageLayer(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.own, self.near = nn.Linear(din, dout), nn.Linear(din, dout, bias=False)

    def forward(self, own, near, k):
        return self.own(own) + self.near(near.view(-1, k, near.shape[-1]).mean(1))


class AccountNet(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.first, self.second = SageLayer(FEATURES, hidden), SageLayer(hidden, hidden)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x0, x1, x2):
        h0 = F.relu(self.first(x0, x1, FANOUT[0]))
        h1 = F.relu(self.first(x1, x2, FANOUT[1]))
        return self.out(F.relu(self.second(h0, h1, FANOUT[0])))


def one_step(graph, sampler, net, opt):
    layers = sampler.sample()
    logits = net(*[graph.features[layer] for layer in layers])
    truth = graph.flags[layers[0]]
    loss = F.cross_entropy(logits, truth)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.detach(), (logits.detach().argmax(1) == truth).float().mean()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seconds", type=float, default=2.3)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(6)
    graph = PaymentGraph(6)
    sampler = DeviceSampler(graph) if args.fixed else ListSampler(graph, 6)
    net = AccountNet().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)
    for _ in range(8):
        one_step(graph, sampler, net, opt)
    torch.cuda.synchronize()
    t0, steps = time.perf_counter(), 0
    while time.perf_counter() - t0 < args.seconds:
        loss, acc = one_step(graph, sampler, net, opt)
        steps += 1
        if steps % 25 == 0:
            print(f"step {steps} loss {loss.item():.4f} accuracy {acc.item():.3f}")
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - t0) * 1000 / steps:.4f}")


if __name__ == "__main__":
    main()
