"""Score candidate answers with a reward model, shard by shard, and keep the best answer of each prompt."""
import argparse
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import GPT2Config, GPT2ForSequenceClassification

VOCAB = 16_384
LENGTH = 512
BATCH = 96
SHARD = 6
CANDIDATES = 8


def load_shard(generator):
    """Prompt and answer tokens of one shard, already cut to the same length."""
    return torch.randint(3, VOCAB, (SHARD, BATCH, LENGTH), generator=generator).pin_memory()


@torch.inference_mode()
def score_shard(model, shard):
    tokens = shard.to("cuda", non_blocking=True)
    rewards = []
    for batch in tokens:
        rewards.append(model(input_ids=batch, use_cache=False).logits[:, 0])
    rewards = torch.cat(rewards).float().view(-1, CANDIDATES)
    rewards = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)
    best = rewards.max(dim=1)
    return best.values.cpu(), best.indices.cpu()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    parser.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(3)
    config = GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, n_embd=768, n_layer=8, n_head=12,
                        activation_function="gelu_pytorch_tanh", num_labels=1, pad_token_id=0, bos_token_id=1,
                        eos_token_id=2)
    model = GPT2ForSequenceClassification(config).to("cuda", torch.bfloat16).eval()
    shards = [load_shard(generator) for _ in range(8)]

    for shard in shards[:3]:
        score_shard(model, shard)

    times, prompts, spread, n = [], 0, 0.0, 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        start = time.perf_counter()
        values, picks = score_shard(model, shards[n % len(shards)])
        times.append(time.perf_counter() - start)
        prompts += len(picks)
        spread += values.mean().item()
        n += 1
    print(f"{prompts} prompts, mean best advantage {spread / n:.3f}")
    print(f"round_ms {1000 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
