"""Advantage actor-critic on many copies of a parcel delivery grid."""
import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

GRID, COPIES, HORIZON, BATTERY, OBS, GAMMA = 12, 512, 8, 60, 12, 0.98
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
WALLS = {(x, y) for x in range(GRID) for y in range(GRID) if (x % 4 == 2 and y % 5 != 1)}
FREE = [(x, y) for x in range(GRID) for y in range(GRID) if (x, y) not in WALLS]


class DeliveryEnv:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.pos, self.parcel, self.goal = (self.rng.choice(FREE) for _ in range(3))
        self.carry, self.battery = 0, BATTERY

    def blocked(self, cell):
        return cell in WALLS or not (0 <= cell[0] < GRID and 0 <= cell[1] < GRID)

    def observe(self):
        (x, y), (px, py), (gx, gy) = self.pos, self.parcel, self.goal
        near = [float(self.blocked((x + dx, y + dy))) for dx, dy in MOVES]
        return [x / GRID, y / GRID, (px - x) / GRID, (py - y) / GRID, (gx - x) / GRID, (gy - y) / GRID,
                float(self.carry), self.battery / BATTERY] + near

    def step(self, action):
        dx, dy = MOVES[action]
        cell = (self.pos[0] + dx, self.pos[1] + dy)
        reward = -0.05 if self.blocked(cell) else -0.01
        if not self.blocked(cell):
            self.pos = cell
        if not self.carry and self.pos == self.parcel:
            self.carry, reward = 1, reward + 0.5
        arrived, self.battery = self.carry == 1 and self.pos == self.goal, self.battery - 1
        done = arrived or self.battery == 0
        if done:
            self.reset()
        return self.observe(), reward + arrived, float(done)


class PythonFleet:
    def __init__(self):
        self.envs = [DeliveryEnv(i) for i in range(COPIES)]

    def start(self):
        return torch.tensor(np.array([e.observe() for e in self.envs], dtype=np.float32), device="cuda")

    def step(self, actions):
        rows = [e.step(a) for e, a in zip(self.envs, actions.tolist())]
        obs, reward, done = (np.array(col, dtype=np.float32) for col in zip(*rows))
        return tuple(torch.from_numpy(a).cuda() for a in (obs, reward, done))


class TensorFleet:
    """The same rules for all copies at once, on the GPU."""

    def __init__(self):
        self.free = torch.tensor(FREE, device="cuda")
        self.moves = torch.tensor(MOVES, device="cuda")
        self.wall = torch.ones(GRID + 2, GRID + 2, dtype=torch.bool, device="cuda")
        self.wall[self.free[:, 0] + 1, self.free[:, 1] + 1] = False
        self.rest = torch.tensor([[0, BATTERY]] * COPIES, device="cuda")
        self.state = self.fresh()

    def fresh(self):
        cells = self.free[torch.randint(len(FREE), (COPIES, 3), device="cuda")].view(COPIES, 6)
        return torch.cat([cells, self.rest], 1)  # pos, parcel, goal, carry, battery

    def start(self):
        s = self.state
        near = s[:, None, 0:2] + self.moves + 1
        return torch.cat([s[:, 0:2] / GRID, (s[:, 2:4] - s[:, 0:2]) / GRID, (s[:, 4:6] - s[:, 0:2]) / GRID,
                          s[:, 6:7].float(), s[:, 7:8] / BATTERY, self.wall[near[..., 0], near[..., 1]].float()], 1)

    def step(self, actions):
        s = self.state
        cell = s[:, 0:2] + self.moves[actions]
        hit = self.wall[cell[:, 0] + 1, cell[:, 1] + 1]
        pos = torch.where(hit[:, None], s[:, 0:2], cell)
        picked = (s[:, 6] == 0) & (pos == s[:, 2:4]).all(1)
        carry = torch.where(picked, torch.ones_like(s[:, 6]), s[:, 6])
        arrived = (carry == 1) & (pos == s[:, 4:6]).all(1)
        battery = s[:, 7] - 1
        reward = -0.01 - 0.04 * hit.float() + 0.5 * picked.float() + arrived.float()
        done = arrived | (battery == 0)
        moved = torch.cat([pos, s[:, 2:6], carry[:, None], battery[:, None]], 1)
        self.state = torch.where(done[:, None], self.fresh(), moved)
        return self.start(), reward, done.float()


def train_block(fleet, policy, opt, obs):
    terms, rewards, dones = [], [], []
    for _ in range(HORIZON):
        out = policy(obs)
        logp, value = F.log_softmax(out[:, :4], -1), out[:, 4]
        action = torch.multinomial(logp.exp().detach(), 1)
        terms.append((logp.gather(1, action).squeeze(1), value, -(logp.exp() * logp).sum(1)))
        obs, reward, done = fleet.step(action.squeeze(1))
        rewards, dones = rewards + [reward], dones + [done]
    ret, loss = policy(obs)[:, 4].detach(), 0.0
    for (logp, value, entropy), reward, done in zip(terms[::-1], rewards[::-1], dones[::-1]):
        ret = reward + GAMMA * (1 - done) * ret
        loss = loss + (logp * (value - ret).detach() + 0.5 * (ret - value).square() - 0.01 * entropy).mean()
    opt.zero_grad(set_to_none=True)
    (loss / HORIZON).backward()
    opt.step()
    return obs, torch.stack(rewards).mean()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    torch.manual_seed(14)
    fleet = TensorFleet() if ap.parse_args().fixed else PythonFleet()
    policy = nn.Sequential(nn.Linear(OBS, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 5)).cuda()
    opt = torch.optim.RMSprop(policy.parameters(), lr=7e-4)
    obs, blocks, start = fleet.start(), 0, None
    while start is None or time.perf_counter() - start < 2.3:
        obs, reward = train_block(fleet, policy, opt, obs)
        blocks += 1
        if blocks == 10:
            torch.cuda.synchronize()
            start = time.perf_counter()
        if blocks % 50 == 0:
            print(f"block {blocks} reward {reward.item():.4f}")
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - start) * 1e3 / (blocks - 10):.4f}")


if __name__ == "__main__":
    main()
