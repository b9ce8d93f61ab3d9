"""Tunes its kernel for each length."""

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"block": size}, num_warps=4) for size in (256, 512, 1024, 2048)], key=["n"])
@triton.jit
def scale(x, out, n, block: tl.constexpr):
    """Twice as much."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)


x, out = torch.randn(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
for step in range(24):
    n = (1 << 20) - 16 * step
    scale[lambda chosen, n=n: (triton.cdiv(n, chosen["block"]),)](x, out, n)
torch.cuda.synchronize()
