"""The repaired twin of scalar_tensors_slow.py."""

import torch

weights = [0.5 + 0.01 * number for number in range(64)]
model = torch.nn.Linear(256, 64, device="cuda")
batch = torch.randn(64, 256, device="cuda")
for _ in range(60):
    losses = model(batch).square().mean(0)
    factors = torch.tensor(weights, device="cuda")
    (losses * factors).sum().backward()
    model.zero_grad()
torch.cuda.synchronize()
