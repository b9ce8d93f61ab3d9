"""A matmul from two call paths with different sizes, and a softmax with one slow line, for some seconds."""

from __future__ import annotations

import sys
import time

import torch
import triton
import triton.language as tl

import bragg

DEVICE = "cuda"


@triton.jit
def matmul(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a + rows[:, None] * k + (start + inner)[None, :])
        y = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=-float("inf"))
    for _ in range(20):
        values = tl.sin(values) * 2.0  # the slow line
    values = tl.exp(values - tl.max(values, 0))
    tl.store(y + tl.program_id(0) * n + columns, values / tl.sum(values, 0), mask=columns < n)


class Matmul:
    """Square matrices of bf16."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._a, self._b = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        self._c = torch.empty_like(self._a)

    def run(self, launches: int) -> None:
        size = self._size
        for _ in range(launches):
            matmul[(size // 128, size // 128)](self._a, self._b, self._c, size, size, 128, 128, 64, num_warps=8)


def main() -> None:
    small, large = Matmul(1024), Matmul(2048)
    x = torch.randn(8192, 1024, device=DEVICE)
    y = torch.empty_like(x)
    deadline = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < deadline:
        with bragg.scope("small"):
            small.run(10)
        with bragg.scope("large"):
            large.run(5)
        with bragg.scope("softmax"):
            softmax[(8192,)](x, y, 1024, 1024)
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
