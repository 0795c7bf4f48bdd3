"""Train a churn classifier on account notes with accelerate: gradient accumulation and a regular evaluation."""
import argparse
import os
import statistics
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

VOCAB = 30_522
LENGTH = 96
UPDATES_PER_EVAL = 5
ACCUMULATE = 4


def make_notes(n):
    ids = torch.randint(5, VOCAB, (n, LENGTH))
    churned = (ids[:, 0] % 2).long()
    return TensorDataset(ids, churned)


def endless(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    torch.manual_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=ACCUMULATE, mixed_precision="bf16")
    config = BertConfig(vocab_size=VOCAB, hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
                        intermediate_size=2048, num_labels=2)
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    schedule = get_linear_schedule_with_warmup(optimizer, 20, 10_000)
    train_loader = DataLoader(make_notes(16_384), batch_size=32, shuffle=True, pin_memory=True, drop_last=True)
    eval_loader = DataLoader(make_notes(256), batch_size=64, pin_memory=True)
    model, optimizer, train_loader, eval_loader, schedule = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, schedule)
    batches = endless(train_loader)

    def evaluate():
        model.eval()
        right = torch.zeros((), device=accelerator.device)
        seen = 0
        with torch.inference_mode():
            for ids, labels in eval_loader:
                guess = model(input_ids=ids).logits.argmax(-1)
                guess, labels = accelerator.gather_for_metrics((guess, labels))
                right += (guess == labels).sum()
                seen += len(labels)
        model.train()
        return right.item() / seen

    def train_updates(n):
        for _ in range(n * ACCUMULATE):
            ids, labels = next(batches)
            with accelerator.accumulate(model):
                loss = model(input_ids=ids, labels=labels).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()

    save_every = 200 if opt.fixed else UPDATES_PER_EVAL
    times, updates, accuracy = [], 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        model.train()
        begin = None
        while begin is None or time.perf_counter() - begin < 3.0:
            start = time.perf_counter()
            train_updates(UPDATES_PER_EVAL)
            accuracy = evaluate()
            updates += UPDATES_PER_EVAL
            if updates % save_every == 0:
                accelerator.save_state(os.path.join(folder, "last"))
            if updates > 2 * UPDATES_PER_EVAL:
                times.append(time.perf_counter() - start)
            elif updates == 2 * UPDATES_PER_EVAL:
                begin = time.perf_counter()
    print(f"{updates} updates, accuracy {accuracy:.3f}")
    print(f"round_ms {1000 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
