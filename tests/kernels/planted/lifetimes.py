"""Planted pointers to tensors that are gone."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.kernels.planted.table import bug

# More than the C library keeps for reuse: what is freed goes back to the system, and a new one gets a new place.
LARGE = 1 << 21


def table_with_a_freed_row():
    torch = pytest.importorskip("torch")
    rows = [torch.ones(LARGE) for _ in range(3)]
    addresses = [row.data_ptr() for row in rows]
    KEPT[:] = [rows[0], rows[2]]
    return np.array(addresses)


def resized():
    torch = pytest.importorskip("torch")
    tensor = torch.ones(64)
    tensor.untyped_storage().resize_(0)
    return tensor


KEPT: list[object] = []


@bug("stale-memory", table_with_a_freed_row, lambda: np.zeros(3, "f4"), grid=(3,), programs={1}, B=64)
@triton.jit
def sums_rows_of_a_table(table, out, B: tl.constexpr):
    row = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    values = tl.load(row + tl.arange(0, B))  # bug
    tl.store(out + tl.program_id(0), tl.sum(values, 0))


@bug("stale-memory", resized, grid=(1,), tensor="x", programs={0})
@triton.jit
def writes_a_tensor_without_memory(x):
    tl.store(x + tl.arange(0, 64), 1.0)  # bug
