"""Train a residual network on leaf photographs."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)), inplace=True)
        return F.relu(self.b2(self.c2(h)) + self.skip(x), inplace=True)


class Net(nn.Module):
    def __init__(self, classes=120):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, 2, 1)
        self.stages = nn.Sequential(Residual(64, 128, 1), Residual(128, 256, 2), Residual(256, 512, 2))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(self.stages(self.stem(x)).mean((2, 3)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=50)
    ap.add_argument("--batch", type=int, default=384)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(12)
    model = Net().cuda().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, fused=True)
    photos = [torch.randint(0, 256, (args.batch, 3, 128, 128), dtype=torch.uint8)
              .contiguous(memory_format=torch.channels_last).pin_memory() for _ in range(4)]
    labels = [torch.randint(0, 120, (args.batch,)).pin_memory() for _ in range(4)]
    running = torch.zeros((), device="cuda")
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        x = photos[step % 4].cuda(non_blocking=True).float().div_(255)
        y = labels[step % 4].cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running += loss.detach()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mean loss {running.item() / args.steps:.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
