"""Distil a big plant classifier into a small one that runs on handhelds."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import record_function

SETTINGS = dict(classes=50, batch=64, side=32, temperature=4.0, alpha=0.7, lr=0.02)


class Teacher(nn.Module):
    """Six wide convolutions; its weights never change."""

    def __init__(self, classes):
        super().__init__()
        plan = [(3, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, s, 1) for a, b, s in plan)
        self.fc = nn.Linear(256, classes)

    def forward(self, x):
        for conv in self.convs:
            x = F.relu(conv(x))
        return self.fc(x.mean((2, 3)))


class Student(nn.Module):
    def __init__(self, classes, width=32):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 2, 1)
        self.depth = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1, groups=width) for _ in range(4))
        self.point = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(4))
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for depth, point in zip(self.depth, self.point):
            x = x + F.relu(point(depth(x)))
        return self.fc(x.mean((2, 3)))


class PlantPhotos:
    """Pinned host batches, as the camera service delivers them."""

    def __init__(self, batches):
        n, side = SETTINGS["batch"], SETTINGS["side"]
        self.items = []
        for _ in range(batches):
            labels = torch.randint(0, SETTINGS["classes"], (n,))
            photos = torch.randn(n, 3, side, side) * 0.5 + (labels.view(-1, 1, 1, 1) % 7) * 0.1
            self.items.append((photos.pin_memory(), labels.pin_memory()))

    def __getitem__(self, i):
        return self.items[i % len(self.items)]


class Distiller:
    def __init__(self, teacher_on):
        self.teacher = Teacher(SETTINGS["classes"]).eval().requires_grad_(False).to(teacher_on)
        self.teacher_on = teacher_on
        self.student = Student(SETTINGS["classes"]).cuda()
        self.opt = torch.optim.SGD(self.student.parameters(), lr=SETTINGS["lr"], momentum=0.9)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 300, 0.5)

    @torch.no_grad()
    def soft_targets(self, photos):
        logits = self.teacher(photos.to(self.teacher_on, non_blocking=True))
        return F.softmax(logits / SETTINGS["temperature"], 1).to("cuda", non_blocking=True)

    def imitate(self, photos, labels):
        t, alpha = SETTINGS["temperature"], SETTINGS["alpha"]
        with record_function("teacher"):
            soft = self.soft_targets(photos)
        with record_function("student"):
            logits = self.student(photos.cuda(non_blocking=True))
            distance = F.kl_div(F.log_softmax(logits / t, 1), soft, reduction="batchmean") * t * t
            hard = F.cross_entropy(logits, labels.cuda(non_blocking=True))
            loss = alpha * distance + (1 - alpha) * hard
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            self.sched.step()
        return loss.detach()

    @torch.no_grad()
    def agreement(self, source, batches=2):
        same = 0.0
        for i in range(batches):
            photos, _ = source[i]
            mine = self.student(photos.cuda()).argmax(1)
            same += (mine == self.soft_targets(photos).argmax(1)).float().mean().item()
        return same / batches


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seconds", type=float, default=2.3)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(61)
    source = PlantPhotos(24)
    distiller = Distiller("cuda" if args.fixed else "cpu")
    for i in range(8):
        distiller.imitate(*source[i])
    torch.cuda.synchronize()
    began, n = time.perf_counter(), 0
    while time.perf_counter() - began < args.seconds:
        loss = distiller.imitate(*source[n])
        n += 1
        if n % 25 == 0:
            print(f"batch {n} loss {loss.item():.4f}")
    torch.cuda.synchronize()
    ms = (time.perf_counter() - began) * 1000 / n
    print(f"agreement {distiller.agreement(source):.3f}")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
