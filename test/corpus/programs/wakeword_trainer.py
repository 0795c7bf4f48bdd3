"""Spot spoken keywords in one-second clips; validate often to stop early."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import nvtx

WORDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "noise", "silence"]


class Separable(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.depth = nn.Conv1d(cin, cin, 9, stride, 4, groups=cin, bias=False)
        self.point = nn.Conv1d(cin, cout, 1, bias=False)
        self.norm = nn.BatchNorm1d(cout)

    def forward(self, x):
        return F.relu(self.norm(self.point(self.depth(x))))


class Spotter(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.front = nn.Conv1d(1, width, 80, 16, 40)
        self.body = nn.Sequential(*[Separable(width, width, 2 if k % 2 else 1) for k in range(6)])
        self.head = nn.Linear(width, len(WORDS))

    def forward(self, wave):
        return self.head(self.body(F.relu(self.front(wave.unsqueeze(1)))).mean(2))


def synthesize(count, rate=8000):
    label = torch.randint(0, len(WORDS), (count,), device="cuda")
    t = torch.arange(rate, device="cuda") / rate
    pitch = 120.0 + 45.0 * label.float().unsqueeze(1)
    wave = torch.sin(6.2832 * pitch * t) * torch.exp(-3 * (t - 0.4).abs())
    return wave + 0.4 * torch.randn(count, rate, device="cuda"), label


class Validator:
    def __init__(self, waves, labels, chunk):
        self.parts = list(zip(waves.split(chunk), labels.split(chunk)))
        self.best = 0.0

    @torch.no_grad()
    def row_by_row(self, net):
        """Collect every prediction on the CPU, then score."""
        guesses, truths = [], []
        for wave, label in self.parts:
            prob = net(wave).softmax(1)
            for i in range(prob.shape[0]):
                guesses.append(prob[i].cpu())
                truths.append(label[i].cpu())
        table = torch.stack(guesses)
        truth = torch.stack(truths)
        return self.score(table.argmax(1), table.amax(1), truth)

    @torch.no_grad()
    def on_device(self, net):
        table = torch.cat([net(wave).softmax(1) for wave, _ in self.parts])
        truth = torch.cat([label for _, label in self.parts])
        return self.score(table.argmax(1), table.amax(1), truth)

    def score(self, guess, sure, truth):
        right = guess == truth
        acc, trust = torch.stack([right.float().mean(), (sure * right).mean()]).tolist()
        self.best = max(self.best, acc)
        return acc, trust


class Experiment:
    def __init__(self, fixed):
        self.waves, self.labels = synthesize(4096)
        self.valid = Validator(*synthesize(1536), chunk=256)
        self.check = self.valid.on_device if fixed else self.valid.row_by_row
        self.net = Spotter().cuda()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, 2000)
        self.rounds = 0

    def round(self, steps=5, batch=128):
        """Some training steps, then one validation."""
        self.net.train()
        with nvtx.range("train"):
            for _ in range(steps):
                pick = torch.randint(0, self.waves.shape[0], (batch,), device="cuda")
                loss = F.cross_entropy(self.net(self.waves[pick]), self.labels[pick])
                self.opt.zero_grad(set_to_none=True)
                loss.backward()
                self.opt.step()
                self.sched.step()
        self.net.eval()
        with nvtx.range("validate"):
            acc, trust = self.check(self.net)
        self.rounds += 1
        if self.rounds % 10 == 0:
            print(f"round {self.rounds} accuracy {acc:.3f} trust {trust:.3f} best {self.valid.best:.3f}")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seconds", type=float, default=2.3)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(31)
    exp = Experiment(args.fixed)
    for _ in range(4):
        exp.round()
    torch.cuda.synchronize()
    began, times = time.perf_counter(), []
    while time.perf_counter() - began < args.seconds:
        t = time.perf_counter()
        exp.round()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - t)
    times.sort()
    print(f"best accuracy {exp.valid.best:.3f} over {exp.rounds} rounds")
    print(f"round_ms {times[len(times) // 2] * 1e3:.4f}")


if __name__ == "__main__":
    main()
