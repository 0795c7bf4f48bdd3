"""Pretrain a causal model on clinic notes with gradient accumulation."""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

MODEL = dict(vocab=16384, dim=1024, heads=16, layers=6, context=512)
TRAIN = dict(micro_batch=16, accumulate=4, lr=3e-4, warm_updates=4, seconds=2.4, print_every=10)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class NotesModel(nn.Module):
    def __init__(self, vocab, dim, heads, layers, context):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class MetricBoard:
    """Metrics are summed on the GPU and go to pinned memory behind the step; nobody waits for them."""

    def __init__(self, names):
        self.names = names
        self.sums = torch.zeros(len(names), device="cuda")
        self.slots = [(torch.zeros(len(names), pin_memory=True), torch.cuda.Event()) for _ in range(4)]
        self.turn = 0
        self.latest = {}

    def add(self, *values):
        self.sums += torch.stack([v.detach().float() for v in values])

    def publish(self):
        host, event = self.slots[self.turn % 4]
        host.copy_(self.sums, non_blocking=True)
        event.record()
        self.sums.zero_()
        self.turn += 1
        old_host, old_event = self.slots[self.turn % 4]
        if self.turn >= 4 and old_event.query():
            self.latest = dict(zip(self.names, old_host.tolist()))


def corpus(tokens, vocab):
    """Repeating phrases with noise, on the GPU."""
    phrase = torch.randint(0, vocab, (4096,), device="cuda")
    text = phrase.repeat(tokens // 4096)
    noise = torch.randint(0, vocab, text.shape, device="cuda")
    return torch.where(torch.rand(text.shape, device="cuda") < 0.1, noise, text)


def update(model, opt, text, board):
    opt.zero_grad(set_to_none=True)
    for _ in range(TRAIN["accumulate"]):
        first = torch.randint(0, text.shape[0] - MODEL["context"] - 1, (TRAIN["micro_batch"], 1), device="cuda")
        rows = text[first + torch.arange(MODEL["context"] + 1, device="cuda")]
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        (loss / TRAIN["accumulate"]).backward()
        board.add(loss, loss.detach().exp().clamp(max=1e4))
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    board.publish()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true", help="changes nothing")
    ap.parse_args()
    torch.manual_seed(50)
    with torch.device("cuda"):
        model = NotesModel(**MODEL)
    opt = torch.optim.AdamW(model.parameters(), lr=TRAIN["lr"], betas=(0.9, 0.95), fused=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda u: min(1.0, (u + 1) / 10) * (0.6 + 0.4 * math.cos(u / 300)))
    text = corpus(2 ** 21, MODEL["vocab"])
    board = MetricBoard(["loss", "perplexity"])
    updates, t0 = 0, 0.0
    while updates <= TRAIN["warm_updates"] or time.perf_counter() - t0 < TRAIN["seconds"]:
        if updates == TRAIN["warm_updates"]:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        update(model, opt, text, board)
        sched.step()
        updates += 1
        if updates % TRAIN["print_every"] == 0 and board.latest:
            print(f"update {updates} " + " ".join(f"{k} {v / TRAIN['accumulate']:.3f}" for k, v in board.latest.items()))
    torch.cuda.synchronize()
    print(f"round_ms {(time.perf_counter() - t0) * 1000 / (updates - TRAIN['warm_updates']):.4f}")


if __name__ == "__main__":
    main()
