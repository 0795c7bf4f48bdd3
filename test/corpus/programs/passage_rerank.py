"""Rerank candidate passages for batches of queries."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn


class Scorer(nn.Module):
    def __init__(self, dim=512, hidden=3072):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * dim, hidden), nn.GELU(),
                                 nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def forward(self, q, d):
        q = q.unsqueeze(1).expand_as(d)
        return self.net(torch.cat([q * d, (q - d).abs()], dim=-1)).squeeze(-1)


class Reranker:
    def __init__(self, docs=100_000, dim=512, top=10):
        self.corpus = torch.randn(docs, dim, device="cuda", dtype=torch.bfloat16)
        self.scorer = Scorer(dim).cuda().to(torch.bfloat16).eval()
        self.top = top

    def score(self, queries, candidates):
        ids = torch.from_numpy(candidates).cuda()
        return self.scorer(queries.cuda(), self.corpus[ids]).float()

    def rerank(self, queries, candidates):
        scores = self.score(queries, candidates)
        results = []
        for i in range(len(candidates)):
            hits = []
            for doc, score in zip(candidates[i].tolist(), scores[i].tolist()):
                hits.append({"id": f"doc-{doc}", "score": round(score, 5)})
            hits.sort(key=lambda h: h["score"], reverse=True)
            results.append(hits[:self.top])
        return results


class TopReranker(Reranker):
    def rerank(self, queries, candidates):
        best = self.score(queries, candidates).topk(self.top, dim=1)
        values, where = best.values.tolist(), best.indices.tolist()
        return [[{"id": f"doc-{candidates[i, j]}", "score": round(s, 5)} for s, j in zip(values[i], where[i])]
                for i in range(len(candidates))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=44, help="query batches")
    parser.add_argument("--queries", type=int, default=32)
    parser.add_argument("--candidates", type=int, default=1500)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    ranker = TopReranker() if args.fixed else Reranker()
    pool = rng.integers(0, 100_000, size=(6, args.queries, args.candidates))
    queries = torch.randn(6, args.queries, 512).to(torch.bfloat16)
    warm, seen = args.steps // 4, set()
    with torch.inference_mode():
        for step in range(args.steps):
            if step == warm:
                torch.cuda.synchronize()
                start = time.perf_counter()
            for hits in ranker.rerank(queries[step % 6], pool[step % 6]):
                seen.add(hits[0]["id"])
        torch.cuda.synchronize()
        stop = time.perf_counter()
    print(f"{len(seen)} distinct first hits")
    print(f"round_ms {(stop - start) * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
