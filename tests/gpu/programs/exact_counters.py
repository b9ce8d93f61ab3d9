"""Kernels whose traffic of DRAM is known: an addition in place, a matmul, and a capture beside them.

Usage: exact_counters.py [LAUNCHES]: of each kernel, 5 if no number is given.
"""

from __future__ import annotations

import sys

import torch

import bragg

LAUNCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 5
N = 1 << 28  # 1 GiB: far more than L2 holds

x = torch.zeros(N, device="cuda")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
a @ a
torch.cuda.synchronize()
with bragg.scope("add"):
    for _ in range(LAUNCHES):
        x.add_(1)
with bragg.scope("matmul"):
    for _ in range(LAUNCHES):
        a @ a
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
small = torch.zeros(64, device="cuda")
with torch.cuda.graph(graph):
    small.add_(1)
graph.replay()
torch.cuda.synchronize()
print("sum", float(x[0]), float(x[-1]), float(small[0]))
