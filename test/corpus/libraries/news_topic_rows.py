"""Label the rows of a table of news snippets with the text-classification pipeline."""
import argparse
import collections
import os
import random
import statistics
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast,
                          TextClassificationPipeline)
from transformers.utils import logging

logging.set_verbosity_error()

TOPICS = ["politics", "sport", "business", "science", "culture", "weather", "travel", "health"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
CHUNK = 64


def make_words(n):
    parts = [c + v for c in "bdfgklmnprstvw" for v in "aeiou"]
    words = set()
    while len(words) < n:
        words.add("".join(random.choices(parts, k=random.randint(2, 4))))
    return sorted(words)


def make_tokenizer(words):
    vocab = {t: i for i, t in enumerate(SPECIAL + words)}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])])
    return PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="[UNK]", pad_token="[PAD]",
                                   cls_token="[CLS]", sep_token="[SEP]", model_max_length=128)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    words = make_words(6000)
    config = BertConfig(vocab_size=len(words) + len(SPECIAL), hidden_size=384, num_hidden_layers=6,
                        num_attention_heads=6, intermediate_size=1536, num_labels=len(TOPICS),
                        id2label=dict(enumerate(TOPICS)), label2id={t: i for i, t in enumerate(TOPICS)})
    classifier = TextClassificationPipeline(model=BertForSequenceClassification(config).eval(),
                                            tokenizer=make_tokenizer(words), device=0)
    rows = [{"id": i, "snippet": " ".join(random.choices(words, k=random.randint(20, 45)))} for i in range(4096)]
    topics = collections.Counter()

    def label_chunk(chunk):
        texts = [row["snippet"] for row in chunk]
        if opt.fixed:
            results = classifier(texts, batch_size=CHUNK)
        else:
            results = [classifier(text) for text in texts]
        for row, result in zip(chunk, results):
            best = result[0] if isinstance(result, list) else result
            row["topic"], row["score"] = best["label"], best["score"]
            topics[row["topic"]] += 1

    chunks = [rows[i:i + CHUNK] for i in range(0, len(rows), CHUNK)]
    for chunk in chunks[:2]:
        label_chunk(chunk)

    times, n = [], 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        start = time.perf_counter()
        label_chunk(chunks[n % len(chunks)])
        times.append(time.perf_counter() - start)
        n += 1
    print(f"{n * CHUNK} rows, most common {topics.most_common(1)[0][0]}")
    print(f"round_ms {1000 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
