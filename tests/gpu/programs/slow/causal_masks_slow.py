"""Makes the causal mask of its attention in each step."""

import torch

q, k, v = torch.randn(3, 4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16)
for _ in range(200):
    mask = torch.ones(1024, 1024, dtype=torch.bool, device="cuda").tril()
    outputs = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
torch.cuda.synchronize()
