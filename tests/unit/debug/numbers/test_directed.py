"""A multiplication and an addition that are rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bragg.debug.numbers.directed import operate

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)


@given(FINITE, FINITE, FINITE, st.integers(-3, 3))
def test_float64_is_fused_exactly(x: float, y: float, z: float, steps: int) -> None:
    for addend in (z, -(x * y) * (1 + steps * 2.0**-52)):
        exact = Fraction(x) * Fraction(y) + Fraction(addend)
        with np.errstate(all="ignore"):
            result = operate("fma", "rn", *(np.array([value]) for value in (x, y, addend)))
        assert result[0] == float(exact)


def test_overflow_rounds_to_infinity_of_its_sign() -> None:
    with np.errstate(all="ignore"):
        result = operate("fma", "rn", np.array([1e308, -1e308]), np.array([1e308, 1e308]), np.array([0.0, 1.0]))
    assert result.tolist() == [np.inf, -np.inf]
