"""Roll out a policy in many pole-balancing environments."""
import argparse
import math
import random
import time

import torch
import torch.nn as nn

NUM_ENVS = 6144


class CartPole:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
        return self.state

    def step(self, action):
        x, v, theta, w = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(theta), math.sin(theta)
        temp = (force + 0.05 * w * w * sin) / 1.1
        acc_t = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        acc_x = temp - 0.05 * acc_t * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * acc_x, theta + 0.02 * w, w + 0.02 * acc_t]
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        if done:
            self.reset()
        return self.state, 1.0, done


class VectorEnv:
    def __init__(self, n):
        self.envs = [CartPole(i) for i in range(n)]

    def reset(self):
        return torch.tensor([e.reset() for e in self.envs], device="cuda")

    def step(self, actions):
        obs, rewards, dones = [], [], []
        for env, a in zip(self.envs, actions.tolist()):
            o, r, d = env.step(a)
            obs.append(o)
            rewards.append(r)
            dones.append(d)
        return (torch.tensor(obs, device="cuda"), torch.tensor(rewards, device="cuda"),
                torch.tensor(dones, device="cuda"))


class TensorEnv:
    def __init__(self, n):
        self.n = n
        self.ones = torch.ones(n, device="cuda")

    def fresh(self):
        return torch.rand(self.n, 4, device="cuda") * 0.1 - 0.05

    def reset(self):
        self.state = self.fresh()
        return self.state

    def step(self, actions):
        x, v, theta, w = self.state.unbind(1)
        force = actions.float() * 20.0 - 10.0
        cos, sin = theta.cos(), theta.sin()
        temp = (force + 0.05 * w * w * sin) / 1.1
        acc_t = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        acc_x = temp - 0.05 * acc_t * cos / 1.1
        state = torch.stack([x + 0.02 * v, v + 0.02 * acc_x, theta + 0.02 * w, w + 0.02 * acc_t], 1)
        done = (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 0.2095)
        self.state = torch.where(done.unsqueeze(1), self.fresh(), state)
        return self.state, self.ones, done


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 2048), nn.Tanh(), nn.Linear(2048, 2048), nn.Tanh(), nn.Linear(2048, 2)).cuda()
    env = TensorEnv(NUM_ENVS) if args.fixed else VectorEnv(NUM_ENVS)
    obs = env.reset()
    rollout = []
    warm = args.steps // 4
    with torch.no_grad():
        for t in range(args.steps):
            if t == warm:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            probs = torch.softmax(policy(obs), -1)
            action = torch.multinomial(probs, 1).squeeze(1)
            nxt, reward, done = env.step(action)
            rollout.append((obs, action, reward, done))
            obs = nxt
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    ended = sum(int(d.sum()) for _, _, _, d in rollout)
    print(f"episodes finished {ended}")
    print(f"round_ms {1e3 * dt / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
