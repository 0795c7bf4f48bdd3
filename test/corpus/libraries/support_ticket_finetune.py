"""Fine-tune a small BERT classifier that routes support tickets to a team."""
import argparse
import html
import os
import random
import re
import statistics
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Trainer,
                          TrainerCallback, TrainingArguments)

TEAMS = ["billing", "login", "shipping", "returns", "hardware", "other"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def make_words(n):
    syllables = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]
    words = set()
    while len(words) < n:
        words.add("".join(random.choices(syllables, k=random.randint(2, 4))))
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


class TicketDataset(Dataset):
    def __init__(self, words, n=3000, epoch_size=200_000):
        self.tickets = ["Hello,&nbsp;<br>" + " ".join(random.choices(words, k=random.randint(500, 900)))
                        + "<br>-- <br>Sent from my phone" for _ in range(n)]
        self.teams = [random.randrange(len(TEAMS)) for _ in range(n)]
        self.epoch_size = epoch_size

    def __len__(self):
        return self.epoch_size

    def __getitem__(self, i):
        i %= len(self.tickets)
        return {"text": self.tickets[i], "label": self.teams[i]}


class TicketCollator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def clean(self, text):
        text = html.unescape(text)
        text = re.sub(r"<[^>]+>", " ", text)
        text = re.sub(r"--\s+Sent from .*$", "", text)
        return re.sub(r"\s+", " ", text).strip()

    def __call__(self, rows):
        encoded = [self.tokenizer(self.clean(r["text"]), truncation=True, padding="max_length", max_length=128)
                   for r in rows]
        batch = {k: torch.tensor([e[k] for e in encoded]) for k in encoded[0].keys()}
        batch["labels"] = torch.tensor([r["label"] for r in rows])
        return batch


class StopAfter(TrainerCallback):
    def __init__(self, seconds, warmup=10):
        self.seconds, self.warmup = seconds, warmup
        self.steps, self.times, self.last, self.begin = 0, [], None, None

    def on_step_end(self, args, state, control, **kwargs):
        now = time.perf_counter()
        self.steps += 1
        if self.steps == self.warmup:
            self.begin = now
        elif self.steps > self.warmup:
            self.times.append(now - self.last)
            if now - self.begin > self.seconds:
                control.should_training_stop = True
        self.last = now
        return control


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    words = make_words(8000)
    tokenizer = make_tokenizer(words)
    config = BertConfig(vocab_size=len(words) + len(SPECIAL), hidden_size=256, num_hidden_layers=4,
                        num_attention_heads=4, intermediate_size=1024, num_labels=len(TEAMS))
    model = BertForSequenceClassification(config)
    timer = StopAfter(3.0)
    with tempfile.TemporaryDirectory() as out:
        extra = dict(dataloader_num_workers=12, dataloader_prefetch_factor=4) if opt.fixed else {}
        args = TrainingArguments(output_dir=out, per_device_train_batch_size=64, max_steps=100_000, learning_rate=1e-4,
                                 logging_strategy="no", save_strategy="no", report_to="none", disable_tqdm=True,
                                 remove_unused_columns=False, **extra)
        trainer = Trainer(model=model, args=args, train_dataset=TicketDataset(words),
                          data_collator=TicketCollator(tokenizer), callbacks=[timer])
        trainer.train()
    print(f"round_ms {1000 * statistics.median(timer.times):.3f}")


if __name__ == "__main__":
    main()
