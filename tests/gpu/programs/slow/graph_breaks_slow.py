"""A compiled function whose graph breaks in the middle."""

import torch

layers = [torch.nn.Linear(512, 512, device="cuda") for _ in range(8)]


@torch.compile
def run(x):
    """Eight layers."""
    for layer in layers[:4]:
        x = torch.nn.functional.gelu(layer(x))
    torch._dynamo.graph_break()
    for layer in layers[4:]:
        x = torch.nn.functional.gelu(layer(x))
    return x


batch = torch.randn(64, 512, device="cuda")
with torch.no_grad():
    for _ in range(200):
        run(batch)
torch.cuda.synchronize()
