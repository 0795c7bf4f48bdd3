"""Masked-residue pretraining of a small protein encoder with Lightning and ModelCheckpoint."""
import argparse
import logging
import statistics
import tempfile
import time
import warnings

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
RESIDUES, MASK, LENGTH = 25, 25, 256


class Proteins(Dataset):
    def __init__(self, n=200_000, seed=2):
        g = torch.Generator().manual_seed(seed)
        self.seqs = torch.randint(0, RESIDUES, (n, LENGTH), generator=g, dtype=torch.int16)

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return self.seqs[i].long()


class ProteinData(pl.LightningDataModule):
    def setup(self, stage=None):
        self.proteins = Proteins()

    def train_dataloader(self):
        return DataLoader(self.proteins, batch_size=32, shuffle=True, drop_last=True, num_workers=2,
                          pin_memory=True, persistent_workers=True)


class ProteinEncoder(pl.LightningModule):
    def __init__(self, dim=384, depth=4, heads=6):
        super().__init__()
        self.embed = nn.Embedding(RESIDUES + 1, dim)
        self.position = nn.Parameter(torch.randn(1, LENGTH, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, RESIDUES)

    def training_step(self, seqs, batch_idx):
        masked = torch.rand(seqs.shape, device=seqs.device) < 0.15
        hidden = self.encoder(self.embed(seqs.masked_fill(masked, MASK)) + self.position)
        loss = nn.functional.cross_entropy(self.head(hidden).transpose(1, 2), seqs, reduction="none")
        return (loss * masked).sum() / masked.sum()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4, fused=True)


class Progress(pl.Callback):
    """Wall time of every ten optimizer steps."""

    def __init__(self, every=10, warmup=2, seconds=3.0):
        self.every, self.warmup, self.seconds, self.marks = every, warmup, seconds, []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % self.every:
            return
        torch.cuda.synchronize()
        self.marks.append(time.perf_counter())
        if len(self.marks) > self.warmup + 3 and self.marks[-1] - self.marks[self.warmup] > self.seconds:
            trainer.should_stop = True

    def median_ms(self):
        m = self.marks[self.warmup:]
        return 1e3 * statistics.median(b - a for a, b in zip(m, m[1:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    pl.seed_everything(8)
    progress = Progress()
    with tempfile.TemporaryDirectory() as folder:
        keep = ModelCheckpoint(dirpath=folder, filename="protein-{step}", save_top_k=1,
                               every_n_train_steps=500 if args.fixed else 5)
        trainer = pl.Trainer(accelerator="gpu", devices=1, precision="bf16-mixed", max_epochs=20,
                             logger=False, callbacks=[progress, keep], default_root_dir=folder,
                             enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(ProteinEncoder(), datamodule=ProteinData())
    print(f"steps {trainer.global_step}")
    print(f"round_ms {progress.median_ms():.3f}")


if __name__ == "__main__":
    main()
