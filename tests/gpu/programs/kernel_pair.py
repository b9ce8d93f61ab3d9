"""Launches one side of a pair of kernels: kernel_pair.py NUMBER broken|repaired.

Tensors are large enough that the kernel takes most of the time, and both sides of a pair do the same work.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.compiled_variants import MANY_BLOCKS, Variant
from tests.support.kernel_pairs import PAIRS

LAUNCHES = 30
ELEMENTS = 1 << 26
LENGTH, PROGRAMS = 1 << 15, 2048
ROW = 8192
TYPES = {
    "*fp16": torch.float16,
    "*bf16": torch.bfloat16,
    "*fp32": torch.float32,
    "*fp64": torch.float64,
    "*fp8e5": torch.float8_e5m2,
    "*i8": torch.int8,
}


def integer(variant: Variant, name: str) -> int:
    """A value of an argument; one that nothing is promised of is not divisible by 16."""
    kernel = variant.kernel.__name__
    strides = {
        "scale_rows": 1040,
        "copy_columns": 1 << 16,
        "copy_rows": 1024,
        "write_columns": 1 << 22,
        "write_rows": 64,
    }
    sizes = {
        "scale": ELEMENTS,
        "sum_of_transposed": 4096,
        "sum_of_tiles": 4096,
        "scale_columns": 32,
        "scale_columns_once": 32,
        "strip_of_products": 4096,
        "strip_of_products_once": 4096,
        "transpose_by_index": 1 << 14,
        "transpose_by_size": 1 << 13,
        "transpose_by_tiles": 1 << 13,
    }
    if name in variant.sizes:
        return variant.sizes[name]
    if kernel == "scale_and_print":
        return ELEMENTS
    if kernel in ("sum_columns", "norm_blocks_of_rows", "norm_rows") or kernel.startswith("softmax_"):
        return ROW
    if kernel.startswith(("product", "fourier", "distances")):
        return 4096
    of_rows = 32 if kernel.startswith("add_rows") else sizes.get(kernel, LENGTH)
    value = strides[kernel] if name == "stride" else of_rows
    return value - 11 if name in variant.unaligned else value


def grid(variant: Variant) -> tuple[int, ...]:
    """Enough blocks for all elements."""
    kernel, constants = variant.kernel.__name__, variant.constants
    if "n" in variant.sizes and kernel == "scale":
        return (variant.grid,)
    if variant.grid_z > 1 or kernel == "product_of_parts":
        return 4096 // constants["BM"], 4096 // constants["BN"], variant.grid_z
    if kernel.startswith("strip_of_products"):
        return (8192 // constants["BM"],)
    if kernel.startswith(("scale_columns", "add_rows")):
        return (ELEMENTS // constants["BLOCK"] // 32,)
    if kernel.startswith(("product", "distances")):
        side = 4096 if variant.grid == MANY_BLOCKS else 1024
        return side // constants["BM"], side // constants["BN"]
    if kernel.startswith("attend"):
        return (LENGTH // constants["BM"],)
    if kernel in ("norm_blocks_of_rows", "norm_rows"):
        return (ROW, 8) if kernel == "norm_blocks_of_rows" else (ROW,)
    if kernel.startswith(("mean_", "sum_of_slots", "sum_of_filled_slots", "softmax_")):
        return (ROW,)
    if kernel.startswith("fourier"):
        return (ELEMENTS // 64 // constants["BLOCK"],)
    if kernel.startswith("cumulate"):
        return (LENGTH // 16,)
    if kernel in ("all_experts", "own_expert"):
        return (ELEMENTS // constants["D"] // constants["BM"],)
    if kernel.startswith(("sum_of_segment", "sum_of_sorted")):
        return (variant.grid,)
    if kernel in ("sum_of_rows", "softmax"):
        return (ELEMENTS // constants["BLOCK"] // constants.get("ROWS", 1),)
    if kernel == "sum_columns":
        return (ROW // constants["BN"],)
    if kernel == "transpose_by_tiles":
        return (1 << 13) // constants["BLOCK"], (1 << 13) // constants["BLOCK"]
    if kernel in ("sum_by_elements", "scale_by_elements"):
        return (PROGRAMS if kernel == "sum_by_elements" else ELEMENTS,)
    if kernel in ("copy_columns", "copy_rows", "scale_rows"):
        return (1 << 16,)
    if kernel in ("write_columns", "write_rows"):
        return (1024,)
    if kernel in ("sum_of_transposed", "sum_of_tiles"):
        return (256,)
    has_loop = "n" in variant.kernel.arg_names and kernel not in ("scale", "scale_and_print")
    return (PROGRAMS,) if has_loop else (ELEMENTS // constants["BLOCK"],)


def argument(variant: Variant, name: str) -> Any:
    """A tensor, a number or a constant."""
    kind = variant.types.get(name)
    if kind is None:
        return variant.constants[name]
    if kind in TYPES:
        # Transposed writes reach 64 strides far.
        count = 1 << 28 if variant.kernel.__name__ == "write_columns" and name == "out" else (1 << 26) + (1 << 22)
        # PyTorch fills no tensor of 8-bit floats.
        dtype = torch.uint8 if kind == "*fp8e5" else TYPES[kind]
        return torch.ones(count, dtype=dtype, device="cuda").view(TYPES[kind])
    if kind == "*i32":
        return indices(variant, name)
    return integer(variant, name) if kind == "i32" else 1.5


def indices(variant: Variant, name: str) -> torch.Tensor:
    """Lengths from 1 to the most, rows of a table, experts of groups of rows, segments of one size."""
    most = {"lengths": variant.constants.get("MOST", 2), "counts": variant.constants.get("SLOTS", 2)}
    if name in most:
        return torch.randint(1, most[name], (ROW,), dtype=torch.int32, device="cuda")
    if name == "items":
        return torch.randint(0, 1 << 16, (1 << 20,), dtype=torch.int32, device="cuda")
    if name == "experts":
        return torch.arange(1 << 20, dtype=torch.int32, device="cuda") // 64 % 8
    size = LENGTH // variant.grid
    if "sorted" in variant.name:
        return torch.arange(variant.grid + 1, dtype=torch.int32, device="cuda") * size
    return torch.arange(LENGTH, dtype=torch.int32, device="cuda") // size


def main() -> None:
    """Launch it."""
    pair = PAIRS[int(sys.argv[1])]
    variant = pair.broken if sys.argv[2] == "broken" else pair.repaired
    arguments = [argument(variant, name) for name in variant.kernel.arg_names]
    for _ in range(LAUNCHES):
        variant.kernel[grid(variant)](*arguments, **variant.options)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
