"""Tag a folder's worth of product photos."""
import argparse
import time
from collections import Counter

import numpy as np
import torch
from torch import nn

SIZE = 160
TAGS = 200


def build_net():
    layers, prev = [], 3
    for width, stride in ((32, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        layers += [nn.Conv2d(prev, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        prev = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(prev, TAGS)]
    return nn.Sequential(*layers)


class Tagger:
    def __init__(self):
        self.net = build_net().half().cuda().eval().to(memory_format=torch.channels_last)
        self.mean = torch.tensor([124.0, 116.0, 104.0], device="cuda").half().view(3, 1, 1)
        self.std = torch.tensor([58.0, 57.0, 57.0], device="cuda").half().view(3, 1, 1)

    @torch.inference_mode()
    def tag(self, photos):
        x = torch.from_numpy(photos).cuda().to(torch.half, memory_format=torch.channels_last)
        x = (x - self.mean) / self.std
        return self.net(x).argmax(1).tolist()


def tag_all(tagger, photos, size):
    tags = []
    for i in range(0, len(photos), size):
        tags += tagger.tag(np.stack(photos[i:i + size]))
    return tags


def run(count, size):
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    photos = [rng.integers(0, 256, (3, SIZE, SIZE), dtype=np.uint8) for _ in range(count)]
    tagger = Tagger()
    head = count // 4
    tags = Counter(tag_all(tagger, photos[:head], size))
    torch.cuda.synchronize()
    start = time.perf_counter()
    tags.update(tag_all(tagger, photos[head:], size))
    torch.cuda.synchronize()
    stop = time.perf_counter()
    print("most common", tags.most_common(3))
    print(f"round_ms {(stop - start) * 1000 / (count - head):.4f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=384, help="photos")
    cli.add_argument("--fixed", action="store_true")
    ns = cli.parse_args()
    run(ns.steps, 32 if ns.fixed else 1)
