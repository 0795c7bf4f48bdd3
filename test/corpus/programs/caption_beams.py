"""Caption images with beam search and no repeated word pairs."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

BOS = 1
IMAGES, BEAM, LENGTH, REGIONS, DIM, VOCAB = 64, 6, 28, 196, 512, 10000


class CaptionDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.cell = nn.GRUCell(2 * DIM, DIM)
        self.query = nn.Linear(DIM, DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, words, state, regions):
        # words [n], state [n, d], regions [images, r, d]; the beams of an image are neighbours
        q = self.query(state).view(IMAGES, -1, DIM)
        seen = F.scaled_dot_product_attention(q, regions, regions).reshape(-1, DIM)
        state = self.cell(torch.cat([self.words(words), seen], 1), state)
        return F.log_softmax(self.out(state) * 6.0, -1), state


class DictBeams:
    """Each hypothesis is a dict with its words, score and word pairs."""

    def __init__(self):
        self.beams = [[{"words": [BOS], "score": 0.0 if j == 0 else -1e9, "pairs": set()} for j in range(BEAM)]
                      for _ in range(IMAGES)]

    def advance(self, logp):
        top = logp.topk(2 * BEAM, -1)
        values = top.values.view(IMAGES, BEAM, -1).tolist()
        ids = top.indices.view(IMAGES, BEAM, -1).tolist()
        words, parents = [], []
        for im in range(IMAGES):
            pool = {}
            for j, hyp in enumerate(self.beams[im]):
                last = hyp["words"][-1]
                for value, word in zip(values[im][j], ids[im][j]):
                    if (last, word) in hyp["pairs"]:
                        continue
                    key = tuple(hyp["words"]) + (word,)
                    score = hyp["score"] + value
                    if key not in pool or pool[key]["score"] < score:
                        pool[key] = {"score": score, "parent": j, "pair": (last, word)}
            ranked = sorted(pool.items(), key=lambda item: -item[1]["score"])[:BEAM]
            ranked += ranked[-1:] * (BEAM - len(ranked))
            fresh = []
            for key, item in ranked:
                pairs = set(self.beams[im][item["parent"]]["pairs"])
                pairs.add(item["pair"])
                fresh.append({"words": list(key), "score": item["score"], "pairs": pairs})
                words.append(key[-1])
                parents.append(im * BEAM + item["parent"])
            self.beams[im] = fresh
        return torch.tensor(words, device="cuda"), torch.tensor(parents, device="cuda")

    def best(self):
        return [b[0]["words"] for b in self.beams]


class TensorBeams:
    def __init__(self):
        self.seqs = torch.full((IMAGES, BEAM, 1), BOS, device="cuda")
        self.score = torch.full((IMAGES, BEAM), -1e9, device="cuda")
        self.score[:, 0] = 0
        self.base = torch.arange(IMAGES, device="cuda").unsqueeze(1) * BEAM

    def advance(self, logp):
        logp = logp.view(IMAGES, BEAM, VOCAB)
        same = self.seqs[:, :, :-1] == self.seqs[:, :, -1:]
        banned = torch.where(same, self.seqs[:, :, 1:], torch.zeros_like(self.seqs[:, :, 1:]))
        logp = logp.scatter(2, banned, -1e9)
        self.score, flat = (self.score.unsqueeze(-1) + logp).view(IMAGES, -1).topk(BEAM, -1)
        parent, word = flat // VOCAB, flat % VOCAB
        self.seqs = torch.cat([self.seqs.gather(1, parent.unsqueeze(-1).expand(-1, -1, self.seqs.shape[2])),
                               word.unsqueeze(-1)], 2)
        return word.view(-1), (self.base + parent).view(-1)

    def best(self):
        return self.seqs[:, 0].tolist()


@torch.inference_mode()
def caption(model, regions, beams):
    words = torch.full((IMAGES * BEAM,), BOS, device="cuda")
    state = regions.mean(1).repeat_interleave(BEAM, 0)
    for _ in range(LENGTH):
        logp, state = model(words, state, regions)
        words, parents = beams.advance(logp)
        state = state[parents]
    return beams.best()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--seconds", type=float, default=2.2)
    args = ap.parse_args()
    torch.manual_seed(30)
    model = CaptionDecoder().cuda().eval()
    pictures = torch.randn(4, IMAGES, REGIONS, DIM, device="cuda")
    make = TensorBeams if args.fixed else DictBeams
    caption(model, pictures[0], make())
    took, began = [], time.perf_counter()
    while time.perf_counter() - began < args.seconds:
        torch.cuda.synchronize()
        t = time.perf_counter()
        texts = caption(model, pictures[len(took) % 4], make())
        torch.cuda.synchronize()
        took.append((time.perf_counter() - t) / LENGTH)
    print("first caption", texts[0][:10], "batches", len(took))
    print(f"round_ms {sorted(took)[len(took) // 2] * 1e3:.4f}")


if __name__ == "__main__":
    main()
