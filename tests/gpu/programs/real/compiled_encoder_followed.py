"""The encoder with the change of its first finding: a larger batch."""

import torch
from torch import nn

layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, device="cuda", dtype=torch.bfloat16)
model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()
compiled = torch.compile(model, mode="reduce-overhead")
batch = torch.randn(32, 128, 256, device="cuda", dtype=torch.bfloat16)
with torch.inference_mode():
    for _ in range(60):
        output = compiled(batch).float().mean().item()
print(f"{output:.3f}")
