"""A CUDA graph of 200 kernels and a kernel outside, for graph-level records."""

from __future__ import annotations

import torch

import bragg

x = torch.ones(1024, device="cuda")
x.add_(1)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
outside, inside = bragg.scope("capture", metrics={"work": 1}), bragg.scope("inside", metrics={"work": 2})
with outside, torch.cuda.graph(graph), inside:
    for _ in range(200):
        x.add_(1)
with bragg.scope("replay"):
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
with bragg.scope("eager"):
    x.add_(1)
torch.cuda.synchronize()
