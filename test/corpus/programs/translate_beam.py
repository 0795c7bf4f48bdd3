"""Translate sentences with beam search over a recurrent decoder."""
import argparse
import time

import torch
import torch.nn as nn

SENTENCES, BEAMS, EXPAND = 40, 8, 24
VOCAB, DIM = 32000, 2048


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, DIM)
        self.l1 = nn.GRUCell(DIM, DIM)
        self.l2 = nn.GRUCell(DIM, DIM)
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, tok, h1, h2):
        h1 = self.l1(self.emb(tok), h1)
        h2 = self.l2(h1, h2)
        return torch.log_softmax(self.out(h2).float(), -1), h1, h2


class Hypothesis:
    __slots__ = ("tokens", "score", "parent")

    def __init__(self, tokens, score, parent):
        self.tokens = tokens
        self.score = score
        self.parent = parent

    def normalized(self):
        return self.score / len(self.tokens) ** 0.6


class ListSearch:
    """Beams kept as lists of hypotheses."""

    def __init__(self):
        self.beams = [[Hypothesis([1], 0.0, b) for b in range(BEAMS)] for _ in range(SENTENCES)]

    def advance(self, logp):
        values, ids = logp.topk(EXPAND, -1)
        values, ids = values.tolist(), ids.tolist()
        order, tokens = [], []
        for s, beam in enumerate(self.beams):
            pool = []
            for b, hyp in enumerate(beam):
                row = s * BEAMS + b
                for v, tok in zip(values[row], ids[row]):
                    pool.append(Hypothesis(hyp.tokens + [tok], hyp.score + v, row))
            pool.sort(key=lambda h: h.normalized(), reverse=True)
            self.beams[s] = pool[:BEAMS]
            order.extend(h.parent for h in self.beams[s])
            tokens.extend(h.tokens[-1] for h in self.beams[s])
        return torch.tensor(order, device=logp.device), torch.tensor(tokens, device=logp.device)

    def best(self):
        return self.beams[0][0].tokens


class TensorSearch:
    """Beams kept as tensors."""

    def __init__(self):
        self.scores = torch.zeros(SENTENCES, BEAMS, device="cuda")
        self.base = (torch.arange(SENTENCES, device="cuda") * BEAMS).unsqueeze(1)
        self.history = []

    def advance(self, logp):
        values, ids = logp.topk(EXPAND, -1)
        total = (values.view(SENTENCES, BEAMS, EXPAND) + self.scores.unsqueeze(-1)).flatten(1)
        self.scores, pick = total.topk(BEAMS, -1)
        order = (self.base + pick // EXPAND).flatten()
        tokens = ids.view(SENTENCES, -1).gather(1, pick).flatten()
        self.history.append((order, tokens))
        return order, tokens

    def best(self):
        row, out = 0, []
        for order, tokens in reversed(self.history):
            out.append(int(tokens[row]))
            row = int(order[row])
        return [1] + out[::-1]


@torch.inference_mode()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(8)
    with torch.device("cuda"):
        model = Decoder().to(torch.bfloat16).eval()
    rows = SENTENCES * BEAMS
    h1 = torch.randn(rows, DIM, device="cuda", dtype=torch.bfloat16)
    h2 = torch.randn(rows, DIM, device="cuda", dtype=torch.bfloat16)
    tok = torch.ones(rows, dtype=torch.long, device="cuda")
    search = TensorSearch() if args.fixed else ListSearch()
    warm = args.steps // 4
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        logp, h1, h2 = model(tok, h1, h2)
        order, tok = search.advance(logp)
        h1, h2 = h1[order], h2[order]
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print("best:", search.best()[:10])
    print(f"round_ms {1e3 * dt / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
