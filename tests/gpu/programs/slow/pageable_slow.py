"""Copies batches from memory that is not pinned."""

import torch

model = torch.nn.Linear(4096, 4096, device="cuda")
batches = [torch.randn(4096, 4096) for _ in range(4)]

for step in range(100):
    batch = batches[step % 4].cuda(non_blocking=True)
    model(batch).square().mean().backward()
    model.zero_grad()
torch.cuda.synchronize()
