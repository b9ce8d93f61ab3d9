"""Launches ahead, waits for the GPU, reads single numbers, and allocates."""

import torch

import bragg


def main() -> None:
    matrix = torch.randn(4096, 4096, device="cuda")
    with bragg.scope("warm"):
        (matrix @ matrix).sum().item()
        torch.cuda.synchronize()
    with bragg.scope("ahead"):
        for _ in range(20):
            product = matrix @ matrix
    with bragg.scope("wait"):
        torch.cuda.synchronize()
    with bragg.scope("numbers"):
        for _ in range(10):
            (product @ matrix).sum().item()
    with bragg.scope("pageable"):
        (product @ matrix).cpu()
    with bragg.scope("memory"):
        torch.empty(1 << 30, dtype=torch.uint8, device="cuda")


main()
