"""The repaired twin of full_precision_slow.py."""

import torch

torch.backends.cuda.matmul.allow_tf32 = True
x = torch.ones(100, 100, device="cuda")
for _ in range(300):
    y = x @ x
torch.cuda.synchronize()
