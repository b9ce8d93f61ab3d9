"""Takes one step of a sequence after the other: the gradient of each is as large as the sequence."""

import torch

x = torch.randn(64, 256, 1024, device="cuda", requires_grad=True)
decay = torch.rand(1024, device="cuda")
for _ in range(20):
    state = torch.zeros(64, 1024, device="cuda")
    for t in range(256):
        state = state * decay + x[:, t]
    state.square().mean().backward()
    x.grad = None
torch.cuda.synchronize()
