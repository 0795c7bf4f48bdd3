"""Answer batches of questions from a FAQ index: sentence-transformers encode, then a dot-product search."""
import argparse
import os
import random
import statistics
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from sentence_transformers import SentenceTransformer, util
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from transformers.utils import logging

logging.set_verbosity_error()

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
DIM = 384
QUESTIONS = 32
INDEX = 400_000


def make_words(n):
    parts = [c + v for c in "bcdfgklmnprst" for v in "aeiou"]
    words = set()
    while len(words) < n:
        words.add("".join(random.choices(parts, k=random.randint(2, 4))))
    return sorted(words)


def build_encoder(folder, words):
    """Write a fresh checkpoint and load it the usual way (mean pooling on top)."""
    vocab = {t: i for i, t in enumerate(SPECIAL + words)}
    tok = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])])
    PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
                            sep_token="[SEP]", mask_token="[MASK]", model_max_length=128).save_pretrained(folder)
    config = BertConfig(vocab_size=len(vocab), hidden_size=DIM, num_hidden_layers=6, num_attention_heads=6,
                        intermediate_size=1536, max_position_embeddings=128)
    BertModel(config).save_pretrained(folder)
    return SentenceTransformer(folder, device="cuda")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    words = make_words(5000)
    with tempfile.TemporaryDirectory() as folder:
        encoder = build_encoder(folder, words)
    index = torch.nn.functional.normalize(torch.randn(INDEX, DIM), dim=1)
    if opt.fixed:
        index = index.to("cuda")
    questions = [" ".join(random.choices(words, k=random.randint(6, 20))) + "?" for _ in range(2048)]

    def search(batch):
        queries = encoder.encode(batch, batch_size=QUESTIONS, convert_to_tensor=True, normalize_embeddings=True,
                                 show_progress_bar=False)
        if not opt.fixed:
            queries = queries.cpu()
        scores = util.dot_score(queries, index)
        best = scores.topk(10, dim=1)
        return best.indices.tolist(), best.values.tolist()

    def batch_of(n):
        i = (n * QUESTIONS) % len(questions)
        return questions[i:i + QUESTIONS]

    for n in range(4):
        search(batch_of(n))

    times, n, top = [], 0, 0.0
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        start = time.perf_counter()
        _, values = search(batch_of(n))
        times.append(time.perf_counter() - start)
        top = max(top, values[0][0])
        n += 1
    print(f"{n * QUESTIONS} questions, best score {top:.3f}")
    print(f"round_ms {1000 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
