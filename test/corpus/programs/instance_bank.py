"""Instance discrimination: every image is its own class, compared with a memory bank."""
import argparse
import logging
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger("instances")


class Encoder(nn.Module):
    def __init__(self, dim, width=48):
        super().__init__()
        layers, cin = [], 3
        for k in range(4):
            cout = width * (1 + k // 2)
            layers += [nn.Conv2d(cin, cout, 3, 2 if k else 1, 1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]
            cin = cout
        self.trunk = nn.Sequential(*layers)
        self.project = nn.Linear(cin, dim)

    def forward(self, x):
        return F.normalize(self.project(self.trunk(x).mean((2, 3))), dim=1)


class MemoryBank:
    """One unit vector per training image, moved slowly towards its newest embedding."""

    def __init__(self, entries, dim, momentum=0.5, device="cpu"):
        self.vectors = F.normalize(torch.randn(entries, dim), dim=1).to(device)
        self.momentum = momentum

    def similarities(self, z, temperature):
        every = self.vectors.to(z.device)
        return z @ every.t() / temperature

    @torch.no_grad()
    def refresh(self, index, z):
        index = index.to(self.vectors.device)
        fresh = z.to(self.vectors.device)
        mixed = self.vectors[index] * self.momentum + fresh * (1 - self.momentum)
        self.vectors[index] = F.normalize(mixed, dim=1)


class Images:
    """Small images on the GPU; an entry of the bank is an image with one of its shifts."""

    def __init__(self, count, shifts):
        self.pixels = torch.rand(count, 3, 32, 32, device="cuda")
        self.count, self.shifts = count, shifts

    def __len__(self):
        return self.count * self.shifts

    def fetch(self, entry):
        entry = entry.to("cuda")
        x = self.pixels[entry % self.count]
        tint = 0.05 * (entry // self.count).float().view(-1, 1, 1, 1)
        return x + tint + 0.1 * torch.randn_like(x)


class ContrastiveTrainer:
    def __init__(self, images, dim, bank_device, batch, temperature=0.1):
        self.images, self.batch, self.temperature = images, batch, temperature
        self.encoder = Encoder(dim).cuda()
        self.bank = MemoryBank(len(images), dim, device=bank_device)
        self.opt = torch.optim.SGD(self.encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
        self.sched = torch.optim.lr_scheduler.MultiStepLR(self.opt, [300, 600], 0.3)

    def update(self):
        index = torch.randint(0, len(self.images), (self.batch,))
        z = self.encoder(self.images.fetch(index))
        scores = self.bank.similarities(z, self.temperature)
        loss = F.cross_entropy(scores, index.cuda())
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.sched.step()
        self.bank.refresh(index, z.detach())
        return loss.detach()

    @torch.no_grad()
    def nearest_self(self, count=256):
        self.encoder.eval()
        index = torch.arange(count)
        scores = self.bank.similarities(self.encoder(self.images.fetch(index)), 1.0)
        self.encoder.train()
        return (scores.argmax(1).cpu() == index).float().mean().item()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--dim", type=int, default=128)
    ap.add_argument("--batch", type=int, default=192)
    ap.add_argument("--seconds", type=float, default=2.2)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(19)
    images = Images(40000, 4)
    trainer = ContrastiveTrainer(images, args.dim, "cuda" if args.fixed else "cpu", args.batch)
    for _ in range(12):
        trainer.update()
    torch.cuda.synchronize()
    began, updates = time.perf_counter(), 0
    while time.perf_counter() - began < args.seconds:
        loss = trainer.update()
        updates += 1
        if updates % 50 == 0:
            logger.info("update %d loss %.4f", updates, loss.item())
    torch.cuda.synchronize()
    ms = (time.perf_counter() - began) * 1e3 / updates
    logger.info("nearest is self %.3f", trainer.nearest_self())
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
