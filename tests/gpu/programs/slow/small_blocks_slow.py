"""A kernel whose programs have little to do."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, block: tl.constexpr):
    """Twice as much."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)


PER_PROGRAM = 32
x = torch.randn(1 << 26, device="cuda")
out = torch.empty_like(x)
for _ in range(40):
    scale[(triton.cdiv(x.numel(), PER_PROGRAM),)](x, out, x.numel(), PER_PROGRAM, num_warps=1)
torch.cuda.synchronize()
