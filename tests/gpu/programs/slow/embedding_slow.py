"""Updates all rows of a large table, of which each step uses few."""

import torch

table = torch.nn.Embedding(2_000_000, 64, device="cuda")
layer = torch.nn.Linear(64, 64, device="cuda")
optimizers = [torch.optim.Adam(table.parameters()), torch.optim.Adam(layer.parameters())]
ids = torch.randint(2_000_000, (2048,), device="cuda")
for _ in range(60):
    layer(table(ids)).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
torch.cuda.synchronize()
