"""Sorts whole rows, of which it needs the ten largest."""

import torch

scores = torch.randn(512, 65536, device="cuda")
for _ in range(60):
    best = scores.sort(dim=1, descending=True).values[:, :10]
    scores = scores + best.mean() * 1e-3
torch.cuda.synchronize()
