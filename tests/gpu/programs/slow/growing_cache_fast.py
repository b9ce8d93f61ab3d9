"""The repaired twin of growing_cache_slow.py."""

import torch

torch.manual_seed(0)
torch.backends.cuda.enable_cudnn_sdp(False)
query = torch.randn(16, 16, 1, 128, device="cuda", dtype=torch.bfloat16)
cache = torch.randn(16, 16, 2248, 128, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    for length in range(2048, 2248):
        cache[:, :, length : length + 1] = query
        keys = cache[:, :, : length + 1]
        torch.nn.functional.scaled_dot_product_attention(query, keys, keys)
torch.cuda.synchronize()
