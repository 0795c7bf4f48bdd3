"""Classify congestion patterns of small road networks with a GCN."""
import argparse
import copy
import statistics
import time

import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataListLoader, DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool


def make_networks(count=4096, seed=9):
    g = torch.Generator().manual_seed(seed)
    networks = []
    for _ in range(count):
        n = int(torch.randint(20, 40, (1,), generator=g))
        roads = torch.randint(0, n, (2, 3 * n), generator=g)
        networks.append(Data(
            x=torch.randn(n, 16, generator=g),
            edge_index=roads,
            edge_weight=torch.rand(3 * n, generator=g),
            speed_limit=torch.randint(3, 12, (n,), generator=g).float(),
            y=torch.randint(0, 6, (1,), generator=g),
        ))
    return networks


class CongestionGCN(nn.Module):
    def __init__(self, dim=128, classes=6):
        super().__init__()
        self.conv1 = GCNConv(17, dim)
        self.conv2 = GCNConv(dim, dim)
        self.conv3 = GCNConv(dim, dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, batch):
        x = torch.cat([batch.x, batch.speed_limit.unsqueeze(1) / 12], dim=1)
        for conv in (self.conv1, self.conv2, self.conv3):
            x = torch.relu(conv(x, batch.edge_index, batch.edge_weight))
        return self.head(global_mean_pool(x, batch.batch, size=batch.num_graphs))


def batches(networks, device, collate_first):
    while True:
        if collate_first:
            for batch in DataLoader(networks, batch_size=128, shuffle=True):
                yield batch.to(device)
        else:
            for networks_on_cpu in DataListLoader(networks, batch_size=128, shuffle=True):
                yield Batch.from_data_list([copy.copy(net).to(device) for net in networks_on_cpu])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    networks = make_networks()
    model = CongestionGCN().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    running = torch.zeros((), device=device)
    ends, warmup = [], 20
    for batch in batches(networks, device, args.fixed):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        ends.append(time.perf_counter())
        if len(ends) > warmup and ends[-1] - ends[warmup] > 3.0:
            break
    print(f"steps {len(ends)} loss {running.item() / len(ends):.4f}")
    ends = ends[warmup:]
    times = [b - a for a, b in zip(ends, ends[1:])]
    print(f"round_ms {1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
