"""The repaired twin of specialized_slow.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, out, n, amount, block: tl.constexpr):
    """Adds a number."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, at < n) + amount, at < n)


x = torch.randn(1 << 20, device="cuda")
for step in range(40):
    add[(1024,)](x, x, x.numel(), step + 2, 1024)
torch.cuda.synchronize()
