"""A CUDA graph of 50 kernels, replayed 20 times."""

from __future__ import annotations

import torch

import bragg

x = torch.zeros(1024, device="cuda")
x.add_(1)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(50):
        x.add_(1)
with bragg.scope("replay"):
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
