"""Distil a small language model from stored teacher logits."""
import argparse
import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, SEQ, BATCH, SHARDS = 4096, 512, 16, 8


def dump_teacher(folder):
    gen = torch.Generator(device="cuda").manual_seed(5)
    for i in range(SHARDS):
        tokens = torch.randint(VOCAB, (BATCH, SEQ), generator=gen, device="cuda")
        logits = torch.randn(BATCH, SEQ, VOCAB, generator=gen, device="cuda", dtype=torch.float16)
        torch.save({"tokens": tokens.cpu(), "logits": logits.cpu()}, os.path.join(folder, f"batch_{i:04d}.pt"))


class TeacherBatches:
    def __init__(self, folder, keep=False):
        self.paths = sorted(os.path.join(folder, f) for f in os.listdir(folder))
        self.keep = keep
        self.memory = {}

    def get(self, step):
        path = self.paths[step % len(self.paths)]
        if path in self.memory:
            return self.memory[path]
        batch = torch.load(path, map_location="cpu")
        if self.keep:
            batch = {k: v.pin_memory() for k, v in batch.items()}
            self.memory[path] = batch
        return batch


class Student(nn.Module):
    def __init__(self, dim=1024, layers=3):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 16, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers))
        self.out = nn.Linear(dim, VOCAB, bias=False)

    def forward(self, tokens):
        h = self.emb(tokens)
        for block in self.blocks:
            h = block(h)
        return self.out(h)


def kd_loss(student, teacher, temperature=2.0):
    s = F.log_softmax(student.float() / temperature, dim=-1)
    t = F.softmax(teacher.float() / temperature, dim=-1)
    return F.kl_div(s.flatten(0, 1), t.flatten(0, 1), reduction="batchmean") * temperature ** 2


def train(folder, steps, keep):
    torch.manual_seed(0)
    student = Student().cuda().to(torch.bfloat16)
    opt = torch.optim.AdamW(student.parameters(), lr=1e-4, fused=True)
    batches = TeacherBatches(folder, keep)
    warm = steps // 4
    for step in range(steps):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        batch = batches.get(step)
        tokens = batch["tokens"].cuda(non_blocking=True)
        teacher = batch["logits"].cuda(non_blocking=True)
        loss = kd_loss(student(tokens), teacher)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"kd loss {loss.item():.4f}")
    print(f"round_ms {(t1 - t0) * 1e3 / (steps - warm):.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=48)
    ap.add_argument("--fixed", action="store_true")
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        dump_teacher(tmp)
        train(tmp, a.steps, a.fixed)
