"""Describe lidar scans by features around spread-out keypoints."""
import argparse
import time

import torch
import torch.nn as nn


def farthest_points(cloud, count):
    """cloud: (N, 3) -> (count, 3)"""
    dist = torch.full((cloud.shape[0],), 1e10, device=cloud.device)
    chosen = []
    farthest = 0
    for _ in range(count):
        chosen.append(farthest)
        d = ((cloud - cloud[farthest]) ** 2).sum(-1)
        dist = torch.minimum(dist, d)
        farthest = torch.argmax(dist).item()
    return cloud[chosen]


def keypoints_each(scans, count):
    return torch.stack([farthest_points(scan, count) for scan in scans])


def keypoints_together(scans, count):
    batch, n, _ = scans.shape
    dist = torch.full((batch, n), 1e10, device=scans.device)
    center = scans[:, :1]
    chosen = []
    for _ in range(count):
        chosen.append(center)
        d = ((scans - center) ** 2).sum(-1)
        dist = torch.minimum(dist, d)
        far = torch.argmax(dist, dim=1)
        center = scans.gather(1, far[:, None, None].expand(-1, 1, 3))
    return torch.cat(chosen, dim=1)


class PatchNet(nn.Module):
    def __init__(self, k=256):
        super().__init__()
        self.k = k
        self.point = nn.Sequential(nn.Linear(3, 128), nn.ReLU(), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 512))
        self.scan = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, scans, keys):
        near = torch.cdist(keys, scans).topk(self.k, dim=-1, largest=False, sorted=False).indices
        b, m, k = near.shape
        patches = scans.gather(1, near.reshape(b, m * k, 1).expand(-1, -1, 3)).view(b, m, k, 3)
        local = self.point(patches - keys.unsqueeze(2)).amax(2)
        return self.scan(local).amax(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=34)
    ap.add_argument("--scans", type=int, default=4)
    ap.add_argument("--points", type=int, default=16384)
    ap.add_argument("--keypoints", type=int, default=16)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(21)
    torch.set_float32_matmul_precision("high")
    pick = keypoints_together if args.fixed else keypoints_each
    drives = torch.randn(6, args.scans, args.points, 3).pin_memory()
    net = PatchNet().cuda().eval()
    descriptors = []
    warm = args.steps // 4
    with torch.inference_mode():
        for step in range(args.steps):
            if step == warm:
                torch.cuda.synchronize()
                begin = time.perf_counter()
            scans = drives[step % 6].cuda(non_blocking=True)
            keys = pick(scans, args.keypoints)
            descriptors.append(net(scans, keys))
        torch.cuda.synchronize()
        end = time.perf_counter()
    table = torch.cat(descriptors)
    print(f"{len(table)} descriptors, mean norm {table.norm(dim=1).mean().item():.4f}")
    print(f"round_ms {(end - begin) * 1e3 / (args.steps - warm):.3f}")


if __name__ == "__main__":
    main()
