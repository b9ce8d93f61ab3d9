"""The repaired twin of printed_tensors_slow.py."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = torch.randn(1024, 1024, device="cuda")
for _ in range(100):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(model[0].weight)
