"""Copies each row to the GPU by itself."""

import torch

model = torch.nn.Linear(256, 256, device="cuda")
for _ in range(60):
    batch = torch.stack([torch.full((256,), float(row)).cuda() for row in range(64)])
    model(batch).square().mean().backward()
    model.zero_grad()
torch.cuda.synchronize()
