"""The repaired twin of distances_slow.py."""

import torch

rows, centres = torch.randn(8192, 64, device="cuda"), torch.randn(512, 64, device="cuda")
for _ in range(60):
    distances = torch.cdist(rows, centres)
    nearest = distances.argmin(1)
torch.cuda.synchronize()
