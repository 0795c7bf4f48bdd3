"""Masked-unit pre-training of a speech encoder with ALiBi attention (HuBERT style)."""
import argparse
import dataclasses
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Config:
    mels: int = 80
    frames: int = 2048          # 10 ms frames, subsampled by two
    dim: int = 512
    heads: int = 8
    layers: int = 10
    units: int = 500
    mask_span: int = 10
    mask_prob: float = 0.065
    batch: int = 8
    lr: float = 5e-4


def alibi_bias(heads, length):
    """Symmetric ALiBi: -slope * |i - j| for every head."""
    slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / heads) for h in range(heads)])
    pos = torch.arange(length)
    distance = (pos[None, :] - pos[:, None]).abs().float()
    return (-slopes.view(-1, 1, 1) * distance).unsqueeze(0)


class AlibiAttention(nn.Module):
    def __init__(self, cfg, buffered):
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)
        bias = alibi_bias(cfg.heads, cfg.frames // 2)
        if buffered:
            self.register_buffer("bias", bias, persistent=False)
        else:
            self.bias = bias

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.bias[:, :, :t, :t].to(x.device)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class EncoderLayer(nn.Module):
    def __init__(self, cfg, buffered):
        super().__init__()
        self.norm1 = nn.LayerNorm(cfg.dim)
        self.attn = AlibiAttention(cfg, buffered)
        self.norm2 = nn.LayerNorm(cfg.dim)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SpeechEncoder(nn.Module):
    def __init__(self, cfg, buffered):
        super().__init__()
        self.cfg = cfg
        self.subsample = nn.Sequential(nn.Conv1d(cfg.mels, cfg.dim, 3, padding=1), nn.GELU(),
                                       nn.Conv1d(cfg.dim, cfg.dim, 3, stride=2, padding=1), nn.GELU())
        self.mask_token = nn.Parameter(torch.randn(cfg.dim) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(cfg, buffered) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.units)

    def span_mask(self, b, t, device):
        starts = (torch.rand(b, 1, t, device=device) < self.cfg.mask_prob).float()
        spread = F.max_pool1d(F.pad(starts, (self.cfg.mask_span - 1, 0)), self.cfg.mask_span, stride=1)
        return spread.squeeze(1) > 0

    def forward(self, mel, units):
        x = self.subsample(mel).transpose(1, 2)
        mask = self.span_mask(x.shape[0], x.shape[1], x.device)
        x = torch.where(mask.unsqueeze(-1), self.mask_token.to(x.dtype), x)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        per_frame = F.cross_entropy(logits.flatten(0, 1).float(), units.flatten(), reduction="none")
        weight = mask.flatten().float()
        return (per_frame * weight).sum() / weight.sum().clamp(min=1)


class Trainer:
    def __init__(self, cfg, steps, buffered):
        self.cfg, self.steps = cfg, steps
        self.device = torch.device("cuda")
        self.model = SpeechEncoder(cfg, buffered).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, betas=(0.9, 0.98), weight_decay=0.01)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / 50))

    def utterances(self, pool=16):
        codebook = torch.randn(self.cfg.units, self.cfg.mels)
        ready = []
        for _ in range(pool):
            units = torch.randint(self.cfg.units, (self.cfg.batch, self.cfg.frames // 8)).repeat_interleave(4, 1)
            mel = codebook[units].repeat_interleave(2, 1).transpose(1, 2)
            mel = mel + 0.3 * torch.randn(mel.shape)
            ready.append((mel.contiguous().pin_memory(), units.pin_memory()))
        while True:
            yield from ready

    def step(self, mel, units):
        mel = mel.to(self.device, non_blocking=True)
        units = units.to(self.device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = self.model(mel, units)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.opt.step()
        self.sched.step()
        return loss.detach()

    def run(self):
        data = self.utterances()
        first = self.steps // 4
        for i in range(self.steps):
            mel, units = next(data)
            if i == first:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            loss = self.step(mel, units)
            if i % 30 == 0:
                print(f"update {i:5d} | loss {loss.item():.3f} | lr {self.sched.get_last_lr()[0]:.1e}", flush=True)
        torch.cuda.synchronize()
        return (time.perf_counter() - t0) * 1e3 / (self.steps - first)


def main():
    ap = argparse.ArgumentParser()
    for field in dataclasses.fields(Config):
        ap.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=field.default)
    ap.add_argument("--steps", type=int, default=130)
    ap.add_argument("--fixed", action="store_true")
    args = vars(ap.parse_args())
    steps, fixed = args.pop("steps"), args.pop("fixed")
    torch.manual_seed(0)
    print(f"round_ms {Trainer(Config(**args), steps, fixed).run():.3f}")


if __name__ == "__main__":
    main()
