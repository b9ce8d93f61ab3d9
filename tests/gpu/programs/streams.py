"""Forty kernels on each of two streams."""

from __future__ import annotations

import torch

streams = [torch.cuda.Stream() for _ in range(2)]
for _ in range(40):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000)
torch.cuda.synchronize()
