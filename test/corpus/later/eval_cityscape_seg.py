# Evaluate a semantic segmentation network: mIoU, pixel accuracy, per-class table.
import argparse
import time

import numpy as np
import torch
from torchvision.models.segmentation import deeplabv3_resnet50

CLASSES = ("road sidewalk building wall fence pole light sign vegetation terrain sky "
           "person rider car truck bus train motorcycle bicycle").split()
IGNORE = 255
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class FakeStreets(torch.utils.data.Dataset):
    """Blocky street-like scenes kept in memory as uint8."""

    def __init__(self, n, size, seed=0):
        g = torch.Generator().manual_seed(seed)
        cells = torch.randint(len(CLASSES), (n, size // 32, size // 32), generator=g)
        labels = cells.repeat_interleave(32, 1).repeat_interleave(32, 2)
        palette = torch.randint(30, 220, (len(CLASSES), 3), generator=g)
        images = palette[labels].permute(0, 3, 1, 2) + torch.randint(-25, 25, (n, 3, size, size), generator=g)
        self.images = images.to(torch.uint8)
        labels[:, -size // 16:] = IGNORE
        self.labels = labels.to(torch.uint8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class NumpyConfusion:
    def __init__(self, n):
        self.n = n
        self.mat = np.zeros((n, n), dtype=np.int64)

    def update(self, logits, target):
        scores = logits.float().cpu().numpy()
        pred = np.argmax(scores, axis=1)
        truth = target.cpu().numpy().astype(np.int64)
        keep = truth != IGNORE
        self.mat += np.bincount(truth[keep] * self.n + pred[keep], minlength=self.n ** 2).reshape(self.n, self.n)

    def numpy(self):
        return self.mat


class DeviceConfusion:
    def __init__(self, n, device):
        self.n = n
        self.mat = torch.zeros(n * n + 1, dtype=torch.int64, device=device)

    def update(self, logits, target):
        truth = target.long()
        cell = torch.where(truth == IGNORE, self.n ** 2, truth * self.n + logits.argmax(dim=1))
        self.mat += torch.bincount(cell.flatten(), minlength=self.n ** 2 + 1)

    def numpy(self):
        return self.mat[:-1].view(self.n, self.n).cpu().numpy()


def summarise(mat):
    inter = np.diag(mat).astype(np.float64)
    union = mat.sum(0) + mat.sum(1) - inter
    iou = inter / np.maximum(union, 1)
    return iou, inter.sum() / max(mat.sum(), 1)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--batches", type=int, default=90)
    p.add_argument("--batch-size", type=int, default=2)
    p.add_argument("--size", type=int, default=512)
    p.add_argument("--images", type=int, default=32)
    p.add_argument("--fixed", action="store_true")
    return p.parse_args()


def forever(loader):
    while True:
        for item in loader:
            yield item


@torch.no_grad()
def evaluate(args):
    device = torch.device("cuda")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=len(CLASSES))
    model = model.to(device).eval()
    mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1) * 255
    std = torch.tensor(STD, device=device).view(1, 3, 1, 1) * 255

    loader = torch.utils.data.DataLoader(FakeStreets(args.images, args.size), batch_size=args.batch_size,
                                         drop_last=True, pin_memory=True)
    confusion = DeviceConfusion(len(CLASSES), device) if args.fixed else NumpyConfusion(len(CLASSES))

    skip = args.batches // 4
    for i, (image, label) in zip(range(args.batches), forever(loader)):
        if i == skip:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        image = image.to(device, non_blocking=True)
        label = label.to(device, non_blocking=True)
        x = (image.float() - mean) / std
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(x)["out"]
        confusion.update(logits, label)
        if (i + 1) % 25 == 0:
            iou, acc = summarise(confusion.numpy())
            print(f"  {i + 1}/{args.batches} batches  mIoU {iou.mean() * 100:.2f}  acc {acc * 100:.2f}", flush=True)
    torch.cuda.synchronize()
    elapsed = time.perf_counter() - t0
    return summarise(confusion.numpy()), 1000 * elapsed / (args.batches - skip)


if __name__ == "__main__":
    (iou, acc), round_ms = evaluate(parse_args())
    for name, value in zip(CLASSES, iou):
        print(f"{name:>12s} {value * 100:6.2f}")
    print(f"mIoU {iou.mean() * 100:.2f}  pixel accuracy {acc * 100:.2f}")
    print(f"round_ms {round_ms:.3f}")
