"""Attention of cuDNN, which plans for each length of the keys."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

query = torch.randn(1, 16, 1, 128, device="cuda", dtype=torch.bfloat16)
keys = torch.randn(1, 16, 400, 128, device="cuda", dtype=torch.bfloat16)
with torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    for length in range(200, 400):
        part = keys[:, :, :length]
        torch.nn.functional.scaled_dot_product_attention(query, part, part)
torch.cuda.synchronize()
