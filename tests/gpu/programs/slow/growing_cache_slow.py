"""Appends to its cache of keys by a copy of all of it."""

import torch

torch.manual_seed(0)
torch.backends.cuda.enable_cudnn_sdp(False)
query = torch.randn(16, 16, 1, 128, device="cuda", dtype=torch.bfloat16)
keys = torch.randn(16, 16, 2048, 128, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    for _ in range(200):
        keys = torch.cat([keys, query], dim=2)
        torch.nn.functional.scaled_dot_product_attention(query, keys, keys)
torch.cuda.synchronize()
