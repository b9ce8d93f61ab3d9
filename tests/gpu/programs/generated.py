"""A kernel that PyTorch generates."""

from __future__ import annotations

import torch

import bragg


@torch.compile
def generated(x):
    return (x.relu() + 1).sum(-1)


def main() -> None:
    x = torch.ones(1024, 32, device="cuda")
    with bragg.scope("generated"):
        for _ in range(3):
            generated(x)
    torch.cuda.synchronize()


main()
