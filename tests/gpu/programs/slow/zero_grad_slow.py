"""Fills gradients with zeros instead of dropping them."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
batch = torch.randn(64, 256, device="cuda")
for _ in range(60):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
torch.cuda.synchronize()
