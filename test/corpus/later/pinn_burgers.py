"""PINN for the viscous Burgers equation  u_t + u u_x = nu u_xx  on [-1,1] x [0,1].

Initial condition u(x,0) = -sin(pi x), homogeneous Dirichlet boundaries.
Collocation points are drawn afresh in each iteration.
"""
import argparse
import math
import time

import torch
import torch.nn as nn

NU = 0.01 / math.pi
DEV = "cuda"


class Net(nn.Module):
    def __init__(self, width=64, depth=7):
        super().__init__()
        dims = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.last = nn.Linear(width, 1)
        # adaptive activation slopes (Jagtap et al.)
        self.slope = nn.Parameter(torch.ones(depth))
        for m in self.hidden:
            nn.init.xavier_normal_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x, t):
        h = torch.cat([x, t], dim=1)
        for i, lin in enumerate(self.hidden):
            h = torch.tanh(self.slope[i] * lin(h))
        return self.last(h)


def grad(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(net, x, t):
    u = net(x, t)
    u_x = grad(u, x)
    u_t = grad(u, t)
    u_xx = grad(u_x, x)
    return u_t + u * u_x - NU * u_xx


def losses(net, n_col, n_bc):
    x = (torch.rand(n_col, 1, device=DEV) * 2 - 1).requires_grad_(True)
    t = torch.rand(n_col, 1, device=DEV).requires_grad_(True)
    l_pde = residual(net, x, t).square().mean()

    x0 = torch.rand(n_bc, 1, device=DEV) * 2 - 1
    l_ic = (net(x0, torch.zeros_like(x0)) + torch.sin(math.pi * x0)).square().mean()

    tb = torch.rand(n_bc, 1, device=DEV)
    one = torch.ones_like(tb)
    l_bc = net(one, tb).square().mean() + net(-one, tb).square().mean()
    return l_pde, l_ic, l_bc


def make_step(net, opt, args, log_buf):
    def step():
        opt.zero_grad(set_to_none=True)
        l_pde, l_ic, l_bc = losses(net, args.collocation, args.boundary)
        loss = l_pde + 10.0 * l_ic + 10.0 * l_bc
        loss.backward()
        opt.step()
        log_buf.copy_(torch.stack([l_pde, l_ic, l_bc]).detach())
    return step


def graphed(step, warmup=5):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warmup):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1100)
    ap.add_argument("--collocation", type=int, default=4096)
    ap.add_argument("--boundary", type=int, default=512)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    net = Net().to(DEV)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, capturable=args.fixed)
    log_buf = torch.zeros(3, device=DEV)
    step = make_step(net, opt, args, log_buf)
    if args.fixed:
        step = graphed(step)

    begin = args.steps // 4
    for it in range(args.steps):
        if it == begin:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        step()
        if it % 250 == 0:
            pde, ic, bc = log_buf.tolist()
            print(f"it {it:5d}  pde {pde:.3e}  ic {ic:.3e}  bc {bc:.3e}", flush=True)
    torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1000 / (args.steps - begin)

    with torch.no_grad():
        xs = torch.linspace(-1, 1, 5, device=DEV)[:, None]
        print("u(x, 0.5):", [round(v, 3) for v in net(xs, torch.full_like(xs, 0.5)).flatten().tolist()])
    print(f"round_ms {ms:.3f}")


if __name__ == "__main__":
    main()
