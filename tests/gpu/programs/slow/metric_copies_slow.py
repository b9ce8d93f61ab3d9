"""Copies the outputs to the host in each step, for a metric."""

import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
batch, labels = torch.randn(2048, 1024, device="cuda"), torch.randint(1024, (2048,), device="cuda")
right = 0
for _ in range(100):
    outputs = model(batch)
    torch.nn.functional.cross_entropy(outputs, labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    right += int((outputs.argmax(1).cpu() == labels.cpu()).sum())
print(int(right))
