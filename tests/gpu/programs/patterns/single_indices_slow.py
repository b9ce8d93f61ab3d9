"""Takes rows of a matrix by their numbers, one after the other, to write and to read them."""

import torch

x = torch.ones(100, 100, device="cuda")
for _ in range(20):
    for i in range(100):
        x[i] = i
    total, product = 0, 1
    for i in range(100):
        total += x[i]
    for i in range(100):
        product *= x[i]
    for i in range(100):
        x[i, :] = torch.arange(100, device="cuda") + i
torch.cuda.synchronize()
