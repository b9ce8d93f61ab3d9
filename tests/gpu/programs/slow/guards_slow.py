"""Checks the guards of two hundred layers before each replay of a graph."""

import torch

layers = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(200))).cuda()
run = torch.compile(layers, backend="cudagraphs")
batch = torch.randn(64, 64, device="cuda")
with torch.no_grad():
    for _ in range(5):
        run(batch)
    for _ in range(500):
        run(batch)
torch.cuda.synchronize()
