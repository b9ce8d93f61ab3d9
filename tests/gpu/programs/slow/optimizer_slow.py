"""Updates one parameter after the other."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False, fused=False)
batch = torch.randn(64, 256, device="cuda")
for _ in range(60):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
