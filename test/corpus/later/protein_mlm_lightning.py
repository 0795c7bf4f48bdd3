import argparse
import math
import time

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

AMINO = "LAGVSERTIDPKQNFYMHWC"
SPECIAL = ["<pad>", "<mask>", "<cls>", "<eos>"]
MASK, CLS, EOS = 1, 2, 3
VOCAB = len(SPECIAL) + len(AMINO)


def synthetic_proteome(n, length, seed=0):
    g = torch.Generator().manual_seed(seed)
    freq = torch.linspace(1.0, 0.15, len(AMINO))
    seqs = torch.multinomial(freq, n * length, replacement=True, generator=g).view(n, length)
    # repeat motifs so that there is something to learn
    motif = seqs[:, : length // 8].clone()
    seqs[:, length // 2: length // 2 + motif.shape[1]] = motif
    seqs += len(SPECIAL)
    seqs[:, 0], seqs[:, -1] = CLS, EOS
    return TensorDataset(seqs)


class ProteinMLM(pl.LightningModule):
    def __init__(self, dim=768, layers=12, heads=12, length=256, lr=3e-4, warmup=30, mask_prob=0.15):
        super().__init__()
        self.save_hyperparameters()
        self.tokens = nn.Embedding(VOCAB, dim)
        self.positions = nn.Parameter(torch.randn(length, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.1, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim), nn.Linear(dim, VOCAB))

    def forward(self, ids):
        return self.head(self.encoder(self.tokens(ids) + self.positions))

    def corrupt(self, ids):
        pick = (torch.rand(ids.shape, device=ids.device) < self.hparams.mask_prob) & (ids >= len(SPECIAL))
        roll = torch.rand(ids.shape, device=ids.device)
        noisy = torch.where(pick & (roll < 0.8), MASK, ids)
        noisy = torch.where(pick & (roll > 0.9), torch.randint_like(ids, len(SPECIAL), VOCAB), noisy)
        return noisy, torch.where(pick, ids, -100)

    def training_step(self, batch, batch_idx):
        noisy, target = self.corrupt(batch[0])
        logits = self(noisy)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self):
        decay = [p for p in self.parameters() if p.dim() > 1]
        plain = [p for p in self.parameters() if p.dim() <= 1]
        opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05},
                                 {"params": plain, "weight_decay": 0.0}], lr=self.hparams.lr, betas=(0.9, 0.98))

        def schedule(step):
            if step < self.hparams.warmup:
                return (step + 1) / self.hparams.warmup
            return 0.5 * (1 + math.cos(math.pi * min(1.0, step / 10000)))

        sched = torch.optim.lr_scheduler.LambdaLR(opt, schedule)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


class ConsoleLog(pl.Callback):
    def __init__(self, steps, every):
        self.steps, self.every = steps, every
        self.seen = 0
        self.skip = steps // 4
        self.begin = None

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if self.seen == self.skip:
            torch.cuda.synchronize()
            self.begin = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.seen += 1
        if self.seen % self.every == 0:
            loss = outputs["loss"].item()
            lr = trainer.optimizers[0].param_groups[0]["lr"]
            print(f"[{self.seen:>4}/{self.steps}] loss={loss:.3f} ppl={math.exp(min(loss, 20)):.2f} lr={lr:.2e}",
                  flush=True)

    def on_train_end(self, trainer, module):
        torch.cuda.synchronize()
        self.round_ms = (time.perf_counter() - self.begin) * 1000 / (self.seen - self.skip)


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=75)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--length", type=int, default=256)
    ap.add_argument("--dim", type=int, default=768)
    ap.add_argument("--layers", type=int, default=12)
    ap.add_argument("--fixed", action="store_true")
    return ap.parse_args()


if __name__ == "__main__":
    cfg = parse()
    pl.seed_everything(7)
    loader = DataLoader(synthetic_proteome(8192, cfg.length), batch_size=cfg.batch_size, shuffle=True,
                        drop_last=True, pin_memory=True)
    model = ProteinMLM(dim=cfg.dim, layers=cfg.layers, heads=cfg.dim // 64, length=cfg.length)
    console = ConsoleLog(cfg.steps, every=15)
    trainer = pl.Trainer(
        accelerator="gpu",
        devices=1,
        precision="bf16-mixed" if cfg.fixed else "32-true",
        max_steps=cfg.steps,
        gradient_clip_val=1.0,
        callbacks=[console],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    print(f"round_ms {console.round_ms:.3f}")
