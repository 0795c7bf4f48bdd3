"""Train a bird-song classifier on log-mel spectrograms made with torchaudio."""
import argparse
import statistics
import time

import torch
from torch import nn
from torchaudio import transforms as T

RATE, SECONDS, SPECIES = 22050, 3, 40


def make_recordings(count=512, seed=12):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(RATE * SECONDS) / RATE
    label = torch.randint(0, SPECIES, (count,), generator=g)
    base = 800 + 150 * label.float().unsqueeze(1)
    sweep = 300 * torch.rand(count, 1, generator=g)
    waves = torch.sin(2 * torch.pi * (base * t + 0.5 * sweep * t * t))
    return waves + 0.3 * torch.randn(waves.shape, generator=g), label


class LogMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.mel = T.MelSpectrogram(sample_rate=RATE, n_fft=1024, hop_length=256, n_mels=96, f_min=150.0)
        self.to_db = T.AmplitudeToDB(top_db=80.0)
        self.mask_freq = T.FrequencyMasking(12)
        self.mask_time = T.TimeMasking(24)

    def forward(self, waves):
        spec = self.to_db(self.mel(waves)).unsqueeze(1)
        spec = (spec - spec.mean(dim=(2, 3), keepdim=True)) / (spec.std(dim=(2, 3), keepdim=True) + 1e-4)
        return self.mask_time(self.mask_freq(spec))


class BirdNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        layers, c = [], 1
        for i in range(4):
            out = width * 2 ** min(i, 2)
            layers += [nn.Conv2d(c, out, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
            c = out
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(c, SPECIES)

    def forward(self, spec):
        return self.head(self.features(spec).mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    waves, labels = make_recordings()
    waves, labels = waves.view(8, 64, -1).pin_memory(), labels.view(8, 64).pin_memory()
    log_mel = LogMel()
    if args.fixed:
        log_mel = log_mel.to(device)
    model = BirdNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(i):
        wave, label = waves[i % 8], labels[i % 8].to(device, non_blocking=True)
        if args.fixed:
            spec = log_mel(wave.to(device, non_blocking=True))
        else:
            spec = log_mel(wave).to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(spec), label)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(10):
        step(i)
    times, losses, start = [], [], time.perf_counter()
    while time.perf_counter() - start < 3.0:
        begin = time.perf_counter()
        losses.append(step(len(times)))
        times.append(time.perf_counter() - begin)
    print(f"steps {len(times)} loss {torch.stack(losses[-20:]).mean().item():.3f}")
    print(f"round_ms {1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
