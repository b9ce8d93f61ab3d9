"""Training of a network that torch.compile compiles in two parts."""

from __future__ import annotations

import sys

import torch
from torch import nn

STEPS = 5

device = sys.argv[1] if sys.argv[1:] else "cuda"
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512)).to(device)
optimizer = torch.optim.SGD(network.parameters(), 1e-3)


@torch.compile
def loss(x: torch.Tensor) -> torch.Tensor:
    y = network(x)
    torch._dynamo.graph_break()
    return (y * 2 + 1).square().mean()


x = torch.randn(64, 512, device=device)
for _ in range(STEPS):
    loss(x).backward()
    optimizer.step()
    optimizer.zero_grad()
if device == "cuda":
    torch.cuda.synchronize()
