"""A CUDA graph of PyTorch, captured in scopes with metrics, and replayed from two places."""

from __future__ import annotations

import torch

import bragg

x = torch.ones(64, 64, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    (x @ x).relu_()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with bragg.scope("model"), torch.cuda.graph(graph):
    for layer in range(2):
        with bragg.scope(f"layer {layer}", metrics={"flops": 1000, "loss (exc)": 0.25}):
            y = (x @ x).relu_()
with bragg.scope("replay"):
    for _ in range(20):
        graph.replay()
with bragg.scope("again"):
    for _ in range(5):
        graph.replay()
torch.cuda.synchronize()
