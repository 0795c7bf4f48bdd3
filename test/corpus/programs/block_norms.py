"""Forward pass of attention-free transformer blocks with rotary mixing on long sequences."""
import argparse
import time

import torch

B, T, D, LAYERS = 8, 4096, 2048, 3


def rms_norm(x, w):
    v = x * x
    v = v.mean(-1, keepdim=True)
    v = v + 1e-6
    return x * torch.rsqrt(v) * w


def gelu(x):
    inner = x + 0.044715 * x * x * x
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * inner))


def rotary(x, cos, sin):
    a, b = x[..., : D // 2], x[..., D // 2:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def block(x, w, scale, bias, cos, sin):
    h = rms_norm(x, w)
    h = rotary(h, cos, sin)
    h = gelu(h * scale + bias)
    return x + 0.1 * h


def forward(x, params, cos, sin):
    for w, scale, bias in params:
        x = block(x, w, scale, bias, cos, sin)
    return x


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--fixed", action="store_true")
    ap.add_argument("--steps", type=int, default=200)
    args = ap.parse_args()

    torch.manual_seed(0)
    dev = torch.device("cuda")
    x = torch.randn(B, T, D, device=dev)
    params = [tuple(torch.randn(D, device=dev) for _ in range(3)) for _ in range(LAYERS)]
    pos = torch.arange(T, device=dev).float()[:, None]
    freq = torch.pow(10000.0, -torch.arange(D // 2, device=dev).float() / (D // 2))
    cos, sin = torch.cos(pos * freq), torch.sin(pos * freq)

    fn = torch.compile(forward) if args.fixed else forward
    out = None
    first = args.steps // 4
    t0 = 0.0
    with torch.no_grad():
        fn(x, params, cos, sin)
        for step in range(args.steps):
            if step == first:
                torch.cuda.synchronize()
                t0 = time.perf_counter()
            out = fn(x, params, cos, sin)
        torch.cuda.synchronize()
        ms = (time.perf_counter() - t0) * 1e3 / (args.steps - first)
    print(f"mean {out.mean().item():.5f}")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
