"""Reads one number of each parameter in each step: each read waits for the GPU."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)

batch = torch.randn(8192, 1024, device="cuda")
torch.set_float32_matmul_precision("high")
total = 0.0
for _ in range(60):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    for parameter in model.parameters():
        total += parameter.norm().item()
torch.cuda.synchronize()
