"""Keyword spotting: conformer-like encoder on log-mel features, trained with clipping."""
import argparse
import math
import time
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F


def mel_filterbank(n_fft, n_mels, sr):
    def to_mel(f):
        return 2595.0 * math.log10(1.0 + f / 700.0)
    pts = torch.linspace(to_mel(20.0), to_mel(sr / 2), n_mels + 2)
    hz = 700.0 * (10 ** (pts / 2595.0) - 1.0)
    freqs = torch.linspace(0, sr / 2, n_fft // 2 + 1)
    up = (freqs[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - freqs[None]) / (hz[2:] - hz[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0)


class LogMel(nn.Module):
    def __init__(self, sr=16000, n_fft=512, hop=160, n_mels=80):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("fb", mel_filterbank(n_fft, n_mels, sr))

    def forward(self, wav):
        spec = torch.stft(wav, self.n_fft, self.hop, 400, self.window, return_complex=True)
        power = spec.real.square() + spec.imag.square()
        mel = torch.matmul(self.fb, power)
        return (mel + 1e-6).log().transpose(1, 2)


def feed_forward(d):
    return nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))


class ConvModule(nn.Module):
    def __init__(self, d, kernel=15):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.pw1 = nn.Conv1d(d, 2 * d, 1)
        self.dw = nn.Conv1d(d, d, kernel, padding=kernel // 2, groups=d)
        self.gn = nn.GroupNorm(8, d)
        self.pw2 = nn.Conv1d(d, d, 1)

    def forward(self, x):
        y = self.norm(x).transpose(1, 2)
        y = F.glu(self.pw1(y), dim=1)
        y = F.silu(self.gn(self.dw(y)))
        return self.pw2(y).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ff1, self.ff2 = feed_forward(d), feed_forward(d)
        self.attn_norm = nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.conv = ConvModule(d)
        self.out_norm = nn.LayerNorm(d)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        y = self.attn_norm(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        x = x + self.conv(x)
        return self.out_norm(x + 0.5 * self.ff2(x))


class KeywordNet(nn.Module):
    def __init__(self, classes=35, d=256, layers=10, heads=4):
        super().__init__()
        self.feats = LogMel()
        self.sub = nn.Conv1d(80, d, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.head = nn.Linear(d, classes)

    def forward(self, wav):
        with torch.no_grad():
            mel = self.feats(wav)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            x = self.sub(mel.transpose(1, 2)).transpose(1, 2)
            for b in self.blocks:
                x = b(x)
            return self.head(x.mean(1)).float()


class Trainer:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda")
        self.model = KeywordNet().to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=5e-4, weight_decay=0.01)
        self.named = [(n, p) for n, p in self.model.named_parameters()]
        self.history = defaultdict(list)
        self.loss_sum = self.acc_sum = 0.0
        self.clip = 1.0
        g = torch.Generator(device=self.device).manual_seed(3)
        self.wavs = torch.randn(2048, 16000, generator=g, device=self.device) * 0.1
        self.labels = torch.randint(0, 35, (2048,), generator=g, device=self.device)

    def clip_and_record(self, step):
        sq = 0.0
        for name, p in self.named:
            g_norm = p.grad.norm().item()
            sq += g_norm ** 2
            self.history["grad_norm/" + name].append(g_norm)
            self.history["grad_max/" + name].append(p.grad.abs().max().item())
            self.history["weight_norm/" + name].append(p.detach().norm().item())
        total = math.sqrt(sq)
        if total > self.clip:
            for _, p in self.named:
                p.grad.mul_(self.clip / (total + 1e-6))
        return total

    def clip_and_record_foreach(self, step):
        params = [p for _, p in self.named]
        grads = [p.grad for p in params]
        if (step + 1) % self.args.log_every == 0:
            with torch.no_grad():
                rows = torch.stack([torch.stack(torch._foreach_norm(grads)),
                                    torch.stack([g.abs().max() for g in grads]),
                                    torch.stack(torch._foreach_norm(params))]).tolist()
            for kind, row in zip(("grad_norm/", "grad_max/", "weight_norm/"), rows):
                for (name, _), v in zip(self.named, row):
                    self.history[kind + name].append(v)
        return nn.utils.clip_grad_norm_(params, self.clip)

    def step(self, step):
        idx = torch.randint(0, len(self.wavs), (self.args.batch,), device=self.device)
        wav, y = self.wavs[idx], self.labels[idx]
        logits = self.model(wav)
        loss = F.cross_entropy(logits, y)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        record = self.clip_and_record_foreach if self.args.fixed else self.clip_and_record
        total = record(step)
        self.opt.step()
        correct = (logits.detach().argmax(-1) == y).float().mean()
        if self.args.fixed:
            self.loss_sum += loss.detach()
            self.acc_sum += correct
        else:
            self.loss_sum += loss.item()
            self.acc_sum += correct.item()
        return total

    def run(self):
        n, log_every = self.args.steps, self.args.log_every
        skip = n // 4
        for step in range(n):
            if step == skip:
                torch.cuda.synchronize()
                begin = time.perf_counter()
            total = self.step(step)
            if (step + 1) % log_every == 0:
                print(f"step {step + 1}: loss {float(self.loss_sum) / log_every:.4f} "
                      f"acc {float(self.acc_sum) / log_every:.3f} grad {float(total):.3f}", flush=True)
                self.loss_sum = self.acc_sum = 0.0
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / (n - skip)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=210)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--log-every", type=int, default=40)
    parser.add_argument("--fixed", action="store_true")
    cli = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(cli)
    print(f"{len(trainer.named)} parameter tensors", flush=True)
    print(f"round_ms {trainer.run() * 1000:.3f}")
