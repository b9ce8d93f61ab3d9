"""The repaired twin of allocator_slow.py."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
batch = torch.randn(512, 1024, device="cuda")
for _ in range(60):
    model(batch).square().mean().backward()
    model.zero_grad()

torch.cuda.synchronize()
