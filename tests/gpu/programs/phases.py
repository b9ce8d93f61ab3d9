"""A product of matrices, a copy and nothing, in turn, each for longer than a sample of telemetry."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
product = torch.empty_like(matrix)
source = torch.zeros(1 << 28, dtype=torch.float32, device="cuda")
target = torch.empty_like(source)


def repeat(launch: Callable[[], object], seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(8):
            launch()
        torch.cuda.synchronize()


for _ in range(4):
    repeat(lambda: torch.matmul(matrix, matrix, out=product), 1.6)
    repeat(lambda: torch.sin(source, out=target), 0.9)
    time.sleep(0.7)
