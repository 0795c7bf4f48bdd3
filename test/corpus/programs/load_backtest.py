"""Backtest a recurrent load forecaster over rolling windows."""
import argparse
import time

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, features=16, hidden=256, horizon=24):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(features, hidden)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, x):
        batch, length, _ = x.shape
        h = x.new_zeros(batch, self.hidden)
        c = x.new_zeros(batch, self.hidden)
        for t in range(length):
            h, c = self.cell(x[:, t], (h, c))
        return self.head(h)


class SequenceForecaster(nn.Module):
    def __init__(self, base, features=16):
        super().__init__()
        self.rnn = nn.LSTM(features, base.hidden, batch_first=True)
        self.head = base.head
        with torch.no_grad():
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(self.rnn, name + "_l0").copy_(getattr(base.cell, name))

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


@torch.no_grad()
def backtest(model, series, windows, length=48, horizon=24):
    errors = torch.zeros((), device="cuda")
    warm = windows // 4
    for w in range(windows):
        if w == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        past = series[:, w:w + length]
        future = series[:, w + length:w + length + horizon, 0]
        pred = model(past)
        errors += (pred - future).abs().mean()
    torch.cuda.synchronize()
    stop = time.perf_counter()
    return (errors / windows).item(), (stop - start) / (windows - warm)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80, help="windows to score")
    parser.add_argument("--meters", type=int, default=256)
    parser.add_argument("--fixed", action="store_true")
    opts = parser.parse_args()
    torch.manual_seed(11)
    hours = torch.arange(opts.steps + 100, device="cuda").float()
    daily = torch.sin(hours * 6.2832 / 24)[None, :, None]
    series = daily + 0.3 * torch.randn(opts.meters, len(hours), 16, device="cuda")
    model = Forecaster().cuda().eval()
    if opts.fixed:
        model = SequenceForecaster(model).cuda().eval()
    mae, per_window = backtest(model, series, opts.steps)
    print(f"mae {mae:.4f}")
    print(f"round_ms {per_window * 1e3:.3f}")


if __name__ == "__main__":
    main()
