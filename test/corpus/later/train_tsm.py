"""Action recognition with a temporal-shift ResNet-50 on short clips.

The "videos" are kept as JPEG frame lists in memory, as if they came from an
extracted-frames archive (rawframes layout), so that no disk is involved.
"""
import argparse
import io
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50

WIDTH, HEIGHT = 320, 240


def jpeg_bytes(array):
    buf = io.BytesIO()
    Image.fromarray(array).save(buf, "JPEG", quality=88)
    return buf.getvalue()


def synth_archive(num_videos, frames_per_video, seed=0):
    rng = np.random.default_rng(seed)
    archive = []
    for _ in range(num_videos):
        coarse = rng.integers(0, 256, (15, 20, 3), dtype=np.uint8)
        base = np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.BICUBIC))
        grain = rng.integers(0, 24, base.shape, dtype=np.uint8)
        base = np.minimum(base.astype(np.uint16) + grain, 255).astype(np.uint8)
        dx, dy = rng.integers(-4, 5, 2)
        archive.append([jpeg_bytes(np.roll(base, (dy * t, dx * t), (0, 1)))
                        for t in range(frames_per_video)])
    return archive


class ClipDataset(Dataset):
    def __init__(self, archive, labels, length, clip_len=8, stride=2, size=128):
        self.archive = archive
        self.labels = labels
        self.length = length
        self.clip_len = clip_len
        self.stride = stride
        self.size = size

    def __len__(self):
        return self.length

    def _crop_box(self):
        scale = random.uniform(0.6, 1.0)
        side = int(HEIGHT * scale)
        left = random.randint(0, WIDTH - side)
        top = random.randint(0, HEIGHT - side)
        return left, top, left + side, top + side

    def __getitem__(self, index):
        vid = index % len(self.archive)
        frames = self.archive[vid]
        span = self.clip_len * self.stride
        start = random.randint(0, len(frames) - span)
        box = self._crop_box()
        flip = random.random() < 0.5
        clip = np.empty((self.clip_len, self.size, self.size, 3), dtype=np.uint8)
        for t in range(self.clip_len):
            img = Image.open(io.BytesIO(frames[start + t * self.stride])).convert("RGB")
            img = img.resize((self.size, self.size), Image.BILINEAR, box=box)
            if flip:
                img = img.transpose(Image.FLIP_LEFT_RIGHT)
            clip[t] = np.asarray(img)
        return torch.from_numpy(clip), self.labels[vid]


class TemporalShift(nn.Module):
    def __init__(self, conv, clip_len, fold_div=8):
        super().__init__()
        self.conv = conv
        self.clip_len = clip_len
        self.fold_div = fold_div

    def forward(self, x):
        bt, c, h, w = x.shape
        x = x.view(bt // self.clip_len, self.clip_len, c, h, w)
        fold = c // self.fold_div
        left = F.pad(x[:, 1:, :fold], (0, 0, 0, 0, 0, 0, 0, 1))
        right = F.pad(x[:, :-1, fold:2 * fold], (0, 0, 0, 0, 0, 0, 1, 0))
        x = torch.cat([left, right, x[:, :, 2 * fold:]], dim=2)
        x = x.reshape(bt, c, h, w).contiguous(memory_format=torch.channels_last)
        return self.conv(x)


class TSM(nn.Module):
    def __init__(self, num_classes, clip_len):
        super().__init__()
        self.clip_len = clip_len
        self.net = resnet50(weights=None, num_classes=num_classes)
        for stage in (self.net.layer1, self.net.layer2, self.net.layer3, self.net.layer4):
            for block in list(stage)[::2]:
                block.conv1 = TemporalShift(block.conv1, clip_len)

    def forward(self, x):
        logits = self.net(x)
        return logits.view(-1, self.clip_len, logits.size(-1)).mean(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--clip-len", type=int, default=8)
    ap.add_argument("--classes", type=int, default=60)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    torch.manual_seed(0)
    random.seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda")

    t = time.time()
    archive = synth_archive(num_videos=48, frames_per_video=24)
    labels = [i % args.classes for i in range(len(archive))]
    size = sum(len(f) for v in archive for f in v) / 2**20
    print(f"archive: {len(archive)} videos, {size:.1f} MiB of JPEG, {time.time() - t:.1f} s", flush=True)

    dataset = ClipDataset(archive, labels, args.steps * args.batch, args.clip_len)
    loader = DataLoader(dataset, batch_size=args.batch, shuffle=True, drop_last=True,
                        num_workers=14 if args.fixed else 2, pin_memory=True)

    model = TSM(args.classes, args.clip_len).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1) * 255
    std = torch.tensor([0.229, 0.224, 0.225], device=device).view(1, 3, 1, 1) * 255

    model.train()
    warm = args.steps // 4
    running = torch.zeros((), device=device)
    for step, (clips, target) in enumerate(loader):
        if step == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        clips = clips.to(device, non_blocking=True).flatten(0, 1).permute(0, 3, 1, 2)
        target = target.to(device, non_blocking=True)
        x = (clips.float() - mean) / std
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(x)
            loss = F.cross_entropy(logits.float(), target, label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running = 0.95 * running + 0.05 * loss.detach()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  avg {running.item():.4f}", flush=True)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - t0
    print(f"round_ms {elapsed * 1000 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
