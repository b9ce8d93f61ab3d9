"""The repaired twin of zero_grad_slow.py."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
batch = torch.randn(64, 256, device="cuda")
for _ in range(60):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
