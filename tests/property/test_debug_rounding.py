"""Conversions agree with ml_dtypes, bit for bit, but for saturation: Triton's casts to floats of 8 bits clamp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.rounding import decode, encode, round_to, truncate_to

ml_dtypes = pytest.importorskip("ml_dtypes")

ORACLES = {
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp8e4b8": ml_dtypes.float8_e4m3fnuz,
    "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
}
FLOAT32_BITS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200)


def floats(bits: list[int]) -> Any:
    return np.array(bits, np.uint32).view(np.float32)


def same(a: Any, b: Any) -> bool:
    both_nan = np.isnan(a) & np.isnan(b)
    return bool((both_nan | (a.view(np.uint32) == b.view(np.uint32))).all())


def expected(values: Any, name: str) -> Any:
    """The oracle's rounding of values inside the range; the greatest finite value beyond it, for 8 bits."""
    oracle = ORACLES[name]
    greatest = np.float32(ml_dtypes.finfo(oracle).max)
    if DTYPES[name].bits == 8:
        values = np.where(np.isnan(values), values, np.clip(values, -greatest, greatest))
    with np.errstate(all="ignore"):
        return values.astype(oracle).astype(np.float32)


@pytest.mark.parametrize("name", ORACLES)
@given(bits=FLOAT32_BITS)
def test_rounding_is_to_nearest_even(name: str, bits: list[int]) -> None:
    values = floats(bits)
    with np.errstate(all="ignore"):
        assert same(round_to(values, DTYPES[name]), expected(values, name))


@pytest.mark.parametrize("name", ORACLES)
def test_every_code_survives_memory(name: str) -> None:
    dtype = DTYPES[name]
    codes = np.arange(1 << dtype.bits).astype(f"u{dtype.size_bytes}").view(dtype.storage)
    values = decode(codes, dtype)
    assert same(values, codes.view(ORACLES[name]).astype(np.float32))
    is_number = ~np.isnan(values)
    unsigned = f"u{dtype.size_bytes}"
    assert (encode(values, dtype).view(unsigned)[is_number] == codes.view(unsigned)[is_number]).all()
    assert np.isnan(decode(encode(values, dtype), dtype)).tolist() == np.isnan(values).tolist()


@pytest.mark.parametrize("name", ["bf16", "fp8e4nv", "fp8e5"])
@given(values=st.lists(st.floats(width=64, allow_nan=False, min_value=-400, max_value=400), min_size=1, max_size=100))
def test_float64_is_rounded_once(name: str, values: list[float]) -> None:
    wide = np.array(values)
    rounded = round_to(wide, DTYPES[name]).astype(np.float64)
    codes = decode(np.arange(1 << DTYPES[name].bits).astype(DTYPES[name].storage), DTYPES[name])
    grid = np.unique(codes[np.isfinite(codes)]).astype(np.float64)
    nearest = np.abs(wide[:, None] - grid).min(axis=1)
    assert (np.abs(wide - rounded) == nearest).all()


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@given(bits=FLOAT32_BITS)
def test_truncation_never_grows_and_stays_within_one_step(name: str, bits: list[int]) -> None:
    values = floats(bits)
    values = values[np.isfinite(values)]
    with np.errstate(all="ignore"):
        cut, near = truncate_to(values, DTYPES[name]), round_to(values, DTYPES[name])
    assert (np.abs(cut) <= np.abs(values)).all()
    assert same(round_to(cut, DTYPES[name]), cut)
    is_exact = near == values
    assert (cut[is_exact] == values[is_exact]).all()


def test_casts_to_eight_bits_clamp_as_the_gpu_does() -> None:
    values = np.array([1.972, 1e-3, 500, np.inf, np.nan, -500], np.float32)
    assert round_to(values, DTYPES["fp8e4nv"]).tolist()[:4] == [2.0, 0.001953125, 448, 448]
    assert round_to(values, DTYPES["fp8e5"]).tolist()[:4] == [2.0, 0.0009765625, 512, 57344]
    assert np.isnan(round_to(values, DTYPES["fp8e4nv"])[4])
    assert round_to(values, DTYPES["fp8e4nv"])[5] == -448
