"""Write short product descriptions in large batches with model.generate()."""
import argparse
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import GPT2Config, GPT2LMHeadModel, StoppingCriteria, StoppingCriteriaList

VOCAB = 4096
PAD, BOS, EOS = 0, 1, 2
DOT, EXCLAMATION, NEWLINE = 10, 11, 12
BATCH = 256
PROMPT = 32
NEW_TOKENS = 24


class ParagraphEnd(StoppingCriteria):
    """A row is finished when a sentence mark is followed by a line break."""

    def __init__(self):
        self.endings = {(DOT, NEWLINE), (EXCLAMATION, NEWLINE), (NEWLINE, NEWLINE)}

    def __call__(self, input_ids, scores, **kwargs):
        done = []
        for row in input_ids:
            tail = (row[-2].item(), row[-1].item())
            done.append(tail in self.endings)
        return torch.tensor(done, device=input_ids.device)


class ParagraphEndBatched(StoppingCriteria):
    def __init__(self, device):
        self.marks = torch.tensor([DOT, EXCLAMATION, NEWLINE], device=device)

    def __call__(self, input_ids, scores, **kwargs):
        return torch.isin(input_ids[:, -2], self.marks) & (input_ids[:, -1] == NEWLINE)


def product_prompts(generator):
    """Category, brand and attribute tokens of a batch of products."""
    ids = torch.randint(20, VOCAB, (BATCH, PROMPT), generator=generator)
    ids[:, 0] = BOS
    return ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    config = GPT2Config(vocab_size=VOCAB, n_positions=128, n_embd=512, n_layer=6, n_head=8,
                        bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD)
    model = GPT2LMHeadModel(config).to("cuda", torch.bfloat16).eval()
    ending = ParagraphEndBatched("cuda") if opt.fixed else ParagraphEnd()
    criteria = StoppingCriteriaList([ending])

    def write_batch():
        ids = product_prompts(generator).to("cuda")
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=True,
                             top_k=50, temperature=0.9, pad_token_id=PAD, stopping_criteria=criteria)
        return out[:, PROMPT:].tolist()

    for _ in range(3):
        write_batch()
    per_token, written = [], 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        start = time.perf_counter()
        texts = write_batch()
        per_token.append((time.perf_counter() - start) / len(texts[0]))
        written += len(texts)
    print(f"{written} descriptions")
    print(f"round_ms {1000 * statistics.median(per_token):.3f}")


if __name__ == "__main__":
    main()
