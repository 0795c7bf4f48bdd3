"""Receipt scanner: an ONNX feature extractor in front of a torch classifier."""
import argparse
import statistics
import time

import numpy as np
import onnxruntime as ort
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()
SIZE = 224


def extractor_weights(rng):
    shapes = {"w1": (16, 1, 5, 5), "w2": (24, 16, 3, 3), "w3": (16, 24, 3, 3)}
    return {n: (rng.normal(size=s) / np.prod(s[1:]) ** 0.5).astype(np.float32) for n, s in shapes.items()}


def export_extractor(weights):
    node = helper.make_node
    nodes = [
        node("Conv", ["scan", "w1"], ["c1"], strides=[2, 2], pads=[2, 2, 2, 2]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], strides=[1, 1], pads=[1, 1, 1, 1]),
        node("Relu", ["c2"], ["r2"]),
        node("Conv", ["r2", "w3"], ["c3"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["c3"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes, "extractor",
        [helper.make_tensor_value_info("scan", TensorProto.FLOAT, ["n", 1, SIZE, SIZE])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 16, SIZE // 4, SIZE // 4])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


class TorchExtractor(nn.Module):
    def __init__(self, weights):
        super().__init__()
        for name, w in weights.items():
            self.register_buffer(name, torch.from_numpy(w))

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.w1, stride=2, padding=2))
        x = F.relu(F.conv2d(x, self.w2, padding=1))
        return F.relu(F.conv2d(x, self.w3, stride=2, padding=1))


class Residual(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(ch, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch), nn.ReLU(inplace=True),
            nn.Conv2d(ch, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch))

    def forward(self, x):
        return F.relu(x + self.body(x))


def classifier(classes=40):
    stem = [nn.Conv2d(16, 128, 3, stride=2, padding=1), nn.ReLU()]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes)]
    return nn.Sequential(*stem, *[Residual(128) for _ in range(6)], *tail)


class Scanner:
    def __init__(self, rng):
        weights = extractor_weights(rng)
        if args.fixed:
            self.extractor = TorchExtractor(weights).cuda().eval()
        else:
            self.session = ort.InferenceSession(export_extractor(weights), providers=["CPUExecutionProvider"])
        self.classifier = classifier().cuda().eval()

    def features(self, scans):
        if args.fixed:
            return self.extractor(torch.from_numpy(scans).cuda())
        (out,) = self.session.run(["features"], {"scan": scans})
        return torch.from_numpy(out).cuda()

    @torch.inference_mode()
    def classify(self, scans):
        return self.classifier(self.features(scans)).argmax(1).cpu().numpy()


def main():
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    inbox = [rng.random((args.batch, 1, SIZE, SIZE), dtype=np.float32) for _ in range(4)]
    scanner = Scanner(rng)
    for scans in inbox * 2:
        scanner.classify(scans)
    times, counts = [], np.zeros(40, int)
    stop = time.perf_counter() + args.seconds
    while time.perf_counter() < stop:
        t0 = time.perf_counter()
        labels = scanner.classify(inbox[len(times) % len(inbox)])
        times.append((time.perf_counter() - t0) * 1e3)
        counts += np.bincount(labels, minlength=40)
    print(f"{counts.sum()} receipts, most common class {counts.argmax()}")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
