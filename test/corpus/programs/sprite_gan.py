"""Hinge-loss GAN that draws game sprites; two optimizers, moving average of the generator."""
import argparse
import copy
import time
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = SimpleNamespace(latent=128, batch=64, base=32, side=128, lr_g=1e-4, lr_d=4e-4, groups=8,
                      warm=6, seconds=2.4, sample_every=20)


class Norm(nn.Module):
    """Group norm, written as in the paper's appendix."""

    def __init__(self, chans, native):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(chans))
        self.shift = nn.Parameter(torch.zeros(chans))
        self.native = native

    def forward(self, x):
        if self.native:
            return F.group_norm(x, cfg.groups, self.scale, self.shift, 1e-5)
        n, c, h, w = x.shape
        g = x.reshape(n, cfg.groups, -1)
        mean = g.mean(dim=2, keepdim=True)
        var = ((g - mean) ** 2).mean(dim=2, keepdim=True)
        y = (g - mean) / torch.sqrt(var + 1e-5)
        return y.reshape(n, c, h, w) * self.scale.view(1, c, 1, 1) + self.shift.view(1, c, 1, 1)


class Mish(nn.Module):
    def __init__(self, native):
        super().__init__()
        self.native = native

    def forward(self, x):
        if self.native:
            return F.mish(x)
        return x * torch.tanh(torch.log(1 + torch.exp(x)))


def unit(cin, cout, native):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, 1, 1, bias=False), Norm(cout, native), Mish(native))


class Generator(nn.Module):
    def __init__(self, native):
        super().__init__()
        b = cfg.base
        self.seed = nn.Linear(cfg.latent, 8 * b * 16 * 16)
        self.steps = nn.ModuleList([unit(8 * b, 4 * b, native), unit(4 * b, 2 * b, native), unit(2 * b, b, native)])
        self.last = nn.Sequential(unit(b, b, native), nn.Conv2d(b, 3, 3, 1, 1))

    def forward(self, z):
        x = self.seed(z).view(-1, 8 * cfg.base, 16, 16)
        for step in self.steps:
            x = F.interpolate(step(x), scale_factor=2.0, mode="nearest")
        return torch.tanh(self.last(x))


class Critic(nn.Module):
    def __init__(self, native):
        super().__init__()
        b = cfg.base
        self.net = nn.Sequential(
            unit(3, b, native), unit(b, b, native), nn.AvgPool2d(2), unit(b, 2 * b, native), nn.AvgPool2d(2),
            unit(2 * b, 4 * b, native), nn.AvgPool2d(2), unit(4 * b, 8 * b, native))
        self.judge = nn.Linear(8 * b, 1)

    def forward(self, x):
        return self.judge(self.net(x).mean((2, 3)))


def sprites(count):
    rough = torch.rand(count, 3, 8, 4, device="cuda") * 2 - 1
    return F.interpolate(torch.cat([rough, rough.flip(3)], 3), size=(cfg.side, cfg.side), mode="nearest")


class Duel:
    def __init__(self, native):
        self.gen, self.critic = Generator(native).cuda(), Critic(native).cuda()
        self.average = copy.deepcopy(self.gen).requires_grad_(False)
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=cfg.lr_g, betas=(0.0, 0.9), fused=True)
        self.opt_d = torch.optim.Adam(self.critic.parameters(), lr=cfg.lr_d, betas=(0.0, 0.9), fused=True)
        self.real = sprites(1024)

    def noise(self):
        return torch.randn(cfg.batch, cfg.latent, device="cuda")

    def critic_turn(self):
        pick = torch.randint(0, self.real.shape[0], (cfg.batch,), device="cuda")
        with torch.no_grad():
            fake = self.gen(self.noise())
        loss = F.relu(1 - self.critic(self.real[pick])).mean() + F.relu(1 + self.critic(fake)).mean()
        self.opt_d.zero_grad(set_to_none=True)
        loss.backward()
        self.opt_d.step()
        return loss.detach()

    def generator_turn(self):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.gen(self.noise())).mean()
        self.opt_g.zero_grad(set_to_none=True)
        loss.backward()
        self.opt_g.step()
        self.critic.requires_grad_(True)
        torch._foreach_lerp_(list(self.average.parameters()), [p.detach() for p in self.gen.parameters()], 0.01)
        return loss.detach()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true", help="native group norm and mish")
    args = ap.parse_args()
    torch.manual_seed(77)
    duel = Duel(args.fixed)
    turn, began = 0, None
    while began is None or time.perf_counter() - began < cfg.seconds:
        if turn == cfg.warm:
            torch.cuda.synchronize()
            began = time.perf_counter()
        loss_d = duel.critic_turn()
        loss_g = duel.generator_turn()
        turn += 1
        if turn % cfg.sample_every == 0:
            with torch.no_grad():
                spread = duel.average(torch.randn(8, cfg.latent, device="cuda")).std()
            print(f"turn {turn} critic {loss_d.item():.3f} generator {loss_g.item():.3f} spread {spread.item():.3f}")
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - began) * 1e3 / (turn - cfg.warm):.4f}")


if __name__ == "__main__":
    main()
