"""Gives memory back to the driver after each batch of different size."""

import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, device="cuda") for _ in range(8)))
with torch.no_grad():
    for step in range(200):
        batch = torch.randn(2048 + 16 * (step % 8), 1024, device="cuda")
        model(batch)
        del batch
        torch.cuda.empty_cache()
torch.cuda.synchronize()
