"""Products of float32 whose every bit is known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bragg.debug.numbers.tensor_core import cut_to_tf32, fused_product, split_product

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def fused_by_fractions(a: Any, b: Any, start: Any) -> float:
    total = np.float32(start)
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total = nearest_float32(Fraction(x) * Fraction(y) + Fraction(float(total)))
    return float(total)


def nearest_float32(exact: Fraction) -> Any:
    near = np.float32(float(exact))
    rivals = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    return min(rivals, key=lambda one: (abs(Fraction(float(one)) - exact), int(one.view(np.uint32)) & 1))


def test_each_step_along_k_is_rounded_once() -> None:
    a, b, start = normal(2, 3, 40), normal(1, 40, 4), normal(2, 3, 4)
    actual = fused_product(a, b, start)
    for p, m, n in np.ndindex(2, 3, 4):
        assert actual[p, m, n] == fused_by_fractions(a[p, m], b[0, :, n], start[p, m, n])


@pytest.mark.parametrize("power", [-60, -70, -75])
def test_subnormal_sums_are_rounded_once_too(power: int) -> None:
    a, b = normal(1, 2, 20) * np.float32(2.0**power), normal(1, 20, 2) * np.float32(2.0**power)
    actual = fused_product(a, b, np.zeros((1, 2, 2), np.float32))
    assert (np.abs(actual) < np.finfo(np.float32).tiny).any() or power > -63
    for m, n in np.ndindex(2, 2):
        assert actual[0, m, n] == fused_by_fractions(a[0, m], b[0, :, n], 0)


def test_what_float64_rounds_to_halfway_is_rounded_from_the_exact_sum() -> None:
    start = np.full((1, 1), 1, np.float32)
    a = np.array([[2.0**-24 * (1 + 2.0**-12)]], np.float32)
    halfway_and_a_little = fused_product(
        np.array([[1 + 2.0**-23]], np.float32), np.array([[2.0**-24]], np.float32), start
    )
    assert halfway_and_a_little == np.nextafter(np.float32(1), np.float32(2))
    tiny = np.array([[2.0**-24, 2.0**-80]], np.float32)
    assert fused_product(np.ones((1, 2), np.float32), tiny.T, start) == 1
    assert fused_product(a, np.ones((1, 1), np.float32), start) == np.nextafter(np.float32(1), np.float32(2))
    assert fused_product(-a, np.ones((1, 1), np.float32), start) == np.float32(1 - 2.0**-24)


@pytest.mark.parametrize(("precision", "error"), [("tf32x3", 2e-6), ("bf16x3", 2e-4), ("bf16x6", 3e-6)])
def test_parts_add_up(precision: str, error: float) -> None:
    a, b = normal(16, 32), normal(32, 16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b)
    assert (np.abs(split_product(a, b, precision) - exact) / scale).max() < error


def test_a_term_below_the_places_of_the_largest_is_lost() -> None:
    a, ones = np.array([[2.0**25, 1, 1, 1, -(2.0**25), 0, 0, 0]], np.float32), np.ones((8, 1), np.float32)
    assert split_product(a, ones, "tf32x3") == 3
    assert split_product(a * np.float32([[2, 1, 1, 1, 2, 0, 0, 0]]), ones, "tf32x3") == 0


@pytest.mark.filterwarnings("ignore:invalid value")
def test_infinities_stay() -> None:
    a = np.array([[np.inf, 1]], np.float32)
    assert split_product(a, np.ones((2, 1), np.float32), "tf32x3") == np.inf
    assert np.isnan(split_product(a, np.zeros((2, 1), np.float32), "tf32x3"))


def test_a_tensor_core_reads_ten_digits() -> None:
    assert cut_to_tf32(np.array([1 + 2.0**-10 + 2.0**-11], np.float32)) == 1 + 2.0**-10
