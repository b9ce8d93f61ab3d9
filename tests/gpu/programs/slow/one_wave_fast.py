"""The repaired twin of one_wave_slow.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def total(x, out, n, block: tl.constexpr):
    """Each program sums its part."""
    part = tl.cdiv(n, tl.num_programs(0))
    found = tl.zeros([block], tl.float32)
    for start in range(0, part, block):
        at = tl.program_id(0) * part + start + tl.arange(0, block)
        found += tl.load(x + at, at < n, 0.0)
    tl.store(out + tl.program_id(0), tl.sum(found))


PROGRAMS = 1056
x, out = torch.randn(1 << 24, device="cuda"), torch.empty(4096, device="cuda")
for _ in range(60):
    total[(PROGRAMS,)](x, out, x.numel(), 1024)
torch.cuda.synchronize()
