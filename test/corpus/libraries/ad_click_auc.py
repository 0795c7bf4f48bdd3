"""Click-through-rate model in Lightning with a windowed AUC and per-campaign calibration in the training step."""
import argparse
import collections
import logging
import statistics
import time
import warnings

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
FIELDS, VOCAB, CAMPAIGNS, BATCH, WINDOW = 8, 20000, 64, 4096, 16


class ImpressionBatches(Dataset):
    def __init__(self, batches=128, repeats=200, seed=5):
        g = torch.Generator().manual_seed(seed)
        self.repeats = repeats
        self.ids = torch.randint(0, VOCAB, (batches, BATCH, FIELDS), generator=g)
        self.campaign = torch.randint(0, CAMPAIGNS, (batches, BATCH), generator=g)
        self.click = (torch.rand(batches, BATCH, generator=g) < 0.05 + 0.1 * (self.ids[..., 0] % 2)).float()

    def __len__(self):
        return len(self.ids) * self.repeats

    def __getitem__(self, i):
        i %= len(self.ids)
        return self.ids[i], self.campaign[i], self.click[i]


class WindowOnHost:
    def __init__(self):
        self.parts = collections.deque(maxlen=WINDOW)

    def __call__(self, score, click, campaign):
        self.parts.append(tuple(v.cpu().numpy() for v in (score, click, campaign)))
        s, y, c = (np.concatenate(p) for p in zip(*self.parts))
        ranks = np.empty(len(s))
        ranks[np.argsort(s, kind="stable")] = np.arange(1, len(s) + 1)
        pos = y.sum()
        auc = (ranks[y == 1].sum() - pos * (pos + 1) / 2) / max(pos * (len(s) - pos), 1)
        ratios = [s[c == k].sum() / max(y[c == k].sum(), 1) for k in range(CAMPAIGNS)]
        return float(auc), float(np.abs(np.array(ratios) - 1).mean())


class WindowOnDevice:
    def __init__(self):
        self.parts = collections.deque(maxlen=WINDOW)

    def __call__(self, score, click, campaign):
        self.parts.append((score, click, campaign))
        s, y, c = (torch.cat(p) for p in zip(*self.parts))
        hits = y[torch.argsort(s, stable=True)].double()
        ranks = torch.arange(1, len(s) + 1, device=s.device, dtype=torch.float64)
        pos = hits.sum()
        auc = ((ranks * hits).sum() - pos * (pos + 1) / 2) / (pos * (len(s) - pos)).clamp(min=1)
        sums = torch.zeros(2, CAMPAIGNS, device=s.device).index_add_(1, c, torch.stack([s, y]))
        return auc, (sums[0] / sums[1].clamp(min=1) - 1).abs().mean()


class ClickModel(pl.LightningModule):
    def __init__(self, window, dim=32):
        super().__init__()
        self.window = window
        self.table = nn.Embedding(FIELDS * VOCAB, dim)
        self.register_buffer("offset", torch.arange(FIELDS) * VOCAB)
        self.mlp = nn.Sequential(nn.Linear(FIELDS * dim, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                 nn.Linear(256, 1))

    def training_step(self, batch, batch_idx):
        ids, campaign, click = batch
        logit = self.mlp(self.table(ids + self.offset).flatten(1)).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, click)
        auc, calibration = self.window(torch.sigmoid(logit.detach()), click, campaign)
        self.log_dict({"train/auc": auc, "train/calibration": calibration}, batch_size=BATCH)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)


class StepClock(pl.Callback):
    def __init__(self, warmup=30, seconds=3.0):
        self.warmup, self.seconds, self.ends = warmup, seconds, []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.ends.append(time.perf_counter())
        if len(self.ends) > self.warmup and self.ends[-1] - self.ends[self.warmup] > self.seconds:
            trainer.should_stop = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    pl.seed_everything(1)
    clock = StepClock()
    model = ClickModel(WindowOnDevice() if args.fixed else WindowOnHost())
    loader = DataLoader(ImpressionBatches(), batch_size=None, num_workers=0, pin_memory=True)
    trainer = pl.Trainer(accelerator="gpu", devices=1, max_epochs=50, logger=False, callbacks=[clock],
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, loader)
    ends = clock.ends[clock.warmup:]
    print(f"round_ms {1e3 * statistics.median(b - a for a, b in zip(ends, ends[1:])):.3f}")


if __name__ == "__main__":
    main()
