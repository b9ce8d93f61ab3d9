"""Types of tl.maximum and the like: those of Triton before 3.9, and since."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

pytest.importorskip("triton")
pytest.importorskip("ml_dtypes")

import ml_dtypes
import triton
import triton.language as tl


@triton.jit
def types(x, out):
    a = tl.load(x)
    tl.store(out, tl.maximum(a, 0.5).dtype.primitive_bitwidth)
    tl.store(out + 1, tl.maximum(a, a).dtype.primitive_bitwidth)
    tl.store(out + 2, tl.fma(a, 2.0, a).dtype.primitive_bitwidth)
    tl.store(out + 3, tl.clamp(a, 0.0, 1.0).dtype.primitive_bitwidth)


@triton.jit
def clamped(x, out):
    tl.store(out, tl.clamp(tl.load(x), 1, 3))


def of_version(monkeypatch: pytest.MonkeyPatch, is_wide: bool) -> None:
    for module in ("numbers.arithmetic", "language"):
        monkeypatch.setattr(f"bragg.debug.{module}.extremes_are_wide", lambda: is_wide)


@pytest.mark.parametrize(
    ("name", "is_wide", "expected"),
    [
        ("float16", True, [32, 16, 32, 32]),
        ("bfloat16", True, [32, 32, 32, 32]),
        ("float16", False, [16, 16, 16, 16]),
        ("bfloat16", False, [16, 16, 16, 16]),
        ("float64", True, [64, 64, 64, 64]),
    ],
)
def test_bits_of_results(name: str, is_wide: bool, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    of_version(monkeypatch, is_wide)
    dtype: Any = ml_dtypes.bfloat16 if name == "bfloat16" else name
    out = np.zeros(4, "i4")
    bragg.debug.interpret(types)[(1,)](np.ones(1, dtype), out)
    assert out.tolist() == expected


def test_integers_are_clamped_since_3_9(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(1, "i4")
    of_version(monkeypatch, False)
    bragg.debug.interpret(clamped)[(1,)](np.full(1, 9, "i4"), out)
    assert out[0] == 3
    of_version(monkeypatch, True)
    with pytest.raises(KernelFault, match=r"tl\.clamp takes floats before Triton 3\.9"):
        bragg.debug.interpret(clamped)[(1,)](np.full(1, 9, "i4"), out)
