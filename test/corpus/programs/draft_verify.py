"""Speculative sampling: a small model drafts, the large one verifies; sliding context window."""
import argparse
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CONF = {
    "vocab": 8000, "window": 64, "ahead": 4, "rows": 64, "seconds": 2.2,
    "draft": {"dim": 256, "heads": 4, "layers": 1},
    "target": {"dim": 1024, "heads": 16, "layers": 4},
}


class Mixer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class TextModel(nn.Module):
    def __init__(self, vocab, dim, heads, layers):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.body = nn.Sequential(*[Mixer(dim, heads) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens, keep):
        x = self.body(self.emb(tokens))
        return torch.softmax(self.head(x[:, -keep:]).float(), -1)


class Speculator:
    def __init__(self, conf, fixed):
        self.conf = conf
        with torch.device("cuda"):
            self.draft = TextModel(conf["vocab"], **conf["draft"]).bfloat16().eval()
            self.target = TextModel(conf["vocab"], **conf["target"]).bfloat16().eval()
        self.context = torch.randint(0, conf["vocab"], (conf["rows"], conf["window"]), device="cuda")
        self.places = torch.arange(conf["window"], device="cuda")
        self.rows = torch.arange(conf["rows"], device="cuda")
        self.rng = random.Random(5)
        self.judge = self.judge_batch if fixed else self.judge_rows

    def propose(self):
        seq, chances = self.context, []
        for _ in range(self.conf["ahead"]):
            q = self.draft(seq[:, -self.conf["window"]:], 1)[:, 0]
            chances.append(q)
            seq = torch.cat([seq, torch.multinomial(q, 1)], 1)
        return seq[:, self.conf["window"]:], torch.stack(chances, 1)

    def judge_rows(self, drafts, q, p):
        """Go through each row, token by token, until one is refused."""
        kept, following = [], []
        for b in range(self.conf["rows"]):
            n = 0
            while n < self.conf["ahead"]:
                tok = drafts[b, n].item()
                if self.rng.random() >= (p[b, n, tok] / q[b, n, tok]).item():
                    break
                n += 1
            kept.append(n)
            following.append(torch.multinomial(p[b, n], 1).item())
        return torch.tensor(kept, device="cuda"), torch.tensor(following, device="cuda")

    def judge_batch(self, drafts, q, p):
        pick = drafts.unsqueeze(-1)
        ratio = (p[:, :-1].gather(2, pick) / q.gather(2, pick)).squeeze(-1)
        kept = (torch.rand_like(ratio) < ratio).long().cumprod(1).sum(1)
        return kept, torch.multinomial(p[self.rows, kept], 1).squeeze(1)

    @torch.inference_mode()
    def advance(self):
        w = self.conf["window"]
        drafts, q = self.propose()
        p = self.target(torch.cat([self.context, drafts], 1), self.conf["ahead"] + 1)
        kept, following = self.judge(drafts, q, p)
        full = torch.cat([self.context, drafts, drafts[:, :1]], 1)
        full.scatter_(1, (w + kept).unsqueeze(1), following.unsqueeze(1))
        self.context = full.gather(1, (kept + 1).unsqueeze(1) + self.places)
        return kept


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(12)
    spec = Speculator(CONF, args.fixed)
    for _ in range(10):
        spec.advance()
    torch.cuda.synchronize()
    start, rounds, accepted = time.perf_counter(), 0, torch.zeros((), device="cuda")
    while time.perf_counter() - start < CONF["seconds"]:
        accepted += spec.advance().float().mean()
        rounds += 1
        if rounds % 50 == 0:
            print(f"round {rounds}: {accepted.item() / rounds:.2f} of {CONF['ahead']} drafts accepted")
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - start) * 1e3 / rounds:.4f}")


if __name__ == "__main__":
    main()
