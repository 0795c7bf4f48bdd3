"""Train a keyword spotter on two-second clips."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

RATE, WIN, HOP, NFFT, MELS = 16000, 400, 160, 512, 64


def mel_bank():
    def to_mel(f):
        return 2595.0 * np.log10(1.0 + f / 700.0)

    edges = 700.0 * (10 ** (np.linspace(to_mel(20.0), to_mel(RATE / 2), MELS + 2) / 2595.0) - 1.0)
    freqs = np.linspace(0, RATE / 2, NFFT // 2 + 1)
    bank = np.zeros((NFFT // 2 + 1, MELS), dtype=np.float32)
    for m in range(MELS):
        lo, mid, hi = edges[m:m + 3]
        up = (freqs - lo) / (mid - lo)
        down = (hi - freqs) / (hi - mid)
        bank[:, m] = np.maximum(0.0, np.minimum(up, down))
    return bank


class LogMel:
    def __init__(self):
        self.window = np.hanning(WIN).astype(np.float32)
        self.bank = mel_bank()

    def clip(self, pcm):
        x = pcm.astype(np.float32) / 32768.0
        x = np.append(x[:1], x[1:] - 0.97 * x[:-1])
        frames = np.lib.stride_tricks.sliding_window_view(x, WIN)[::HOP] * self.window
        power = np.abs(np.fft.rfft(frames, NFFT)) ** 2
        mel = np.log(power @ self.bank + 1e-6)
        return ((mel - mel.mean()) / (mel.std() + 1e-5)).astype(np.float32)

    def __call__(self, clips):
        feats = [self.clip(c) for c in clips]
        return torch.from_numpy(np.stack(feats)).cuda()


class LogMelCuda:
    def __init__(self):
        self.window = torch.from_numpy(np.hanning(WIN).astype(np.float32)).cuda()
        self.bank = torch.from_numpy(mel_bank()).cuda()

    def __call__(self, clips):
        x = torch.from_numpy(clips).cuda().float() / 32768.0
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], dim=1)
        frames = x.unfold(1, WIN, HOP) * self.window
        power = torch.fft.rfft(frames, NFFT).abs() ** 2
        mel = torch.log(power @ self.bank + 1e-6)
        mean = mel.mean((1, 2), keepdim=True)
        std = mel.std((1, 2), keepdim=True)
        return (mel - mean) / (std + 1e-5)


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=36)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    audio = rng.integers(-20000, 20000, size=(8 * args.batch, 2 * RATE)).astype(np.int16)
    words = torch.from_numpy(rng.integers(0, 35, size=len(audio)))

    features = LogMelCuda() if args.fixed else LogMel()
    net = nn.Sequential(conv(1, 64), conv(64, 128), conv(128, 128), conv(128, 256, 2), conv(256, 256),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 35)).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    warm = args.steps // 4
    for step in range(args.steps):
        if step == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        pick = rng.integers(0, len(audio), size=args.batch)
        x = features(audio[pick]).unsqueeze(1)
        y = words[pick].cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"round_ms {1000 * elapsed / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
