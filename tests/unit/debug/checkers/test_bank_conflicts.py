# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code
"""Bank conflicts, which need the kernel as Triton compiles it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


class Parts(NamedTuple):
    """Where rows go, and what is done to them."""

    out: Any
    scales: tuple[float, int]


@triton.jit
def rows_by_descriptor(source, parts, B: tl.constexpr):
    rows = source.load([0, 0]) * parts.scales[0] + parts.scales[1]
    tl.store(parts.out + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], rows)


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_kernels_with_descriptors_and_tuples_are_compiled_for_their_bank_conflicts() -> None:
    torch = pytest.importorskip("torch")
    descriptor = pytest.importorskip("triton.tools.tensor_descriptor").TensorDescriptor
    source, out = torch.ones(16, 16), torch.zeros(16, 16)
    with bragg.debug.check(only=["bank-conflict"]) as report:
        rows_by_descriptor[(1,)](descriptor.from_tensor(source, [16, 16]), Parts(out, (2.0, 1)), 16)
    assert not len(report), report.lines()
    assert (out == 3).all()


@triton.jit
def rows_by_number(source, numbers, out, N: tl.constexpr):
    rows = source.gather(tl.load(numbers + tl.arange(0, 8)), 0)
    tl.store(out + tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :], rows)


@pytest.mark.filterwarnings("ignore:TRITON_")
def test_what_the_assembler_refuses_is_named() -> None:
    torch = pytest.importorskip("torch")
    descriptor = pytest.importorskip("triton.tools.tensor_descriptor").TensorDescriptor
    source = descriptor.from_tensor(torch.ones(16, 32), [1, 32])
    with bragg.debug.check(only=["bank-conflict"]) as report:
        rows_by_number[(1,)](source, np.arange(8, dtype=np.int32), np.zeros((8, 32), "f4"), 32)
    (finding,) = report
    assert finding.message.startswith("Triton does not compile this kernel for a Hopper GPU: Feature ")
    assert finding.message.endswith("requires .target sm_100 or higher")
