"""Write many synthetic stories at once for a training set, on the tenth of the card this job is given."""
import argparse
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class WriterConfig:
    vocab: int = 16000
    dim: int = 2048
    heads: int = 16
    layers: int = 6
    stories: int = 512
    prompt: int = 64
    tokens: int = 64
    card_share: float = 0.1
    seconds: float = 2.2


class GrowingCache:
    """Keys and values of one layer; grows with each token."""

    def __init__(self, cfg):
        self.k = self.v = None

    def reset(self):
        self.k = self.v = None

    def extend(self, k, v):
        if self.k is None:
            self.k, self.v = k.contiguous(), v.contiguous()
        else:
            self.k = torch.cat([self.k, k], dim=2)
            self.v = torch.cat([self.v, v], dim=2)
        return self.k, self.v


class SlottedCache:
    """Keys and values of one layer in slots for the longest story."""

    def __init__(self, cfg):
        shape = (cfg.stories, cfg.heads, cfg.prompt + cfg.tokens, cfg.dim // cfg.heads)
        self.k = torch.empty(shape, device="cuda", dtype=torch.bfloat16)
        self.v = torch.empty_like(self.k)
        self.used = 0

    def reset(self):
        self.used = 0

    def extend(self, k, v):
        lo, self.used = self.used, self.used + k.shape[2]
        self.k[:, :, lo:self.used] = k
        self.v[:, :, lo:self.used] = v
        return self.k[:, :, :self.used], self.v[:, :, :self.used]


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg.dim
        self.heads = cfg.heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x, cache):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        k, v = cache.extend(k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class StoryModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Embedding(cfg.prompt + cfg.tokens, cfg.dim)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, tokens, caches, start):
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.emb(tokens) + self.pos(places)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.head(x[:, -1])


@torch.inference_mode()
def write_stories(model, caches, cfg, prompts):
    for c in caches:
        c.reset()
    tok = model(prompts, caches, 0).argmax(-1, keepdim=True)
    story = [tok]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for i in range(cfg.tokens):
        tok = model(tok, caches, cfg.prompt + i).argmax(-1, keepdim=True)
        story.append(tok)
    torch.cuda.synchronize()
    return torch.cat(story, 1), (time.perf_counter() - begin) / cfg.tokens


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    cfg = WriterConfig()
    torch.manual_seed(8)
    torch.cuda.set_per_process_memory_fraction(cfg.card_share)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = StoryModel(cfg).eval()
        torch.set_default_dtype(torch.float32)
    caches = [(SlottedCache if args.fixed else GrowingCache)(cfg) for _ in range(cfg.layers)]
    prompts = torch.randint(0, cfg.vocab, (cfg.stories, cfg.prompt), device="cuda")
    write_stories(model, caches, cfg, prompts)
    times, began = [], time.perf_counter()
    while time.perf_counter() - began < cfg.seconds:
        story, per_token = write_stories(model, caches, cfg, prompts.roll(len(times), 0))
        times.append(per_token)
        print(f"set {len(times)}: {tuple(story.shape)} {cfg.stories / per_token:.0f} tokens/s")
    print(f"round_ms {sorted(times)[len(times) // 2] * 1e3:.4f}")


if __name__ == "__main__":
    main()
