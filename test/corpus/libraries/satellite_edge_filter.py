"""Edge maps of a stream of 4K satellite frames with CuPy."""
import argparse
import os
import statistics
import time

os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")

import cupy as cp
import cupyx
import numpy as np
from cupyx.scipy import ndimage as ndi

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--height", type=int, default=2160)
parser.add_argument("--width", type=int, default=3840)
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()
SHAPE = (args.height, args.width)

to_unit = cp.ElementwiseKernel("uint8 p", "float32 y", "y = p * (1.0f / 255.0f)", "to_unit")
magnitude = cp.ElementwiseKernel("float32 a, float32 b", "float32 y", "y = sqrtf(a * a + b * b)", "magnitude")


class Camera:
    """Ring buffer of frames, filled once with a moving pattern."""

    def __init__(self, slots=6):
        rng = np.random.default_rng(5)
        yy, xx = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float32)
        noise = rng.integers(0, 32, SHAPE, dtype=np.uint8)
        self.ring = []
        for i in range(slots):
            buf = cupyx.empty_pinned(SHAPE, np.uint8) if args.fixed else np.empty(SHAPE, np.uint8)
            buf[:] = (110 + 90 * np.sin(xx / 37 + i) * np.cos(yy / 53)).astype(np.uint8) + noise
            self.ring.append(buf)
        self.count = 0

    def read(self):
        self.count += 1
        return self.ring[self.count % len(self.ring)]


def edges(raw):
    img = ndi.gaussian_filter(to_unit(raw), 1.5)
    gx = ndi.sobel(img, axis=1)
    gy = ndi.sobel(img, axis=0)
    return magnitude(gx, gy)


class Pipeline:
    def __init__(self):
        self.raw = cp.empty(SHAPE, cp.uint8)
        self.host = cupyx.empty_pinned(SHAPE, np.float32) if args.fixed else None

    def process(self, frame):
        if args.fixed:
            self.raw.set(frame)
            return edges(self.raw).get(out=self.host)
        raw = cp.asarray(frame)
        return cp.asnumpy(edges(raw))


def brightest_tile(edge_map):
    rows = edge_map[:: SHAPE[0] // 8, :: SHAPE[1] // 8]
    return int(rows.argmax())


def main():
    camera, pipeline = Camera(), Pipeline()
    tiles, times = [], []
    for _ in range(5):
        tiles.append(brightest_tile(pipeline.process(camera.read())))
    stop = time.perf_counter() + args.seconds
    while time.perf_counter() < stop:
        t0 = time.perf_counter()
        edge_map = pipeline.process(camera.read())
        tiles.append(brightest_tile(edge_map))
        times.append((time.perf_counter() - t0) * 1e3)
    print(f"{len(times)} frames, last tile {tiles[-1]}")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
