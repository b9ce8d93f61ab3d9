"""A small PyTorch training loop: two interleaved spirals told apart, on the GPU if there is one.

    bragg run examples/train_mlp.py
    bragg view train_mlp.bragg

Operators and kernels show without any change of the program; the scopes say which phase of a step they belong to.
"""

import math

import torch
from torch import nn

import bragg

STEPS = 1000
BATCH = 256
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def spirals(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of two spirals: float [points, 2], and which spiral each is of: int64 [points]."""
    label = torch.randint(2, (points,))
    angle = torch.rand(points) * 3 * math.pi
    turned = angle + label * math.pi
    position = torch.stack([angle * turned.cos(), angle * turned.sin()], dim=1) / 10
    return position + 0.02 * torch.randn_like(position), label


def main() -> None:
    """Train, then say how well it went."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_function = nn.CrossEntropyLoss()
    for step in range(STEPS):
        with bragg.scope("data"):
            position, label = (tensor.to(DEVICE) for tensor in spirals(BATCH))
        with bragg.scope("forward"):
            loss = loss_function(model(position), label)
        with bragg.scope("backward"):
            optimizer.zero_grad()
            loss.backward()
        with bragg.scope("update"):
            optimizer.step()
        if step % 250 == 249:
            print(f"step {step + 1}: loss {loss.item():.3f}")

    position, label = (tensor.to(DEVICE) for tensor in spirals(10_000))
    with torch.no_grad(), bragg.scope("test"):
        correct = (model(position).argmax(dim=1) == label).float().mean()
    print(f"{correct.item():.1%} of new points told apart, on {DEVICE}")


if __name__ == "__main__":
    main()
