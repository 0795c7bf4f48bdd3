"""Learn a policy from several actors that play a grid game."""
import argparse
import multiprocessing as mp
import queue
import random
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GRID, ACTORS, CHUNK = 12, 3, 64


class GridGame:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.me = [self.rng.randrange(GRID), self.rng.randrange(GRID)]
        self.goal = [self.rng.randrange(GRID), self.rng.randrange(GRID)]
        self.walls = {(self.rng.randrange(GRID), self.rng.randrange(GRID)) for _ in range(20)}
        self.left = 60

    def observe(self):
        cells = []
        for r in range(GRID):
            for c in range(GRID):
                cells.append(1.0 if (r, c) in self.walls else 0.0)
        cells[self.me[0] * GRID + self.me[1]] = 2.0
        cells[self.goal[0] * GRID + self.goal[1]] = 3.0
        return cells

    def step(self, action):
        dr, dc = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
        r, c = (self.me[0] + dr) % GRID, (self.me[1] + dc) % GRID
        if (r, c) not in self.walls:
            self.me = [r, c]
        self.left -= 1
        won = self.me == self.goal
        if won or self.left == 0:
            self.reset()
        return 1.0 if won else -0.01


def actor(seed, out, stop):
    game = GridGame(seed)
    while not stop.is_set():
        chunk = []
        for _ in range(CHUNK):
            obs = game.observe()
            a = game.rng.randrange(4)
            chunk.append((obs, a, game.step(a)))
        try:
            out.put_nowait(chunk)
        except queue.Full:
            pass


class Learner:
    def __init__(self, inbox):
        self.inbox = inbox
        layers, width = [], GRID * GRID
        for _ in range(5):
            layers += [nn.Linear(width, 1024), nn.ReLU()]
            width = 1024
        self.body = nn.Sequential(*layers)
        self.pi, self.v = nn.Linear(width, 4), nn.Linear(width, 1)
        self.net = nn.ModuleList([self.body, self.pi, self.v]).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-4, fused=True)
        self.obs = torch.rand(20000, GRID * GRID, device="cuda")
        self.act = torch.randint(0, 4, (20000,), device="cuda")
        self.rew = torch.zeros(20000, device="cuda")
        self.head = 0

    def absorb(self):
        try:
            chunk = self.inbox.get_nowait()
        except queue.Empty:
            return
        o, a, r = zip(*chunk)
        sl = slice(self.head, self.head + CHUNK)
        self.obs[sl] = torch.tensor(o).cuda()
        self.act[sl] = torch.tensor(a).cuda()
        self.rew[sl] = torch.tensor(r).cuda()
        self.head = (self.head + CHUNK) % (20000 - CHUNK)

    def update(self):
        idx = torch.randint(0, 20000, (2048,), device="cuda")
        h = self.body(self.obs[idx])
        value = self.v(h).squeeze(1)
        adv = self.rew[idx] - value.detach()
        logp = F.log_softmax(self.pi(h), -1)
        chosen = logp.gather(1, self.act[idx].unsqueeze(1)).squeeze(1)
        loss = -(chosen * adv).mean() + F.mse_loss(value, self.rew[idx]) + 0.01 * (logp.exp() * logp).sum(1).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(6)
    if args.fixed:
        ctx = mp.get_context("fork")
        inbox, stop = ctx.Queue(maxsize=32), ctx.Event()
        actors = [ctx.Process(target=actor, args=(s, inbox, stop), daemon=True) for s in range(ACTORS)]
    else:
        inbox, stop = queue.Queue(maxsize=32), threading.Event()
        actors = [threading.Thread(target=actor, args=(s, inbox, stop), daemon=True) for s in range(ACTORS)]
    for a in actors:
        a.start()
    learner = Learner(inbox)
    warm = args.steps // 4
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        learner.absorb()
        loss = learner.update()
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    stop.set()
    if args.fixed:
        time.sleep(0.05)
        for a in actors:
            a.terminate()
        inbox.cancel_join_thread()
    for a in actors:
        a.join()
    print(f"loss {loss:.4f}")
    print(f"round_ms {1e3 * dt / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
