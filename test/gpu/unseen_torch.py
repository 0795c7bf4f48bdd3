#!/usr/bin/env python3
"""Operators of PyTorch, to try the verdicts of `lull kernel` on kernels that others wrote.

    unseen_torch.py [--list]

Each operator runs three times without a name and then once in a range "op:NAME". Measured with

    lull kernel --nvtx-include regex:^op: unseen_torch.py
"""
import sys

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

OPS = {}


def op(make):
    """Register an operator: a function that prepares and returns what is run. Its text is what to expect."""
    OPS[make.__name__] = make
    return make


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


@op
def matmul_bf16():
    """tensor-bound"""
    a, b = randn(8192, 8192, dtype=torch.bfloat16), randn(8192, 8192, dtype=torch.bfloat16)
    return lambda: a @ b


@op
def matmul_fp32():
    """fp32-bound"""
    a, b = randn(4096, 4096), randn(4096, 4096)
    return lambda: a @ b


@op
def matmul_thin():
    """memory-bound, latency-bound or small-grid: a product of one token"""
    a, b = randn(1, 8192, dtype=torch.bfloat16), randn(8192, 8192, dtype=torch.bfloat16)
    return lambda: a @ b


@op
def matmul_small():
    """small-grid"""
    a, b = randn(256, 256, dtype=torch.bfloat16), randn(256, 256, dtype=torch.bfloat16)
    return lambda: a @ b


@op
def layer_norm():
    """memory-bound"""
    x, w = randn(16384, 4096, dtype=torch.bfloat16), randn(4096, dtype=torch.bfloat16)
    return lambda: F.layer_norm(x, (4096,), w, w)


@op
def softmax():
    """memory-bound"""
    x = randn(8192, 8192)
    return lambda: torch.softmax(x, -1)


@op
def attention():
    """tensor-bound or latency-bound"""
    q, k, v = (randn(8, 16, 4096, 64, dtype=torch.bfloat16) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


@op
def embedding():
    """memory-bound: rows of 4 KiB"""
    table, at = randn(50000, 1024), torch.randint(0, 50000, (65536,), device="cuda")
    return lambda: F.embedding(at, table)


@op
def pick():
    """uncoalesced: single words from anywhere"""
    x, at = randn(1 << 26), torch.randint(0, 1 << 26, (1 << 24,), device="cuda")
    return lambda: x[at]


@op
def gelu():
    """memory-bound"""
    x = randn(1 << 26, dtype=torch.bfloat16)
    return lambda: F.gelu(x)


@op
def add():
    """memory-bound"""
    x, y = randn(1 << 26), randn(1 << 26)
    return lambda: x + y


@op
def add_small():
    """launch-overhead"""
    x, y = randn(1 << 10), randn(1 << 10)
    return lambda: x + y


@op
def transposed_copy():
    """memory-bound or uncoalesced"""
    x = randn(8192, 8192)
    return lambda: x.t().contiguous()


@op
def index_add():
    """atomics or memory-bound: many rows onto few"""
    x, at, to = randn(65536, 256), torch.randint(0, 16, (65536,), device="cuda"), randn(16, 256)
    return lambda: to.index_add_(0, at, x)


@op
def histogram():
    """atomics"""
    x = torch.randint(0, 8, (1 << 24,), device="cuda")
    return lambda: torch.bincount(x, minlength=8)


@op
def total():
    """memory-bound"""
    x = randn(1 << 27)
    return lambda: x.sum()


@op
def cross_entropy():
    """memory-bound"""
    x, y = randn(8192, 32000), torch.randint(0, 32000, (8192,), device="cuda")
    return lambda: F.cross_entropy(x, y)


@op
def adamw():
    """memory-bound"""
    w = [torch.nn.Parameter(randn(4096, 4096)) for _ in range(4)]
    opt = torch.optim.AdamW(w, fused=True)
    for p in w:
        p.grad = randn(4096, 4096)
    return opt.step


@op
def conv():
    """tensor-bound"""
    x, w = randn(32, 256, 56, 56, dtype=torch.bfloat16), randn(256, 256, 3, 3, dtype=torch.bfloat16)
    x, w = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
    return lambda: F.conv2d(x, w, padding=1)


@op
def cumsum():
    """memory-bound or latency-bound"""
    x = randn(8192, 8192)
    return lambda: torch.cumsum(x, -1)


@op
def batch_norm():
    """memory-bound"""
    m = torch.nn.BatchNorm2d(256).cuda()
    x = randn(64, 256, 56, 56)
    return lambda: m(x)


@op
def linear_few_rows():
    """memory-bound: the weights move, hardly anything is computed"""
    x, w = randn(16, 8192, dtype=torch.bfloat16), randn(8192, 8192, dtype=torch.bfloat16)
    return lambda: F.linear(x, w)


@op
def small_products():
    """memory-bound, latency-bound or tensor-bound"""
    a, b = randn(4096, 64, 64, dtype=torch.bfloat16), randn(4096, 64, 64, dtype=torch.bfloat16)
    return lambda: torch.bmm(a, b)


if triton:
    @triton.jit
    def scale_rows(x, y, cols, BLOCK: tl.constexpr):
        row, at = tl.program_id(0), tl.arange(0, BLOCK)
        v = tl.load(x + row * cols + at, mask=at < cols)
        tl.store(y + row * cols + at, v / tl.sum(v * v, 0), mask=at < cols)

    @op
    def triton_rows():
        """memory-bound"""
        x = randn(16384, 4096)
        y = torch.empty_like(x)
        return lambda: scale_rows[(16384,)](x, y, 4096, BLOCK=4096)


def main():
    if "--list" in sys.argv:
        for name, make in OPS.items():
            print("%-18s %s" % (name, make.__doc__))
        return
    with torch.no_grad():
        for name, make in OPS.items():
            try:
                run = make()
                for _ in range(3):
                    run()
                torch.cuda.synchronize()
                torch.cuda.nvtx.range_push("op:" + name)
                run()
                torch.cuda.synchronize()
                torch.cuda.nvtx.range_pop()
            except Exception as why:  # an operator that is not there must not cost the others
                print("FAILED %s: %s" % (name, str(why)[:200]))
    print("RESULT ops=%d" % len(OPS))


if __name__ == "__main__":
    main()
