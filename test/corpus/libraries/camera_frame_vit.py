"""Classify frames of loading-dock cameras with a ViT."""
import argparse
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from PIL import Image
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

try:
    from transformers import ViTImageProcessorPil
except ImportError:
    ViTImageProcessorPil = ViTImageProcessor

LABELS = ["empty", "truck", "van", "forklift", "person", "pallet", "door_open", "unknown"]
CAMERAS = 32
SIZE = {"height": 224, "width": 224}


def make_footage(rng, seconds=4):
    """A few frames for each camera, 640 x 480 RGB."""
    footage = []
    for _ in range(seconds):
        frames = []
        for _ in range(CAMERAS):
            scene = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
            frame = np.array(Image.fromarray(scene).resize((640, 480), Image.BICUBIC))
            noise = rng.integers(0, 12, frame.shape, dtype=np.uint8)
            frames.append(np.clip(frame.astype(np.int16) + noise, 0, 255).astype(np.uint8))
        footage.append(frames)
    return footage


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    config = ViTConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536,
                       image_size=224, patch_size=16, num_labels=len(LABELS))
    model = ViTForImageClassification(config).to("cuda", torch.bfloat16).eval()
    footage = make_footage(rng)

    if opt.fixed:
        processor = ViTImageProcessor(size=SIZE)

        def prepare(frames):
            return processor(images=frames, return_tensors="pt", device="cuda")["pixel_values"]
    else:
        processor = ViTImageProcessorPil(size=SIZE)

        def prepare(frames):
            images = [Image.fromarray(f) for f in frames]
            return processor(images=images, return_tensors="pt")["pixel_values"].to("cuda")

    @torch.inference_mode()
    def classify(frames):
        pixels = prepare(frames).to(torch.bfloat16)
        return model(pixel_values=pixels).logits.argmax(-1).tolist()

    for i in range(4):
        classify(footage[i % len(footage)])

    times, counts, tick = [], dict.fromkeys(LABELS, 0), 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        start = time.perf_counter()
        for label in classify(footage[tick % len(footage)]):
            counts[LABELS[label]] += 1
        times.append(time.perf_counter() - start)
        tick += 1
    print("frames", sum(counts.values()), "most common", max(counts, key=counts.get))
    print(f"round_ms {1000 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
