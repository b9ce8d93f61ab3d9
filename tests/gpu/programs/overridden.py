"""Adds two vectors in a session that measures inside kernels; the name of its file is the argument."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

from bragg import proton


@triton.jit
def add(x, y, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


x, y = (torch.rand(98432, device="cuda") for _ in range(2))
out = torch.empty_like(x)
proton.start(sys.argv[1], backend="instrumentation")
add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), size=1024, num_warps=1)
proton.finalize()
assert torch.equal(out, x + y)
