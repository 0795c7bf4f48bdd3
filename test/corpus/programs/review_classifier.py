"""Sentiment of product reviews: word pieces into a small transformer encoder."""
import argparse
import itertools
import random
import re
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

HP = {"max_len": 256, "dim": 256, "heads": 4, "depth": 4, "batch": 64, "lr": 4e-4, "clip": 1.0}
TOKEN = re.compile(r"[a-z]+|\d+|[^\sa-z\d]")
PAD, UNK = 0, 1


def invent_words(rng, count):
    heads = ["ba", "cro", "del", "fi", "gran", "ho", "ju", "kle", "mor", "ni", "pra", "qua", "ro", "stu", "tri", "vel"]
    tails = ["able", "ing", "ness", "er", "ly", "tion", "ish", "ed", "ous", "al", "en", "ful"]
    words = set()
    while len(words) < count:
        words.add("".join(rng.choices(heads, k=rng.randint(1, 3))) + rng.choice(tails))
    return sorted(words)


def invent_reviews(rng, words, count):
    half = len(words) // 2
    rows = []
    for _ in range(count):
        label = rng.randint(0, 1)
        pool = words[:half] if label else words[half:]
        text = rng.choices(pool, k=80) + rng.choices(words, k=320)
        rng.shuffle(text)
        for at in range(9, len(text), 10):
            text[at] = text[at].capitalize() + rng.choice([".", ",", "!", " 10/10;"])
        rows.append((" ".join(text), label))
    return rows


class WordPieces:
    """Greedy longest match, as the pretrained vocabulary was made."""

    def __init__(self, words, rng):
        pieces = {w[:k] for w in words for k in (2, 3, 4, 5)} | set("abcdefghijklmnopqrstuvwxyz0123456789.,!;/")
        pieces |= {w[k:] for w in rng.sample(words, 900) for k in (3, 5) if len(w) > k}
        self.ids = {p: i + 2 for i, p in enumerate(sorted(pieces))}
        self.longest = max(map(len, self.ids))

    def __len__(self):
        return len(self.ids) + 2

    def encode(self, text, limit):
        out = []
        for word in TOKEN.findall(text.lower()):
            pos = 0
            while pos < len(word):
                for end in range(min(len(word), pos + self.longest), pos, -1):
                    found = self.ids.get(word[pos:end])
                    if found is not None:
                        out.append(found)
                        pos = end
                        break
                else:
                    out.append(UNK)
                    pos += 1
        out = out[:limit]
        return out + [PAD] * (limit - len(out))


class Reviews(Dataset):
    def __init__(self, rows, pieces):
        self.rows, self.pieces = rows, pieces

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        text, label = self.rows[i]
        return torch.tensor(self.pieces.encode(text, HP["max_len"])), label


class Classifier(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.emb = nn.Embedding(vocab, HP["dim"], padding_idx=PAD)
        self.pos = nn.Parameter(torch.zeros(HP["max_len"], HP["dim"]))
        layer = nn.TransformerEncoderLayer(HP["dim"], HP["heads"], HP["dim"] * 4, 0.0, "gelu",
                                           batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, HP["depth"], enable_nested_tensor=False)
        self.out = nn.Linear(HP["dim"], 2)

    def forward(self, ids):
        return self.out(self.enc(self.emb(ids) + self.pos).mean(1))


def forever(loader):
    for _ in itertools.count():
        yield from loader


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seconds", type=float, default=2.3)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    rng = random.Random(3)
    torch.manual_seed(3)
    words = invent_words(rng, 6000)
    data = Reviews(invent_reviews(rng, words, 3072), WordPieces(words, rng))
    extra = dict(num_workers=12, persistent_workers=True, prefetch_factor=2,
                 multiprocessing_context="fork") if args.fixed else dict(num_workers=0)
    loader = DataLoader(data, HP["batch"], shuffle=True, drop_last=True, pin_memory=True, **extra)
    model = Classifier(len(data.pieces)).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=HP["lr"], fused=True)
    begin, done, warm, running = 0.0, 0, 12, torch.zeros((), device="cuda")
    for ids, label in forever(loader):
        if done == warm:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        elif done > warm and time.perf_counter() - begin > args.seconds:
            break
        ids, label = ids.cuda(non_blocking=True), label.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids)
        loss = F.cross_entropy(logits.float(), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), HP["clip"])
        opt.step()
        running.lerp_(loss.detach(), 0.05)
        done += 1
        if done % 40 == 0:
            print(f"{done:5d} reviews {done * HP['batch']} loss {running.item():.4f}")
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - begin) * 1e3 / (done - warm):.3f}")


if __name__ == "__main__":
    main()
