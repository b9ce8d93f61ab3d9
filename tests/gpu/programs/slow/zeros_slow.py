"""Fills buffers with zeros that are overwritten as a whole."""

import torch

parts = [torch.randn(1 << 20, device="cuda") for _ in range(64)]
optimizer = torch.optim.SGD(parts, lr=1e-3)
for _ in range(200):
    results = [torch.zeros(1 << 20, device="cuda") for _ in parts]
    for result, part in zip(results, parts, strict=True):
        torch.mul(part, 2, out=result)
    optimizer.step()
torch.cuda.synchronize()
