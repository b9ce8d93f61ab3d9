"""The repaired twin of clipping_slow.py."""

import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
batch = torch.randn(1024, 1024, device="cuda")
for _ in range(100):
    model(batch).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
