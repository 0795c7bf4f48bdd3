"""Sample a batch of stories from a recurrent language model with top-k and temperature."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn

VOCAB, DIM, BATCH = 50257, 2048, 16
TOP_K, TEMPERATURE = 50, 0.8


class StoryLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.cells = nn.ModuleList(nn.GRUCell(DIM, DIM) for _ in range(4))
        self.out = nn.Linear(DIM, VOCAB)

    def forward(self, tokens, state):
        x = self.embed(tokens)
        new = []
        for cell, h in zip(self.cells, state):
            x = cell(x, h)
            new.append(x)
        return self.out(x), new


def sample_host(logits, rng):
    scores = logits.float().cpu().numpy() / TEMPERATURE
    kth = np.partition(scores, -TOP_K, axis=-1)[:, -TOP_K:].min(-1, keepdims=True)
    scores = np.where(scores < kth, -np.inf, scores)
    probs = np.exp(scores - scores.max(-1, keepdims=True)).astype(np.float64)
    probs /= probs.sum(-1, keepdims=True)
    picked = [rng.choice(VOCAB, p=row) for row in probs]
    return torch.tensor(picked, device=logits.device)


def sample_device(logits):
    values, index = torch.topk(logits.float() / TEMPERATURE, TOP_K)
    choice = torch.multinomial(torch.softmax(values, -1), 1)
    return index.gather(1, choice).squeeze(1)


def generate(model, length, fixed):
    rng = np.random.default_rng(5)
    tokens = torch.zeros(BATCH, dtype=torch.long, device="cuda")
    state = [torch.zeros(BATCH, DIM, device="cuda", dtype=torch.bfloat16) for _ in model.cells]
    story = []
    warm = length // 4
    start = 0.0
    for t in range(length):
        if t == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        logits, state = model(tokens, state)
        tokens = sample_device(logits) if fixed else sample_host(logits, rng)
        story.append(tokens)
    torch.cuda.synchronize()
    per_token = (time.perf_counter() - start) / (length - warm)
    return torch.stack(story, 1), per_token


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(5)
    with torch.device("cuda"):
        model = StoryLM().to(torch.bfloat16).eval()
    with torch.inference_mode():
        stories, seconds = generate(model, args.steps, args.fixed)
    print("first story:", stories[0, :10].tolist())
    print(f"round_ms {seconds * 1000:.3f}")


if __name__ == "__main__":
    main()
