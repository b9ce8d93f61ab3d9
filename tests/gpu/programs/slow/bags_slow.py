"""Updates all rows of a table of bags, of which each step uses few."""

import torch

bags = torch.nn.EmbeddingBag(4_000_000, 32, mode="sum", device="cuda")
optimizer = torch.optim.SGD(bags.parameters(), lr=0.1)
ids = torch.randint(4_000_000, (1024, 4), device="cuda")
for _ in range(100):
    bags(ids).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
