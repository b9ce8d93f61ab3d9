"""A kernel that loads every second number."""

import torch
import triton
import triton.language as tl


@triton.jit
def pairs(x, out, n, block: tl.constexpr):
    """Sums of neighbours."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.load(x + 2 * at, at < n)
    tl.store(out + at, first, at < n)


x = torch.randn(1 << 27, device="cuda")
out = torch.empty(1 << 26, device="cuda")
for _ in range(40):
    pairs[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), 1024)
torch.cuda.synchronize()
