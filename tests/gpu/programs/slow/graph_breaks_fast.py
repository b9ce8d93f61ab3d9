"""The repaired twin of graph_breaks_slow.py."""

import torch

layers = [torch.nn.Linear(512, 512, device="cuda") for _ in range(8)]


@torch.compile
def run(x):
    """Eight layers."""
    for layer in layers:
        x = torch.nn.functional.gelu(layer(x))
    return x


batch = torch.randn(64, 512, device="cuda")
with torch.no_grad():
    for _ in range(200):
        run(batch)
torch.cuda.synchronize()
