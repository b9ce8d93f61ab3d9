"""The repaired twin of kept_losses_slow.py."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = torch.randn(512, 1024, device="cuda")
losses = []
for _ in range(60):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
torch.cuda.synchronize()
