"""Every kind of record: kernels of several shapes, copies in each direction, sets, a graph, two streams."""

from __future__ import annotations

import torch

x = torch.zeros(4096, device="cuda")
for _ in range(20):
    x.add_(1)
product = torch.randn(256, 256, device="cuda") @ torch.randn(256, 256, device="cuda")
host = product.cpu()
product.copy_(host)
product.clone()
torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(5):
        x.add_(1)
for _ in range(4):
    graph.replay()

with torch.cuda.stream(torch.cuda.Stream()):
    for _ in range(10):
        torch.cuda._sleep(10_000)
torch.cuda.synchronize()
