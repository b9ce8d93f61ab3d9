"""The repaired twin of module_zeros_slow.py."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
batch = torch.randn(64, 256, device="cuda")
for _ in range(200):
    model(batch).square().mean().backward()
    optimizer.step()
    model.zero_grad()
torch.cuda.synchronize()
