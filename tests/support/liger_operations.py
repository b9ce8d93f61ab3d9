"""Runs operations of the package liger-kernel, forward and backward: `bragg check` must find nothing."""

from __future__ import annotations

import importlib
from typing import Any

import torch


def numbers(*shape: int, dtype: torch.dtype = torch.float32, learns: bool = True) -> Any:
    return torch.randn(*shape).to("cuda", dtype).detach().requires_grad_(learns)


def chances(rows: int, columns: int, *, logarithmic: bool = False, learns: bool = True) -> Any:
    function = torch.log_softmax if logarithmic else torch.softmax
    return function(numbers(rows, columns, learns=learns), -1)


def operation(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), f"Liger{name}Function").apply


def learn(result: Any) -> None:
    parts = result if isinstance(result, tuple) else (result,)
    total = sum(part.float().sum() for part in parts if torch.is_tensor(part) and part.requires_grad)
    total.backward()


def main() -> None:
    torch.manual_seed(0)
    labels = torch.tensor([1, 2, -100, 5, 7, 90], device="cuda")
    for dtype in (torch.float32, torch.bfloat16):
        for mode, offset in (("llama", 0.0), ("gemma", 1.0), ("none", 0.0)):
            x, w = numbers(6, 100, dtype=dtype), numbers(100, dtype=dtype)
            learn(operation("rms_norm", "RMSNorm")(x * 1, w, 1e-6, offset, mode, False))
    learn(operation("layer_norm", "LayerNorm")(numbers(6, 100), numbers(100), numbers(100), 1e-6))
    learn(operation("group_norm", "GroupNorm")(numbers(4, 6, 30), numbers(6), numbers(6), 6, 3, 1e-6))
    learn(operation("swiglu", "SiLUMul")(numbers(4, 7, 100), numbers(4, 7, 100)))
    learn(operation("geglu", "GELUMul")(numbers(4, 7, 100), numbers(4, 7, 100)))
    loss = operation("cross_entropy", "CrossEntropy")
    learn(loss(numbers(6, 100) * 1, labels, None, -100, 0.0, 0.0, "mean", None, False)[0])
    learn(loss(numbers(6, 100) * 1, labels, None, -100, 1e-4, 0.1, "sum", 30.0, True)[0])
    fused = operation("fused_linear_cross_entropy", "FusedLinearCrossEntropy")
    learn(fused(numbers(6, 32), numbers(100, 32), labels, numbers(100))[0])
    theirs = chances(6, 100, logarithmic=True, learns=False)
    learn(operation("jsd", "JSD")(chances(6, 100, logarithmic=True), theirs, labels, 0.3))
    ours = chances(6, 100, logarithmic=True)
    learn(operation("kl_div", "KLDivLoss")(ours, chances(6, 100, learns=False), "batchmean"))
    learn(operation("tvd", "TVDLoss")(chances(6, 100), chances(6, 100, learns=False)))
    angles = numbers(1, 6, 32, learns=False), numbers(1, 6, 32, learns=False)
    learn(operation("rope", "Rope")(numbers(2, 4, 6, 32) * 1, numbers(2, 2, 6, 32) * 1, *angles))
    learn(operation("softmax", "Softmax")(numbers(6, 100)))
    learn(operation("sparsemax", "Sparsemax")(numbers(6, 100), -1))
    learn(
        operation("fused_add_rms_norm", "FusedAddRMSNorm")(numbers(6, 100) * 1, numbers(6, 100) * 1, numbers(100), 1e-6)
    )
    block = (numbers(1, 2, 20, 32) for _ in range(3))
    learn(operation("fused_neighborhood_attention", "FusedNeighborhoodAttention")(*block, 7, 1))


if __name__ == "__main__":
    main()
