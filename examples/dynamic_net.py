"""A network whose graph changes at every step, after the idea of PyTorch's tutorial on control flow.

    bragg run examples/dynamic_net.py
    bragg view dynamic_net.bragg

Nothing of bragg is in it. A sine is fitted by a polynomial: cubic, with a term of fourth or of fourth and fifth order
now and then, which share one weight. All tensors are tiny, so the time goes to the host: on a GPU, look at how little
of it is busy.
"""

import math
import random

import torch
from torch import nn

STEPS = 1000
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class DynamicNet(nn.Module):
    """a + b x + c x^2 + d x^3, and e x^4 or e x^4 + e x^5 as the dice fall."""

    def __init__(self) -> None:
        super().__init__()
        self.cubic = nn.Parameter(torch.randn(4))
        self.higher = nn.Parameter(torch.randn(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The polynomial at x: float [points]."""
        y = torch.zeros_like(x)
        for exponent, weight in enumerate(self.cubic):
            y = y + weight * x**exponent
        for exponent in range(4, random.randint(4, 6)):
            y = y + self.higher * x**exponent
        return y


def main() -> None:
    """Fit, then say how far off it is."""
    random.seed(0)
    torch.manual_seed(0)
    x = torch.linspace(-math.pi, math.pi, 2000, device=DEVICE)
    y = torch.sin(x)
    net = DynamicNet().to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-8, momentum=0.9)
    for step in range(STEPS):
        loss = nn.functional.mse_loss(net(x), y, reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 249:
            print(f"step {step + 1}: loss {loss.item():.0f}")


if __name__ == "__main__":
    main()
