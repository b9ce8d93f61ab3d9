"""The repaired twin of own_optimizer_slow.py."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
batch = torch.randn(64, 256, device="cuda")
for _ in range(100):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
