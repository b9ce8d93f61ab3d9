"""The repaired twin of checkpoints_slow.py."""

import torch


def block():
    """One layer."""
    return torch.nn.Sequential(torch.nn.Linear(2048, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 2048))


model = torch.nn.ModuleList(block() for _ in range(6)).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
batch = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)
for _ in range(60):
    x = batch
    for layer in model:
        x = x + layer(x)
    x.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
