"""Graph classification of large molecules with a wide GIN; the collated data set stays on the GPU."""
import argparse
import statistics
import time

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool


def make_molecules(count, seed=4):
    g = torch.Generator().manual_seed(seed)
    molecules = []
    for _ in range(count):
        n = int(torch.randint(60, 100, (1,), generator=g))
        chain = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
        rings = torch.randint(0, n, (2, n // 2), generator=g)
        edges = torch.cat([chain, rings], dim=1)
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        atoms = torch.randint(0, 40, (n,), generator=g)
        molecules.append(Data(x=atoms, edge_index=edges, y=(atoms == 7).sum().remainder(2).view(1)))
    return molecules


class GIN(nn.Module):
    def __init__(self, dim=640, depth=5):
        super().__init__()
        self.atoms = nn.Embedding(40, dim)
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim)))
            for _ in range(depth))
        self.head = nn.Linear(dim, 2)

    def forward(self, data):
        x = self.atoms(data.x)
        for conv in self.convs:
            x = torch.relu(conv(x, data.edge_index)) + x
        return self.head(global_add_pool(x, data.batch, size=data.num_graphs) / 80)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    loader = DataLoader(make_molecules(2000), batch_size=500, shuffle=True)
    batches = [batch.to(device) for batch in loader]
    model = GIN().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)

    def epoch():
        total = torch.zeros((), device=device)
        for i in torch.randperm(len(batches)).tolist():
            batch = batches[i]
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(batch)
            loss = nn.functional.cross_entropy(logits.float(), batch.y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total.item() / len(batches)

    for _ in range(3):
        epoch()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < 3.0:
        begin = time.perf_counter()
        loss = epoch()
        times.append(time.perf_counter() - begin)
    print(f"epochs {len(times)} loss {loss:.4f}")
    print(f"round_ms {1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
