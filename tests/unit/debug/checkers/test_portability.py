"""What only some GPUs compile is reported for those alone."""

# ruff: noqa: N803 - constants of a kernel are capitals, as in Triton's own code

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl

import bragg.debug


@triton.jit
def product(x, N: tl.constexpr):
    place = x + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(place)
    tl.store(place, tl.dot(values, values).to(x.dtype.element_ty))


@pytest.mark.parametrize(
    ("kind", "size", "target", "told"),
    [
        ("f4", 8, "sm_90", 8),
        ("i1", 16, "sm_90", 16),
        ("i1", 16, "gfx942", 0),
        ("i1", 16, "any", 0),
        ("f2", 16, "sm_90", 0),
    ],
)
def test_products_of_few_elements_are_those_that_the_compiler_of_the_target_refuses(
    kind: str, size: int, target: str, told: int
) -> None:
    with bragg.debug.check(only=["portability"], target=target) as report:
        product[(1,)](np.ones((size, size), kind), N=size)
    found = [line for finding in report for line in finding.lines() if "tl.dot over" in line]
    expected = [f"  Triton does not compile tl.dot over {told} elements of {product_type(kind)} for NVIDIA GPUs"]
    assert found == (expected if told else [])


def product_type(kind: str) -> str:
    return {"f4": "fp32", "i1": "int8", "f2": "fp16"}[kind]
