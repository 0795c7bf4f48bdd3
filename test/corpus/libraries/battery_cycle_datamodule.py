"""Remaining-useful-life regression on battery charge curves with a LightningDataModule."""
import argparse
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


class ChargeCurves(Dataset):
    def __init__(self, cells=1536, points=512, seed=3):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 1, points, dtype=np.float32)
        fade = rng.uniform(0.6, 1.0, size=(cells, 1)).astype(np.float32)
        voltage = 3.0 + 1.2 * t ** (0.3 / fade)
        current = fade * np.exp(-3 * t)
        temp = 25 + 8 * (1.1 - fade) * np.sin(np.pi * t)
        self.curves = np.stack([voltage, current, temp], axis=1).astype(np.float32)
        self.life = (fade[:, 0] - 0.6) / 0.4

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, i):
        curve = self.curves[i]
        curve = curve + np.random.normal(0, 0.01, curve.shape).astype(np.float32)
        curve = (curve - curve.mean(1, keepdims=True)) / (curve.std(1, keepdims=True) + 1e-5)
        return torch.from_numpy(curve), torch.tensor(self.life[i])


class BatteryData(pl.LightningDataModule):
    def __init__(self, batch_size=64, num_workers=8, keep_workers=False):
        super().__init__()
        self.batch_size, self.num_workers, self.keep_workers = batch_size, num_workers, keep_workers

    def setup(self, stage=None):
        self.train_set = ChargeCurves()

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True, pin_memory=True,
                          drop_last=True, num_workers=self.num_workers,
                          persistent_workers=self.keep_workers)


class LifeRegressor(pl.LightningModule):
    def __init__(self, width=128):
        super().__init__()
        layers, c = [], 3
        for _ in range(5):
            layers += [nn.Conv1d(c, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.GELU()]
            c = width
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.smooth_l1_loss(self.net(x).squeeze(1), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)


class EpochClock(pl.Callback):
    def __init__(self, warmup=3, seconds=3.0):
        self.warmup, self.seconds, self.starts = warmup, seconds, []

    def on_train_epoch_start(self, trainer, module):
        self.starts.append(time.perf_counter())

    def on_train_epoch_end(self, trainer, module):
        measured = self.starts[self.warmup:]
        if len(measured) > 4 and time.perf_counter() - measured[0] > self.seconds:
            trainer.should_stop = True

    def median_ms(self):
        s = self.starts[self.warmup:]
        return 1e3 * statistics.median(b - a for a, b in zip(s, s[1:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    pl.seed_everything(11)
    data = BatteryData(keep_workers=args.fixed)
    clock = EpochClock()
    trainer = pl.Trainer(accelerator="gpu", devices=1, max_epochs=2000, logger=False, callbacks=[clock],
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LifeRegressor(), datamodule=data)
    print(f"epochs {len(clock.starts)}")
    print(f"round_ms {clock.median_ms():.3f}")


if __name__ == "__main__":
    main()
