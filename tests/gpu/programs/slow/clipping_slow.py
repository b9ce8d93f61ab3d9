"""Clips gradients by hand: reads the norm of each parameter in each step."""

import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
batch = torch.randn(1024, 1024, device="cuda")
for _ in range(100):
    model(batch).square().mean().backward()
    total = sum(parameter.grad.norm().item() ** 2 for parameter in model.parameters()) ** 0.5
    for parameter in model.parameters():
        parameter.grad.mul_(min(1.0, 1.0 / total))
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
