"""The repaired twin of cpu_work_slow.py."""

import torch

model = torch.nn.Linear(2048, 2048, device="cuda")
for _ in range(60):
    batch = torch.randn(2048, 2048, device="cuda")
    model(batch).square().mean().backward()
    model.zero_grad()
torch.cuda.synchronize()
