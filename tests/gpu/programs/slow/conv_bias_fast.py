"""The repaired twin of conv_bias_slow.py."""

import torch


def block():
    """A convolution and its norm."""
    return torch.nn.Conv2d(64, 64, 3, padding=1, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU(inplace=True)


model = torch.nn.Sequential(*(layer for _ in range(6) for layer in block())).cuda().half()
batch = torch.randn(64, 64, 112, 112, device="cuda", dtype=torch.half)
model, batch = (each.to(memory_format=torch.channels_last) for each in (model, batch))
for _ in range(40):
    model(batch).mean().backward()
    model.zero_grad()
torch.cuda.synchronize()
