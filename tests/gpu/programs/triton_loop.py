"""Two hundred launches of a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import bragg


@triton.jit
def increment(x, count: tl.constexpr):
    offsets = tl.arange(0, count)
    tl.store(x + offsets, tl.load(x + offsets) + 1)


def main() -> None:
    x = torch.zeros(1024, device="cuda")
    with bragg.scope("loop"):
        for _ in range(200):
            increment[(1,)](x, 1024)
    assert x.sum().item() == 200 * 1024


main()
