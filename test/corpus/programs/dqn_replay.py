"""Train a DQN from a replay memory of transitions."""
import argparse
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn

Transition = namedtuple("Transition", "obs action reward next_obs done")
OBS, ACTIONS, BATCH, CAPACITY = 64, 8, 4096, 40000


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        rows = Transition(*zip(*random.sample(self.memory, n)))
        obs = torch.tensor(np.array(rows.obs)).cuda()
        action = torch.tensor(rows.action).cuda()
        reward = torch.tensor(rows.reward).cuda()
        next_obs = torch.tensor(np.array(rows.next_obs)).cuda()
        done = torch.tensor(rows.done, dtype=torch.float32).cuda()
        return obs, action, reward, next_obs, done


class TensorMemory:
    def __init__(self, capacity):
        self.rows = []
        self.data = None

    def push(self, *args):
        self.rows.append(args)

    def finalize(self):
        o, a, r, n, d = zip(*self.rows)
        self.data = [torch.tensor(np.array(o)).cuda(), torch.tensor(a).cuda(), torch.tensor(r).cuda(),
                     torch.tensor(np.array(n)).cuda(), torch.tensor(d, dtype=torch.float32).cuda()]

    def sample(self, n):
        idx = torch.randint(0, self.data[0].shape[0], (n,), device="cuda")
        return [t[idx] for t in self.data]


def qnet():
    return nn.Sequential(nn.Linear(OBS, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, ACTIONS)).cuda()


class Agent:
    def __init__(self):
        self.q, self.target = qnet(), qnet()
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-4, fused=True)

    def update(self, obs, action, reward, next_obs, done):
        with torch.no_grad():
            goal = reward + 0.99 * (1 - done) * self.target(next_obs).max(1).values
        value = self.q(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    random.seed(9)
    torch.manual_seed(9)
    rng = np.random.default_rng(9)
    torch.set_float32_matmul_precision("high")
    memory = TensorMemory(CAPACITY) if args.fixed else ReplayMemory(CAPACITY)
    frames = rng.standard_normal((CAPACITY + 1, OBS), dtype=np.float32)
    for i in range(CAPACITY):
        memory.push(frames[i], random.randrange(ACTIONS), random.random(), frames[i + 1], random.random() < 0.02)
    if args.fixed:
        memory.finalize()
    agent = Agent()
    losses = []
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        losses.append(agent.update(*memory.sample(BATCH)))
    torch.cuda.synchronize()
    total = time.perf_counter() - begin
    print(f"mean loss {torch.stack(losses).mean().item():.4f}")
    print(f"round_ms {1e3 * total / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
