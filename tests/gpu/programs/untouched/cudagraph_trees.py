"""Inference with torch.compile's CUDA graphs; prints the result."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64)).cuda().eval()
compiled = torch.compile(model, mode="reduce-overhead")
x = torch.randn(32, 128, device="cuda")
with torch.no_grad():
    for _ in range(12):
        total = compiled(x).float().sum().item()
print("total", round(total, 3))
