"""The repaired twin of attention_slow.py."""

import torch

query, key, value = (torch.randn(8, 16, 2048, 64, device="cuda", dtype=torch.half) for _ in range(3))


def attention(query, key, value):
    """Attention of each head."""
    return torch.nn.functional.scaled_dot_product_attention(query, key, value)


for _ in range(60):
    attention(query, key, value)
torch.cuda.synchronize()
