"""Export token vectors of a document collection for a late-interaction index."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

OPTIONS = dict(vocab=30000, dim=768, heads=12, layers=2, batch=256, length=128, slots=6, batches=180)


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = self.ln1(x + self.out(y))
        return self.ln2(x + self.down(F.gelu(self.up(x))))


class TokenEncoder(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.emb = nn.Embedding(o["vocab"], o["dim"])
        self.layers = nn.Sequential(*[EncoderLayer(o["dim"], o["heads"]) for _ in range(o["layers"])])

    def forward(self, tokens):
        return F.normalize(self.layers(self.emb(tokens)), dim=-1).float()


class VectorStore:
    """Ring of host slots from which the index builder takes finished batches."""

    def __init__(self, o, staged):
        shape = (o["slots"], o["batch"], o["length"], o["dim"])
        self.staged = staged
        self.slots = torch.empty(shape, pin_memory=True) if staged else torch.full(shape, 0.5)
        self.side = torch.cuda.Stream()
        self.done = [None] * o["slots"]
        self.checksum = 0.0

    def take(self, slot):
        if self.done[slot] is not None:
            self.done[slot].synchronize()
            self.checksum += float(self.slots[slot, 0, 0, :8].sum())

    def put(self, index, vectors):
        slot = index % len(self.done)
        self.take(slot)
        if self.staged:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                self.slots[slot].copy_(vectors, non_blocking=True)
                vectors.record_stream(self.side)
        else:
            self.slots[slot].copy_(vectors)
        self.done[slot] = torch.cuda.Event()
        self.done[slot].record(self.side)


@torch.inference_mode()
def export(model, documents, store, o):
    warm = o["batches"] // 5
    for i in range(o["batches"]):
        if i == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        torch.cuda.nvtx.range_push("encode")
        tokens = documents[i % len(documents)].cuda(non_blocking=True)
        vectors = model(tokens)
        torch.cuda.nvtx.range_pop()
        store.put(i, vectors)
        if i % 40 == 0:
            print(f"batch {i}/{o['batches']}")
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / (o["batches"] - warm)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--batches", type=int, default=OPTIONS["batches"])
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    o = {**OPTIONS, "batches": args.batches}
    torch.manual_seed(17)
    model = TokenEncoder(o).cuda().to(torch.bfloat16).eval()
    documents = [torch.randint(0, o["vocab"], (o["batch"], o["length"])).pin_memory() for _ in range(8)]
    store = VectorStore(o, staged=args.fixed)
    seconds = export(model, documents, store, o)
    print(f"checksum {store.checksum:.3f}")
    print(f"round_ms {seconds * 1e3:.4f}")


if __name__ == "__main__":
    main()
