"""The repaired twin of sync_slow.py."""

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
    total = total + sum(torch._foreach_norm(list(model.parameters())))
torch.cuda.synchronize()
