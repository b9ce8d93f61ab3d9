"""Averages its parameters one by one."""

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, device="cuda") for _ in range(60)))
averages = [parameter.detach().clone() for parameter in model.parameters()]
parameters = [parameter.detach() for parameter in model.parameters()]
for _ in range(200):
    for average, parameter in zip(averages, parameters, strict=True):
        average.mul_(0.999).add_(parameter, alpha=0.001)
torch.cuda.synchronize()
