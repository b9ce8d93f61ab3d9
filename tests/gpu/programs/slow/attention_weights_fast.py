"""The repaired twin of attention_weights_slow.py."""

import torch

layer = torch.nn.MultiheadAttention(1024, 16, batch_first=True, device="cuda", dtype=torch.half)
x = torch.randn(8, 2048, 1024, device="cuda", dtype=torch.half)
for _ in range(40):
    layer(x, x, x, need_weights=False)[0].mean().backward()
    layer.zero_grad()
torch.cuda.synchronize()
