"""Four kernels with a bug each: run `bragg check examples/debug/four_bugs.py`."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """The mask is one too wide."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets <= n, other=0.0)
    tl.store(out + offsets, values * 2, mask=offsets < n)


@triton.jit
def shift(x, n, BLOCK: tl.constexpr):  # noqa: N803
    """Programs read what their neighbours overwrite."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets + 1, mask=offsets + 1 < n, other=0.0)
    tl.store(x + offsets, values, mask=offsets < n)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    """Lanes beyond the end are undefined, and summed."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + offsets, mask=offsets < n), axis=0))


@triton.jit
def pick(x, out, row, stride):
    """The offset of a row does not fit into 32 bits."""
    tl.store(out, tl.load(x + row * stride, mask=row < 0, other=0.0))


def main() -> None:
    """Launch them."""
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    scale[(4,)](x, out, 1000, BLOCK=256)
    shift[(4,)](x, 1000, BLOCK=256)
    total[(4,)](x, out, 1000, BLOCK=256)
    pick[(1,)](x, out, 70_000, 40_000)


if __name__ == "__main__":
    main()
