"""Train a compact conv net on small synthetic digits."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_block(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU())


def build():
    return nn.Sequential(
        conv_block(1, 16), conv_block(16, 16), conv_block(16, 32, 2), conv_block(32, 32),
        conv_block(32, 64, 2), conv_block(64, 64), conv_block(64, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Session:
    def __init__(self, batch, fixed):
        self.model = build().cuda()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, foreach=True)
        self.x = torch.zeros(batch, 1, 28, 28, device="cuda")
        self.y = torch.zeros(batch, dtype=torch.long, device="cuda")
        self.loss = None
        self.graph = None
        if fixed:
            self.capture()

    def work(self):
        self.opt.zero_grad(set_to_none=True)
        self.loss = F.cross_entropy(self.model(self.x), self.y, label_smoothing=0.1)
        self.loss.backward()
        self.opt.step()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.work()
        torch.cuda.current_stream().wait_stream(side)
        self.opt.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.work()

    def step(self, x, y):
        self.x.copy_(x)
        self.y.copy_(y)
        if self.graph is not None:
            self.graph.replay()
        else:
            self.work()
        return self.loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(4)
    xs = torch.randn(64, args.batch, 1, 28, 28, device="cuda")
    ys = torch.randint(0, 10, (64, args.batch), device="cuda")
    sess = Session(args.batch, args.fixed)
    warm = args.steps // 4
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = sess.step(xs[i % 64], ys[i % 64])
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"loss {loss.item():.4f}")
    print(f"round_ms {(t1 - t0) * 1000 / (args.steps - warm):.4f}")


if __name__ == "__main__":
    main()
