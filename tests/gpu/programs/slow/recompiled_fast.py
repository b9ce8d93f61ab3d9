"""The repaired twin of recompiled_slow.py."""

import torch


@torch.compile(dynamic=True)
def norm(x):
    """Something to compile."""
    return (x * x).sum().sqrt()


for size in range(100, 108):
    norm(torch.randn(size, 64, device="cuda"))
torch.cuda.synchronize()
