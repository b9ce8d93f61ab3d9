"""The repaired twin of single_indices_slow.py."""

import torch

x = torch.ones(100, 100, device="cuda")
for _ in range(20):
    x[:] = torch.arange(100, device="cuda")[:, None]
    total, product = x.sum(0), x.prod(0)
    x[:] = torch.arange(100, device="cuda") + torch.arange(100, device="cuda")[:, None]
torch.cuda.synchronize()
