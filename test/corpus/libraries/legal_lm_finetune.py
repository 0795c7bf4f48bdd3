"""Continue training a GPT-2 style language model on contract clauses."""
import argparse
import os
import statistics
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

CONTEXT = 512
VOCAB = 8192
LOG_EVERY = 10


class ClauseBlocks(Dataset):
    """Token stream of the corpus cut into blocks of equal length."""

    def __init__(self, blocks=4096, epoch_size=400_000):
        ranks = torch.rand(blocks, CONTEXT)
        self.tokens = (3 + (VOCAB - 3) * ranks ** 3).long().clamp_(max=VOCAB - 1)
        self.epoch_size = epoch_size

    def __len__(self):
        return self.epoch_size

    def __getitem__(self, i):
        block = self.tokens[i % len(self.tokens)]
        return {"input_ids": block, "labels": block}


class LossWatch(TrainerCallback):
    def __init__(self, seconds, warmup_logs=2):
        self.seconds, self.warmup_logs = seconds, warmup_logs
        self.logs, self.times, self.losses = 0, [], []
        self.last = self.begin = None

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" not in (logs or {}):
            return control
        now = time.perf_counter()
        self.losses.append(float(logs["loss"]))
        self.logs += 1
        if self.logs == self.warmup_logs:
            self.begin = now
        elif self.logs > self.warmup_logs:
            self.times.append((now - self.last) / LOG_EVERY)
            if now - self.begin > self.seconds:
                control.should_training_stop = True
        self.last = now
        return control


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    parser.parse_args()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=768, n_layer=8, n_head=12,
                        activation_function="gelu_pytorch_tanh", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                        bos_token_id=1, eos_token_id=2, use_cache=False)
    model = GPT2LMHeadModel(config)
    watch = LossWatch(3.0)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(output_dir=out, per_device_train_batch_size=24, max_steps=100_000, learning_rate=3e-4,
                                 bf16=True, optim="adamw_torch_fused", logging_steps=LOG_EVERY,
                                 logging_nan_inf_filter=False, save_strategy="no", report_to="none", disable_tqdm=True,
                                 dataloader_num_workers=4, dataloader_drop_last=True)
        trainer = Trainer(model=model, args=args, train_dataset=ClauseBlocks(), callbacks=[watch])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print(f"loss {watch.losses[0]:.3f} -> {watch.losses[-1]:.3f}")
    print(f"round_ms {1000 * statistics.median(watch.times):.3f}")


if __name__ == "__main__":
    main()
