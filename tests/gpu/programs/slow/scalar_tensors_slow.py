"""Makes a tensor on the GPU of each number."""

import torch

weights = [0.5 + 0.01 * number for number in range(64)]
model = torch.nn.Linear(256, 64, device="cuda")
batch = torch.randn(64, 256, device="cuda")
for _ in range(60):
    losses = model(batch).square().mean(0)
    factors = torch.stack([torch.tensor(weight, device="cuda") for weight in weights])
    (losses * factors).sum().backward()
    model.zero_grad()
torch.cuda.synchronize()
