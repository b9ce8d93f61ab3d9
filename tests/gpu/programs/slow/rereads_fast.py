"""The repaired twin of rereads_slow.py: the sums of exponents and squares go over the rows at once."""

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
    total, squares = tl.zeros((block,), tl.float32), tl.zeros((block,), tl.float32)
    for start in range(0, n, block):
        values = tl.load(x + row + start + at)
        higher = tl.maximum(greatest, values)
        shrink, grow = tl.exp(greatest - higher), tl.exp(values - higher)
        total, squares, greatest = total * shrink + grow, squares * shrink * shrink + grow * grow, higher
    top = tl.max(greatest, 0)
    shrink = tl.exp(greatest - top)
    whole = tl.sum(total * shrink, 0)
    scale = tl.rsqrt(tl.sum(squares * shrink * shrink, 0) / (whole * whole))
    for start in range(0, n, block):
        tl.store(out + row + start + at, tl.exp(tl.load(x + row + start + at) - top) / whole * scale)


x = torch.randn(1024, 1 << 18, device="cuda")
out = torch.empty_like(x)
for _ in range(600):
    softmax[(1024,)](x, out, x.shape[1], 4096, num_warps=8)
torch.cuda.synchronize()
