"""A kernel whose events end two turns after their begin; says how often the result was right."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import torch
import triton
import triton.language as tl

import bragg

TURNS, BLOCK, BLOCKS, LAUNCHES = 16, 1024, 64, 60


@triton.jit
def ahead(x, y, turns, BLOCK: tl.constexpr):
    """y = x + 1."""
    at = tl.program_id(0) * turns * BLOCK + tl.arange(0, BLOCK)
    for turn in range(turns):
        bragg.kernel_event_begin("ahead", turn)
        tl.store(y + at + turn * BLOCK, tl.load(x + at + turn * BLOCK) + 1)
        bragg.kernel_event_end("ahead", turn - 2)


x = torch.randn(BLOCKS * TURNS * BLOCK, device="cuda")
n_right = 0
for _ in range(LAUNCHES):
    y = torch.zeros_like(x)
    ahead[(BLOCKS,)](x, y, TURNS, BLOCK=BLOCK)
    n_right += torch.equal(y, x + 1)
print(f"{n_right} of {LAUNCHES} results are right")
