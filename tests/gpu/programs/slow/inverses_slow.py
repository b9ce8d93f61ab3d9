"""Inverts matrices to multiply them with vectors."""

import torch

a = torch.randn(64, 256, 256, device="cuda") + 10 * torch.eye(256, device="cuda")
b = torch.randn(64, 256, 1, device="cuda")
for _ in range(40):
    x = torch.linalg.inv(a) @ b
torch.cuda.synchronize()
