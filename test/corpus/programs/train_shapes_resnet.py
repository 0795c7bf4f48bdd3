"""Classify drawn shapes with a narrow, deep residual network."""
import argparse
import math
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    classes: int = 4
    blocks: tuple = (7, 8, 8)
    widths: tuple = (32, 64, 128)
    batch: int = 96
    lr: float = 1e-3
    weight_decay: float = 1e-4
    settle_steps: int = 20
    train_seconds: float = 2.2
    log_every: int = 50


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if cin != cout else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.skip(x), inplace=True)


class ShapesResNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Conv2d(3, cfg.widths[0], 3, 1, 1, bias=False)
        stages, cin = [], cfg.widths[0]
        for level, (count, width) in enumerate(zip(cfg.blocks, cfg.widths)):
            for k in range(count):
                stages.append(Residual(cin, width, 2 if level and k == 0 else 1))
                cin = width
        self.body = nn.Sequential(*stages)
        self.head = nn.Linear(cin, cfg.classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


def draw_shapes(count, size, device):
    """Circles, squares, crosses and rings with a random colour, place and radius."""
    axis = torch.arange(size, device=device, dtype=torch.float32)
    centre = torch.rand(count, 2, device=device) * size * 0.5 + size * 0.25
    radius = (torch.rand(count, 1, 1, device=device) * 0.15 + 0.12) * size
    dy = (axis[None, :, None] - centre[:, 0, None, None]).abs()
    dx = (axis[None, None, :] - centre[:, 1, None, None]).abs()
    dist = torch.sqrt(dx * dx + dy * dy)
    masks = torch.stack([dist < radius, torch.maximum(dx, dy) < radius,
                         (torch.minimum(dx, dy) < radius * 0.35) & (torch.maximum(dx, dy) < radius),
                         (dist < radius) & (dist > radius * 0.6)], 1)
    label = torch.randint(0, 4, (count,), device=device)
    mask = masks[torch.arange(count, device=device), label].float().unsqueeze(1)
    colour = torch.rand(count, 3, 1, 1, device=device) + 0.3
    return mask * colour + 0.1 * torch.randn(count, 3, size, size, device=device), label


def make_optimizer(model, cfg, fixed):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [dict(params=decay, weight_decay=cfg.weight_decay), dict(params=plain, weight_decay=0.0)]
    if fixed:
        return torch.optim.Adam(groups, lr=cfg.lr, fused=True)
    return torch.optim.Adam(groups, lr=cfg.lr, foreach=False)


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    hit = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return hit


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    cfg = Config()
    torch.manual_seed(11)
    images, labels = draw_shapes(8192, 32, "cuda")
    held_x, held_y = draw_shapes(512, 32, "cuda")
    model = ShapesResNet(cfg).cuda()
    opt = make_optimizer(model, cfg, args.fixed)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.55 + 0.45 * math.cos(min(s, 400) / 400 * math.pi))
    step, start = 0, None
    while start is None or time.perf_counter() - start < cfg.train_seconds:
        if step == cfg.settle_steps:
            torch.cuda.synchronize()
            start = time.perf_counter()
        pick = torch.randint(0, images.shape[0], (cfg.batch,), device="cuda")
        loss = F.cross_entropy(model(images[pick]), labels[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        step += 1
        if step % cfg.log_every == 0:
            print(f"step {step} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}")
    torch.cuda.synchronize()
    spent = time.perf_counter() - start
    print(f"held-out accuracy {accuracy(model, held_x, held_y):.3f}")
    print(f"round_ms {spent * 1000 / (step - cfg.settle_steps):.4f}")


if __name__ == "__main__":
    main()
