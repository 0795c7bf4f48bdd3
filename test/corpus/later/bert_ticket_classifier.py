#!/usr/bin/env python3
# Train a small BERT to route support tickets to one of 12 queues.
import argparse
import random
import time
import unicodedata

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification

PAD, UNK, CLS, SEP = 0, 1, 2, 3
NUM_QUEUES = 12


def make_lexicon(rng, n_words=6000):
    onset = ["b", "br", "c", "ch", "d", "dr", "f", "g", "gl", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "v"]
    nucleus = ["a", "e", "i", "o", "u", "é", "ü", "ai", "ou"]
    coda = ["", "n", "r", "s", "l", "nt", "rk", "m"]
    syllables = [o + n + c for o in onset for n in nucleus for c in coda]
    words = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(n_words)]
    return syllables, words


def strip_accents(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def build_vocab(syllables):
    vocab = {"[PAD]": PAD, "[UNK]": UNK, "[CLS]": CLS, "[SEP]": SEP}
    for ch in "abcdefghijklmnopqrstuvwxyz0123456789.,!?#-":
        vocab.setdefault(ch, len(vocab))
        vocab.setdefault("##" + ch, len(vocab))
    for s in sorted({strip_accents(s) for s in syllables}):
        vocab.setdefault(s, len(vocab))
        vocab.setdefault("##" + s, len(vocab))
    return vocab


class WordPieceTokenizer:
    """Port of the original BERT tokenizer (basic + greedy wordpiece)."""

    def __init__(self, vocab, max_len=256):
        self.vocab = vocab
        self.max_len = max_len

    def _clean(self, text):
        out = []
        for ch in text:
            cp = ord(ch)
            if cp == 0 or cp == 0xFFFD or unicodedata.category(ch) in ("Cc", "Cf"):
                continue
            out.append(" " if ch in " \t\n\r" else ch)
        return "".join(out)

    def _split_punct(self, word):
        pieces, start_new = [], True
        for ch in word:
            if unicodedata.category(ch).startswith("P"):
                pieces.append([ch])
                start_new = True
            else:
                if start_new:
                    pieces.append([])
                start_new = False
                pieces[-1].append(ch)
        return ["".join(p) for p in pieces]

    def _wordpiece(self, word):
        ids, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start:
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.vocab:
                    ids.append(self.vocab[piece])
                    break
                end -= 1
            else:
                return [UNK]
            start = end
        return ids

    def encode(self, text):
        ids = [CLS]
        for token in self._clean(text).split():
            token = strip_accents(token.lower())
            for word in self._split_punct(token):
                ids.extend(self._wordpiece(word))
        return ids[: self.max_len - 1] + [SEP]


class TicketDataset(Dataset):
    def __init__(self, words, n, rng):
        self.rows = []
        for _ in range(n):
            body = [w + rng.choice(("", "", "", "", ",", ".")) for w in rng.choices(words, k=rng.randint(60, 110))]
            body[0] = body[0].capitalize()
            self.rows.append((f"#{rng.randint(1000, 9999)} " + " ".join(body), rng.randrange(NUM_QUEUES)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class TicketCollator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        encoded = [self.tokenizer.encode(text) for text, _ in rows]
        width = max(len(e) for e in encoded)
        input_ids = torch.full((len(rows), width), PAD, dtype=torch.long)
        for i, e in enumerate(encoded):
            input_ids[i, : len(e)] = torch.tensor(e)
        return {
            "input_ids": input_ids,
            "attention_mask": (input_ids != PAD).long(),
            "labels": torch.tensor([label for _, label in rows]),
        }


def batches(loader):
    while True:
        yield from loader


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=140)
    p.add_argument("--batch-size", type=int, default=48)
    p.add_argument("--tickets", type=int, default=8000)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--hidden", type=int, default=512)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--fixed", action="store_true")
    opt = p.parse_args()

    torch.manual_seed(1)
    rng = random.Random(1)
    syllables, words = make_lexicon(rng)
    vocab = build_vocab(syllables)
    train = TicketDataset(words, opt.tickets, rng)
    workers = dict(num_workers=8, persistent_workers=True, prefetch_factor=4) if opt.fixed else {}
    loader = DataLoader(train, batch_size=opt.batch_size, shuffle=True, drop_last=True, pin_memory=True,
                        collate_fn=TicketCollator(WordPieceTokenizer(vocab)), **workers)

    device = torch.device("cuda")
    config = BertConfig(vocab_size=len(vocab), hidden_size=opt.hidden, num_hidden_layers=opt.layers,
                        num_attention_heads=8, intermediate_size=4 * opt.hidden,
                        max_position_embeddings=256, num_labels=NUM_QUEUES, pad_token_id=PAD)
    model = BertForSequenceClassification(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=opt.lr, weight_decay=0.01)
    print(f"{sum(q.numel() for q in model.parameters()) / 1e6:.1f}M parameters, vocab {len(vocab)}")

    measured_from = opt.steps // 4
    stream = batches(loader)
    for step in range(opt.steps):
        if step == measured_from:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        batch = {k: v.to(device, non_blocking=True) for k, v in next(stream).items()}
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = model(**batch)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 35 == 0:
            print(f"step {step}/{opt.steps} loss {out.loss.item():.4f} seq {batch['input_ids'].shape[1]}", flush=True)
    torch.cuda.synchronize()
    print(f"round_ms {1e3 * (time.perf_counter() - t0) / (opt.steps - measured_from):.3f}")
