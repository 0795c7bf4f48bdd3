"""Convolutional autoencoder for material textures."""
import argparse
import math
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Options:
    side: int = 128
    batch: int = 64
    width: int = 256
    code: int = 32
    lr: float = 3e-4
    warm_steps: int = 10
    min_seconds: float = 2.3
    report: int = 25


def conv_unit(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(inplace=True))


class TextureAutoencoder(nn.Module):
    def __init__(self, o):
        super().__init__()
        w = o.width
        self.encoder = nn.Sequential(
            nn.Conv2d(3, w, 4, 2, 1), conv_unit(w, w), conv_unit(w, w),
            nn.Conv2d(w, 2 * w, 4, 2, 1), conv_unit(2 * w, 2 * w), conv_unit(2 * w, 2 * w),
            nn.Conv2d(2 * w, o.code, 1))
        self.decoder = nn.Sequential(
            nn.Conv2d(o.code, 2 * w, 1), conv_unit(2 * w, 2 * w), conv_unit(2 * w, 2 * w),
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1), conv_unit(w, w), conv_unit(w, w),
            nn.ConvTranspose2d(w, 3, 4, 2, 1))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class TextureBank:
    """Sums of oriented waves; drawn once and kept in device memory."""

    def __init__(self, count, side):
        line = torch.linspace(0, 1, side, device="cuda")
        freq = torch.rand(count, 3, 4, 1, 1, device="cuda") * 30 + 4
        turn = torch.rand(count, 1, 4, 1, 1, device="cuda") * math.pi
        along = torch.cos(turn) * line.view(1, 1, 1, 1, -1) + torch.sin(turn) * line.view(1, 1, 1, -1, 1)
        self.images = torch.sin(freq * along * 2 * math.pi).mean(2).contiguous(memory_format=torch.channels_last)

    def draw(self, batch):
        pick = torch.randint(0, self.images.shape[0], (batch,), device="cuda")
        return self.images[pick].contiguous(memory_format=torch.channels_last)


class Runner:
    def __init__(self, o):
        self.o = o
        self.bank = TextureBank(512, o.side)
        self.net = TextureAutoencoder(o).cuda().to(memory_format=torch.channels_last)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=o.lr, fused=True)
        self.plan = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, 1000)
        self.recent = torch.zeros((), device="cuda")

    def iteration(self):
        x = self.bank.draw(self.o.batch)
        with torch.autocast("cuda", torch.bfloat16):
            y = self.net(x + 0.05 * torch.randn_like(x))
            loss = F.l1_loss(y.float(), x)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.plan.step()
        self.recent.lerp_(loss.detach(), 0.1)

    @torch.no_grad()
    def psnr(self):
        x = self.bank.draw(32)
        with torch.autocast("cuda", torch.bfloat16):
            mse = F.mse_loss(self.net(x).float(), x).item()
        return 10 * math.log10(4.0 / max(mse, 1e-9))

    def run(self):
        for _ in range(self.o.warm_steps):
            self.iteration()
        torch.cuda.synchronize()
        begin, n = time.perf_counter(), 0
        while time.perf_counter() - begin < self.o.min_seconds:
            self.iteration()
            n += 1
            if n % self.o.report == 0:
                print(f"iteration {n} l1 {self.recent.item():.4f}")
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1e3 / n


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--fixed", action="store_true", help="same as without")
    args = ap.parse_args()
    torch.manual_seed(2)
    torch.backends.cudnn.benchmark = True
    runner = Runner(Options(batch=args.batch))
    ms = runner.run()
    print(f"psnr {runner.psnr():.2f} dB")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
