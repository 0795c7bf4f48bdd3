#!/usr/bin/env python3
"""A training loop that knows nothing of lull, for attach.py: the same epoch over and over.

    attach_train.py LOG STOP

Each epoch begins with the same weights and the same seed, so that all of them have to end with the same loss, to the
bit. A step has 1 + N kernels, one of which, `erfinv`, is there once. LOG gets the end and the length of each step, as
doubles in seconds (CLOCK_MONOTONIC). When the file STOP exists, it prints its epochs and losses and ends with status 3.
"""
import os
import struct
import sys
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
import torch.nn as nn

STEPS = 500


def model():
    torch.manual_seed(1)
    layers = [m for _ in range(4) for m in (nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512))]
    net = nn.Sequential(*layers).cuda()
    return net, torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)


def epoch(log):
    net, opt = model()
    torch.cuda.manual_seed(2)
    loss = None
    torch.cuda.synchronize()
    for _ in range(STEPS):
        begin = time.monotonic()
        x = torch.special.erfinv(torch.rand(256, 512, device="cuda"))
        loss = nn.functional.mse_loss(net(x), x)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        end = time.monotonic()
        log.write(struct.pack("dd", end, end - begin))
    return loss.item()


def main():
    torch.use_deterministic_algorithms(True)
    losses = []
    with open(sys.argv[1], "wb") as log:
        while not os.path.exists(sys.argv[2]):
            losses.append(epoch(log))
            log.flush()
    print(len(losses), "epochs", *sorted(set(losses)))
    sys.exit(3)


if __name__ == "__main__":
    main()
