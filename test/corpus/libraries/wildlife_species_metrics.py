"""Camera-trap species head on frozen image features, with per-species torchmetrics shown on a dashboard."""
import argparse
import statistics
import time

import torch
from torch import nn
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassF1Score, MulticlassPrecision, MulticlassRecall

SPECIES, FEATURES, BATCH = 250, 1024, 2048


class Dashboard:
    """Latest and smoothed value of every curve."""

    def __init__(self, decay=0.98):
        self.decay, self.curves = decay, {}

    def show(self, name, value):
        self.curves[name] = self.decay * self.curves.get(name, value) + (1 - self.decay) * value


def report_each(metrics, dashboard, species):
    for name, values in metrics.items():
        for label, value in zip(species, values):
            dashboard.show(f"{name}/{label}", value.item())


def report_together(metrics, dashboard, species):
    table = torch.stack(list(metrics.values())).tolist()
    for name, values in zip(metrics, table):
        for label, value in zip(species, values):
            dashboard.show(f"{name}/{label}", value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    species = [f"species_{i:03d}" for i in range(SPECIES)]
    centres = torch.randn(SPECIES, FEATURES, device=device)
    labels = torch.randint(0, SPECIES, (64, BATCH), device=device)

    head = nn.Sequential(nn.Linear(FEATURES, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(),
                         nn.Linear(2048, SPECIES)).to(device)
    optimizer = torch.optim.AdamW(head.parameters(), lr=3e-4, fused=True)
    options = dict(num_classes=SPECIES, average=None, validate_args=not args.fixed)
    scores = MetricCollection({
        "precision": MulticlassPrecision(**options),
        "recall": MulticlassRecall(**options),
        "f1": MulticlassF1Score(**options),
    }).to(device)
    dashboard = Dashboard()
    report = report_together if args.fixed else report_each

    def step(i):
        target = labels[i % len(labels)]
        x = centres[target] + 4 * torch.randn(BATCH, FEATURES, device=device)
        optimizer.zero_grad(set_to_none=True)
        logits = head(x)
        loss = nn.functional.cross_entropy(logits, target)
        loss.backward()
        optimizer.step()
        report(scores(logits.detach().argmax(1), target), dashboard, species)

    for i in range(10):
        step(i)
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < 3.0:
        begin = time.perf_counter()
        step(len(times))
        times.append(time.perf_counter() - begin)
    mean_f1 = statistics.mean(v for k, v in dashboard.curves.items() if k.startswith("f1/"))
    print(f"steps {len(times)} f1 {mean_f1:.3f}")
    print(f"round_ms {1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
