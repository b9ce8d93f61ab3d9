"""Fills matrices of 100 by 100 on the host, and copies them to the GPU, in each way that there is."""

import torch

for _ in range(300):
    torch.ones(100, 100).to("cuda")
    torch.zeros(100, 100).to("cuda")
    torch.empty(100, 100).fill_(5).to("cuda")
    torch.ones(100, 100).cuda()
    torch.zeros(100, 100).cuda()
    torch.empty(100, 100).fill_(5).cuda()
    torch.rand(100, 100).cuda()
    torch.randn(100, 100).cuda()
    torch.full((100, 100), 10).cuda()
torch.cuda.synchronize()
