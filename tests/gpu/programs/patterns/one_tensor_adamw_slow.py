"""Updates one parameter after the other, with AdamW."""

import torch

x, labels = torch.ones(100, 100, device="cuda"), torch.randint(10, (100,), device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for _ in range(200):
    torch.nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()
torch.cuda.synchronize()
