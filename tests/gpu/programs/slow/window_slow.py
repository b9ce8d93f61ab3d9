"""Shifts a window of the last states by copying it."""

import torch

STATES = 64
window = torch.zeros(256, STATES, 1024, device="cuda")
for step in range(300):
    state = torch.full((256, 1, 1024), float(step), device="cuda")
    window = torch.cat([window[:, 1:], state], dim=1)
    window[:, :8].mean(1)
torch.cuda.synchronize()
