"""The repaired twin of zeroed_by_optimizer_slow.py."""

import torch

x, labels = torch.ones(100, 100, device="cuda"), torch.randint(10, (100,), device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), fused=True)
for _ in range(200):
    torch.nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
torch.cuda.synchronize()
