"""Copies of 1 GiB by a kernel, and products of matrices, in turn for some seconds: copy_and_product.py SECONDS.

Several of each at a time, so that samples of 2 ms tell them apart.
"""

from __future__ import annotations

import sys
import time

import torch

source = torch.ones(1 << 28, device="cuda")
target = torch.empty_like(source)
matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
out = torch.empty_like(matrix)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(5):
        for _ in range(7):
            torch.add(source, 1, out=target)
        for _ in range(5):
            torch.matmul(matrix, matrix, out=out)
    torch.cuda.synchronize()
