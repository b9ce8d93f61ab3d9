"""The repaired twin of sorts_slow.py."""

import torch

scores = torch.randn(512, 65536, device="cuda")
for _ in range(60):
    best = scores.topk(10, dim=1).values
    scores = scores + best.mean() * 1e-3
torch.cuda.synchronize()
