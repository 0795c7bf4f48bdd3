"""Evaluate a keypoint heatmap model over a validation set."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

JOINTS, SIDE = 17, 192


class HeatmapNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(3, width, 4, 4), nn.ReLU(),
            nn.Conv2d(width, width * 2, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(width * 2, width * 2, 3, 1, 1), nn.ReLU(),
            nn.Conv2d(width * 2, width * 2, 3, 1, 1), nn.ReLU())
        self.out = nn.Conv2d(width * 2, JOINTS, 1)

    def forward(self, x):
        h = self.out(self.enc(x))
        return F.interpolate(h, size=(SIDE, SIDE), mode="bilinear", align_corners=False)


def peaks(heat):
    idx = heat.flatten(2).argmax(-1)
    return torch.stack([idx % SIDE, idx // SIDE], -1)


class Evaluator:
    def __init__(self, model, on_device):
        self.model, self.on_device = model, on_device
        self.err_sum, self.count = 0.0, 0

    @torch.inference_mode()
    def batch(self, images, truth):
        heat = self.model(images).float().contiguous()
        if self.on_device:
            pts = peaks(heat).cpu()
        else:
            pts = peaks(heat.cpu())
        err = (pts.float() - truth).norm(dim=-1)
        self.err_sum += float(err.sum())
        self.count += err.numel()

    @property
    def mean_error(self):
        return self.err_sum / self.count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--fixed", action="store_true")
    a = p.parse_args()
    torch.manual_seed(12)
    model = HeatmapNet().cuda().bfloat16().to(memory_format=torch.channels_last).eval()
    images = torch.randn(a.batch * 4, 3, 256, 256, device="cuda").bfloat16()
    images = images.to(memory_format=torch.channels_last)
    truth = torch.rand(4, a.batch, JOINTS, 2) * SIDE
    ev = Evaluator(model, a.fixed)
    warm = a.steps // 4
    for i in range(a.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        k = i % 4
        ev.batch(images[k * a.batch:(k + 1) * a.batch], truth[k])
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mean error {ev.mean_error:.2f} px")
    print(f"round_ms {(t1 - t0) * 1000 / (a.steps - warm):.3f}")


if __name__ == "__main__":
    main()
