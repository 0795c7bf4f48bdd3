"""Fine-tune a ResNet on leaf photographs, augmented with torchvision.transforms.v2."""
import argparse
import io
import statistics
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torchvision import models
from torchvision.transforms import v2


def make_photos(count=400, seed=6):
    rng = np.random.default_rng(seed)
    photos = []
    for i in range(count):
        label = i % 8
        coarse = rng.integers(0, 255, size=(14, 14, 3), dtype=np.uint8)
        coarse[..., 1] = np.minimum(coarse[..., 1].astype(int) + 8 * label, 255)
        buffer = io.BytesIO()
        Image.fromarray(coarse).resize((224, 224), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=90)
        photos.append((buffer.getvalue(), label))
    return photos


class Leaves(Dataset):
    def __init__(self, photos):
        self.photos = photos
        self.transform = v2.Compose([
            v2.RandomResizedCrop(128, scale=(0.4, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(brightness=0.2, contrast=0.2, saturation=0.2),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ])

    def __len__(self):
        return len(self.photos)

    def __getitem__(self, i):
        jpeg, label = self.photos[i]
        image = Image.open(io.BytesIO(jpeg)).convert("RGB")
        return self.transform(image), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    leaves = Leaves(make_photos())
    loader = DataLoader(leaves, batch_size=16, pin_memory=True,
                        sampler=RandomSampler(leaves, replacement=True, num_samples=1_000_000),
                        num_workers=12 if args.fixed else 0)
    model = models.resnet18(weights=None, num_classes=8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    batches = iter(loader)

    def train(steps=12):
        total = torch.zeros((), device=device)
        for _ in range(steps):
            images, labels = next(batches)
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total.item() / steps

    for _ in range(2):
        train()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < 3.0:
        begin = time.perf_counter()
        loss = train()
        times.append(time.perf_counter() - begin)
    print(f"rounds {len(times)} loss {loss:.3f}")
    print(f"round_ms {1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
