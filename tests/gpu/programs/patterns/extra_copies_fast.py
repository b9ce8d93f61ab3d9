"""The repaired twin of extra_copies_slow.py."""

import torch

for _ in range(300):
    torch.ones(100, 100, device="cuda")
    torch.zeros(100, 100, device="cuda")
    torch.empty(100, 100, device="cuda").fill_(5)
    torch.rand(100, 100, device="cuda")
    torch.randn(100, 100, device="cuda")
    torch.full((100, 100), 10, device="cuda")
torch.cuda.synchronize()
