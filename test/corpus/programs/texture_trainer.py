"""Train a texture classifier with regular checkpoints."""
import argparse
import os
import shutil
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {"steps": 48, "batch": 128, "side": 64, "width": 512, "classes": 200, "save_every": 4, "keep": 2}


class TextureNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, width // 4, 4, 4)
        self.c1 = nn.Conv2d(width // 4, width, 3, 2, 1)
        self.c2 = nn.Conv2d(width, width, 3, 1, 1)
        self.c3 = nn.Conv2d(width, width * 2, 3, 2, 1)
        self.fc = nn.Linear(width * 2 * 16, 512)
        self.out = nn.Linear(512, classes)

    def forward(self, x):
        x = F.gelu(self.stem(x))
        x = F.gelu(self.c1(x))
        x = x + F.gelu(self.c2(x))
        x = F.gelu(self.c3(x))
        return self.out(F.gelu(self.fc(x.flatten(1))))


class Checkpointer:
    def __init__(self, folder, keep):
        self.folder, self.keep, self.files = folder, keep, []

    def save(self, step, model, opt):
        path = os.path.join(self.folder, f"ckpt_{step:05d}.pt")
        torch.save({"step": step, "model": model.state_dict(), "opt": opt.state_dict()}, path)
        self.files.append(path)
        while len(self.files) > self.keep:
            os.remove(self.files.pop(0))


def main(cfg):
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="texture_")
    try:
        model = TextureNet(cfg["width"], cfg["classes"]).cuda()
        opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        ckpt = Checkpointer(folder, cfg["keep"])
        xs = torch.randn(8, cfg["batch"], 3, cfg["side"], cfg["side"], device="cuda")
        ys = torch.randint(0, cfg["classes"], (8, cfg["batch"]), device="cuda")
        warm = cfg["steps"] // 4
        for step in range(cfg["steps"]):
            if step == warm:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(xs[step % 8]), ys[step % 8])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if (step + 1) % cfg["save_every"] == 0:
                ckpt.save(step + 1, model, opt)
        torch.cuda.synchronize()
        t1 = time.perf_counter()
        ckpt.save(cfg["steps"], model, opt)
        print(f"loss {loss.item():.4f}")
        print(f"round_ms {(t1 - t0) * 1000 / (cfg['steps'] - warm):.3f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    cfg = dict(CONFIG)
    if args.steps:
        cfg["steps"] = args.steps
    if args.fixed:
        cfg["save_every"] = 1000
    main(cfg)
