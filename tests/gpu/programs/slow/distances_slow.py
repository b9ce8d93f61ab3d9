"""Computes distances of all pairs of rows from their differences."""

import torch

rows, centres = torch.randn(8192, 64, device="cuda"), torch.randn(512, 64, device="cuda")
for _ in range(60):
    distances = (rows[:, None] - centres[None]).square().sum(-1)
    nearest = distances.argmin(1)
torch.cuda.synchronize()
