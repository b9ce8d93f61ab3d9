"""The repaired twin of inverses_slow.py."""

import torch

a = torch.randn(64, 256, 256, device="cuda") + 10 * torch.eye(256, device="cuda")
b = torch.randn(64, 256, 1, device="cuda")
for _ in range(40):
    x = torch.linalg.solve(a, b)
torch.cuda.synchronize()
