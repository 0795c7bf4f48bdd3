"""Train a next-item model on user histories."""
import argparse
import gc
import logging
import random
import time

import torch
import torch.nn as nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
logger = logging.getLogger(__name__)

CFG = {"items": 30000, "dim": 768, "length": 64, "batch": 256, "users": 120_000, "lr": 1e-3}


class User:
    def __init__(self, uid, rng):
        self.uid = uid
        self.country = rng.choice(("de", "fr", "us", "jp"))
        self.recent = [rng.randrange(CFG["items"]), rng.randrange(CFG["items"])]


class NextItem(nn.Module):
    def __init__(self, items, dim):
        super().__init__()
        self.emb = nn.Embedding(items, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.weight = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, items)

    def forward(self, seq):
        h = self.mix(self.emb(seq))
        w = self.weight(h).softmax(1)
        return self.out((w * h).sum(1))


class Trainer:
    def __init__(self, cfg, free_memory):
        self.cfg = cfg
        self.free_memory = free_memory
        self.model = NextItem(cfg["items"], cfg["dim"]).cuda()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg["lr"], fused=True)
        self.criterion = nn.CrossEntropyLoss()
        self.scores = []

    def train_step(self, users):
        recent = torch.tensor([u.recent for u in users]).cuda()
        seq = torch.randint(0, self.cfg["items"], (len(users), self.cfg["length"]), device="cuda")
        seq[:, -1] = recent[:, 0]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = self.criterion(self.model(seq), recent[:, 1])
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.scores.append(loss.detach())
        del recent, seq, loss
        if self.free_memory:
            gc.collect()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    rng = random.Random(31)
    torch.manual_seed(31)
    users = [User(i, rng) for i in range(CFG["users"])]
    trainer = Trainer(CFG, free_memory=not args.fixed)
    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        trainer.train_step(rng.sample(users, CFG["batch"]))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - t0
    logger.info("loss %.4f", trainer.scores[-1].item())
    print(f"round_ms {seconds / (args.steps - warm) * 1000:.3f}")


if __name__ == "__main__":
    main()
