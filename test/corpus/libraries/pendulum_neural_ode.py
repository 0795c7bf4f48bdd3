"""Learn the dynamics of a damped pendulum with a neural ODE (torchdiffeq, fixed-step RK4)."""
import argparse
import statistics
import time

import torch
from torch import nn
from torchdiffeq import odeint

TRAJECTORIES, POINTS, SPAN = 6, 9, 2.0


class Pendulum(nn.Module):
    def forward(self, t, state):
        angle, speed = state.unbind(-1)
        return torch.stack([speed, -9.81 * torch.sin(angle) - 0.25 * speed], dim=-1)


class Dynamics(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 2))

    def forward(self, t, state):
        return self.net(state)


def solve(func, start, times):
    return odeint(func, start, times, method="rk4", options={"step_size": 0.05})


def loss_one_by_one(func, starts, truth, times):
    loss = 0.0
    for i in range(len(starts)):
        path = solve(func, starts[i], times)
        loss = loss + nn.functional.mse_loss(path, truth[:, i])
    return loss / len(starts)


def loss_batched(func, starts, truth, times):
    return nn.functional.mse_loss(solve(func, starts, times), truth)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    times = torch.linspace(0.0, SPAN, POINTS, device=device)
    all_starts = torch.rand(240, 2, device=device) * 2 - 1
    with torch.no_grad():
        all_truth = solve(Pendulum(), all_starts, times)

    dynamics = Dynamics().to(device)
    optimizer = torch.optim.Adam(dynamics.parameters(), lr=2e-3, fused=True)
    loss_of = loss_batched if args.fixed else loss_one_by_one

    def step(i):
        pick = torch.arange(i * TRAJECTORIES, (i + 1) * TRAJECTORIES, device=device) % len(all_starts)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(dynamics, all_starts[pick], all_truth[:, pick], times)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(3):
        step(i)
    torch.cuda.synchronize()
    durations, begin_all = [], time.perf_counter()
    while time.perf_counter() - begin_all < 3.0:
        begin = time.perf_counter()
        loss = step(len(durations))
        torch.cuda.synchronize()
        durations.append(time.perf_counter() - begin)
    print(f"steps {len(durations)} loss {loss.item():.5f}")
    print(f"round_ms {1e3 * statistics.median(durations):.3f}")


if __name__ == "__main__":
    main()
