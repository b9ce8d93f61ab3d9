"""Keeps the losses of all steps, and with them what their backward passes need."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(4)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = torch.randn(512, 1024, device="cuda")
losses = []
for _ in range(60):
    loss = model(batch).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss)
torch.cuda.synchronize()
