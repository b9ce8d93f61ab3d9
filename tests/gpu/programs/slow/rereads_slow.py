"""A softmax that goes over rows four times that are too long for the cache."""

import torch
import triton
import triton.language as tl


def stated(grid, metadata, arguments):
    """What a launch needs: each number read and written once."""
    return {"name": "softmax", "bytes": 2 * arguments["x"].numel() * 4}


@triton.jit(launch_metadata=stated)
def softmax(x, out, n, block: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64) * n, tl.arange(0, block)
    greatest = tl.full((block,), -float("inf"), tl.float32)
    for start in range(0, n, block):
        greatest = tl.maximum(greatest, tl.load(x + row + start + at))
    top = tl.max(greatest, 0)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        total += tl.exp(tl.load(x + row + start + at) - top)
    whole = tl.sum(total, 0)
    squares = tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        share = tl.exp(tl.load(x + row + start + at) - top) / whole
        squares += share * share
    scale = tl.rsqrt(tl.sum(squares, 0))
    for start in range(0, n, block):
        tl.store(out + row + start + at, tl.exp(tl.load(x + row + start + at) - top) / whole * scale)


x = torch.randn(1024, 1 << 18, device="cuda")
out = torch.empty_like(x)
for _ in range(600):
    softmax[(1024,)](x, out, x.shape[1], 4096, num_warps=8)
torch.cuda.synchronize()
