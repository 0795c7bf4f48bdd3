"""Proximal policy optimisation of a torque controller on a fleet of simulated pendulums."""
import argparse
import math
import os
import shutil
import tempfile
import time
from types import SimpleNamespace

import torch
import torch.nn as nn

CFG = SimpleNamespace(fleet=1024, horizon=16, epochs=4, minibatches=8, gamma=0.97, lam=0.95, clip=0.2, lr=3e-4,
                      warm=6, seconds=2.2)


class Pendulums:
    def __init__(self, n):
        self.angle = (torch.rand(n, device="cuda") * 2 - 1) * math.pi
        self.speed = torch.rand(n, device="cuda") * 2 - 1

    def observe(self):
        return torch.stack([self.angle.cos(), self.angle.sin(), self.speed / 8], 1)

    def step(self, torque):
        u = torque.clamp(-2, 2)
        wrapped = torch.remainder(self.angle + math.pi, 2 * math.pi) - math.pi
        cost = wrapped.square() + 0.1 * self.speed.square() + 0.001 * u.square()
        self.speed = (self.speed + (15.0 * self.angle.sin() + 3.0 * u) * 0.05).clamp(-8, 8)
        self.angle = self.angle + self.speed * 0.05
        return self.observe(), -cost / 16


class ActorCritic(nn.Module):
    def __init__(self, obs=3, width=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                   nn.Linear(width, 1))
        self.critic = nn.Sequential(nn.Linear(obs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                    nn.Linear(width, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def log_prob(self, mean, action):
        z = (action - mean) / self.log_std.exp()
        return -0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)

    def forward(self, obs):
        return self.actor(obs).squeeze(-1), self.critic(obs).squeeze(-1)


class PPO:
    def __init__(self, cfg, captured):
        self.cfg, self.net = cfg, ActorCritic().cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=cfg.lr, eps=1e-5, capturable=captured)
        size = cfg.fleet * cfg.horizon // cfg.minibatches
        self.part = [torch.zeros(size, 3, device="cuda")] + [torch.zeros(size, device="cuda") for _ in range(4)]
        self.loss, self.graph = None, None
        if captured:
            self.capture()

    def improve(self):
        obs, action, old, gain, ret = self.part
        mean, value = self.net(obs)
        ratio = (self.net.log_prob(mean, action) - old).exp()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy = -torch.min(ratio * gain, ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip) * gain).mean()
        self.loss = policy + 0.5 * (value - ret).square().mean() - 0.005 * self.net.log_std.sum()
        self.opt.zero_grad(set_to_none=True)
        self.loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.opt.step()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.improve()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.opt.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.improve()

    @torch.no_grad()
    def collect(self, env):
        rows, obs = [], env.observe()
        for _ in range(self.cfg.horizon):
            mean, value = self.net(obs)
            action = mean + self.net.log_std.exp() * torch.randn_like(mean)
            follow, reward = env.step(action)
            rows.append((obs, action, self.net.log_prob(mean, action), value, reward))
            obs = follow
        obs_t, action, logp, value, reward = (torch.stack(c) for c in zip(*rows))
        gains, run, after = [], 0.0, self.net(obs)[1]
        for t in reversed(range(self.cfg.horizon)):
            run = reward[t] + self.cfg.gamma * after - value[t] + self.cfg.gamma * self.cfg.lam * run
            after, gains = value[t], gains + [run]
        gain = torch.stack(gains[::-1])
        return [x.flatten(0, 1) for x in (obs_t, action, logp, gain, gain + value)], reward.mean()

    def iterate(self, env):
        data, reward = self.collect(env)
        for _ in range(self.cfg.epochs):
            order = torch.randperm(len(data[0]), device="cuda")
            for index in order.view(self.cfg.minibatches, -1):
                for slot, whole in zip(self.part, data):
                    torch.index_select(whole, 0, index, out=slot)
                self.graph.replay() if self.graph is not None else self.improve()
        return reward


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    torch.manual_seed(19)
    folder = tempfile.mkdtemp(prefix="ppo_")
    try:
        ppo, env = PPO(CFG, ap.parse_args().fixed), Pendulums(CFG.fleet)
        done, start = 0, None
        while start is None or time.perf_counter() - start < CFG.seconds:
            torch.cuda.nvtx.range_push("iteration")
            reward = ppo.iterate(env)
            torch.cuda.nvtx.range_pop()
            done += 1
            if done == CFG.warm:
                torch.cuda.synchronize()
                start = time.perf_counter()
            elif done % 20 == 0:
                print(f"iteration {done} reward {reward.item():.4f}")
        torch.cuda.synchronize()
        took = (time.perf_counter() - start) / (done - CFG.warm)
        torch.save(ppo.net.state_dict(), os.path.join(folder, "final.pt"))
        print(f"round_ms {took * 1e3:.4f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
