"""Functions of libdevice give what Python, NumPy or their definition give."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.dtypes import dtype_of_array
from bragg.debug.numbers.libdevice import LIBDEVICE_FUNCTIONS
from bragg.debug.state import Listeners, Machine, use
from bragg.debug.values import Tensor


@pytest.fixture(autouse=True)
def one_program() -> Any:
    before = use(Machine((1, 1, 1), np.zeros(1, np.int64), Listeners()))
    yield
    use(before)


def call(name: str, *operands: Any) -> Any:
    tensors = []
    for operand in operands:
        array = np.atleast_1d(np.asarray(operand))
        dtype = dtype_of_array(array.dtype.name)
        assert dtype is not None
        tensors.append(Tensor(array[None], dtype))
    result = LIBDEVICE_FUNCTIONS[name](*tensors)
    return result.data[0].astype(result.dtype.carrier)


SIGNED = np.array([0, 1, -1, 5, 2**31 - 1, -(2**31), 0x12345678, -77], np.int32)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clz", lambda x: 32 - (x % 2**32).bit_length()),
        ("popc", lambda x: bin(x % 2**32).count("1")),
        ("ffs", lambda x: (x & -x).bit_length()),
        ("brev", lambda x: int(f"{x % 2**32:032b}"[::-1], 2)),
    ],
)
def test_bits_of_integers(name: str, expected: Callable[[int], int]) -> None:
    assert [value % 2**32 for value in call(name, SIGNED).tolist()] == [expected(x) for x in SIGNED.tolist()]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mulhi", lambda x, y: x * y >> 32),
        ("mul24", lambda x, y: low24(x) * low24(y)),
        ("hadd", lambda x, y: (x + y) >> 1),
        ("rhadd", lambda x, y: (x + y + 1) >> 1),
    ],
)
def test_pairs_of_integers(name: str, expected: Callable[[int, int], int]) -> None:
    a, b = (grid.ravel() for grid in np.meshgrid(SIGNED, SIGNED))
    wanted = [expected(x, y) % 2**32 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert [value % 2**32 for value in call(name, a, b).tolist()] == wanted


def low24(x: int) -> int:
    return ((x & 0xFFFFFF) ^ 0x800000) - 0x800000


def test_three_integers() -> None:
    assert call("byte_perm", np.int32(0x03020100), np.int32(0x07060504), np.int32(0x7531)).tolist() == [0x07050301]
    assert call("sad", SIGNED[:3], SIGNED[1:4], np.full(3, 10, np.int32)).tolist() == [11, 12, 16]


HARD = [0.1, -0.1, 1 / 3, 16777217.0, -16777219.0, 1e-45, 3e38, 123456789.123]


@pytest.mark.parametrize(("mode", "is_right"), [("rd", lambda r, x: r <= x), ("ru", lambda r, x: r >= x)])
def test_directed_conversions_and_sums_lie_on_their_side(mode: str, is_right: Any) -> None:
    x = np.array(HARD)
    narrow = call(f"double2float_{mode}", x)
    assert narrow.dtype == np.float32
    for result, value in zip(narrow.tolist(), x.tolist(), strict=True):
        assert is_right(result, value)
        assert abs(result - value) <= abs(value) * 2.0**-23 + 2e-45
    large = np.array([2**63 - 1, -(2**63) + 1, 2**53 + 1, 16777217], np.int64)
    for target in ("float", "double"):
        for result, value in zip(call(f"ll2{target}_{mode}", large).tolist(), large.tolist(), strict=True):
            assert is_right(Fraction(result), value)
    a, b = np.array(HARD[:4]), np.array(HARD[4:])
    for name, function in {"add": Fraction.__add__, "mul": Fraction.__mul__}.items():
        for result, x1, x2 in zip(call(f"{name}_{mode}", a, b).tolist(), a.tolist(), b.tolist(), strict=True):
            assert is_right(Fraction(result), function(Fraction(x1), Fraction(x2)))
    for result, value in zip(call(f"sqrt_{mode}", np.array([2.0, 3.0, 1e-300])).tolist(), (2, 3, 1e-300), strict=True):
        assert is_right(Fraction(result) ** 2, Fraction(value))


def test_floats_to_integers_round_as_they_are_named() -> None:
    x = np.array([2.5, -2.5, 3.5, -0.1, 3e9], np.float32)
    assert call("float2int_rn", x).tolist() == [2, -2, 4, 0, 2**31 - 1]
    assert call("float2int_rd", x).tolist() == [2, -3, 3, -1, 2**31 - 1]
    assert call("float2uint_ru", x).tolist() == [3, 0, 4, 0, 3_000_000_000]
    assert call("double2ll_rz", np.array([-1e18, 2.9])).tolist() == [-(10**18), 2]
    assert call("llrint", x).tolist() == [2, -2, 4, 0, 3_000_000_000]
    assert call("llround", x).tolist() == [3, -3, 4, 0, 3_000_000_000]


def test_bits_are_taken_as_other_types() -> None:
    x = np.array([1.5, -0.0], np.float32)
    assert call("float_as_int", x).tolist() == x.view(np.int32).tolist()
    assert call("int_as_float", x.view(np.int32)).tolist() == [1.5, 0.0]
    double = np.array([math.pi])
    high, low = call("double2hiint", double), call("double2loint", double)
    assert call("hiloint2double", high, low).tolist() == [math.pi]
    assert call("longlong_as_double", call("double_as_longlong", double)).tolist() == [math.pi]
    assert call("rcp64h", np.array([4.0])).tolist() == [0.25]


def test_exponents_and_scaling() -> None:
    x = np.array([8.0, 0.3, -5.0, 1e-310])
    assert call("ilogb", x).tolist() == [3, -2, 2, -1030]
    assert call("logb", x).tolist() == [3, -2, 2, -1030]
    assert call("ldexp", x[:3], np.array([1, 2, -1], np.int32)).tolist() == [16.0, 1.2, -2.5]
    assert call("remainder", np.array([5.5, -7.0]), np.array([2.0, 4.0])).tolist() == [-0.5, 1.0]
    assert call("saturatef", np.array([2, -1, 0.5, np.nan], np.float32)).tolist() == [1, 0, 0.5, 0]
    sides = [np.array([value]) for value in (1.0, 2.0, 2.0, 4.0)]
    assert (call("norm3d", *sides[:3]).tolist(), call("norm4d", *sides).tolist()) == ([3.0], [5.0])
    assert call("rnorm3d", *sides[:3]).tolist() == [1 / 3]


def bessel_by_its_integral(order: int, x: float) -> float:
    """The mean of cos(n t - x sin t) over a half turn; the trapezoidal rule is exact for periodic functions."""
    t = (np.arange(2000) + 0.5) * math.pi / 2000
    return float(np.cos(order * t - x * np.sin(t)).mean())


@pytest.mark.parametrize("x", [0.001, 0.5, 3.0, 17.0, 29.0, 31.0, 400.0])
def test_bessel_functions(x: float) -> None:
    place = np.array([x])
    for order, name in ((0, "j0"), (1, "j1")):
        assert call(name, place)[0] == pytest.approx(bessel_by_its_integral(order, x), rel=1e-11, abs=1e-14)
    n = np.array([4], np.int32)
    assert call("jn", n, place)[0] == pytest.approx(bessel_by_its_integral(4, x), rel=1e-10, abs=1e-14)
    j0, j1, y0, y1 = (call(name, place)[0] for name in ("j0", "j1", "y0", "y1"))
    assert j1 * y0 - j0 * y1 == pytest.approx(2 / (math.pi * x), rel=1e-10)  # Their Wronskian.
    y2 = call("yn", np.array([2], np.int32), place)[0]
    assert y2 == pytest.approx(2 / x * y1 - y0, rel=1e-10)


def test_inverse_functions_invert() -> None:
    x = np.linspace(-0.999, 0.999, 41)
    np.testing.assert_allclose([math.erf(y) for y in call("erfinv", x)], x, rtol=1e-14)
    p = np.array([1e-200, 1e-9, 0.3, 1.0, 1.7])
    np.testing.assert_allclose([math.erfc(y) for y in call("erfcinv", p)], p, rtol=1e-12)
    np.testing.assert_allclose(call("normcdf", call("normcdfinv", p[2:3])), p[2:3], rtol=1e-14)
    np.testing.assert_allclose(call("erfcx", np.array([2.0])), math.exp(4) * math.erfc(2), rtol=1e-14)
    i0 = sum((1.5**k / math.factorial(k)) ** 2 for k in range(30))
    np.testing.assert_allclose(call("cyl_bessel_i0", np.array([3.0])), i0, rtol=1e-14)


def test_wrong_type_is_named() -> None:
    with pytest.raises(KernelFault, match=r"libdevice\.clz takes int32 or int64, not fp32"):
        call("clz", np.array([1.0], np.float32))
    with pytest.raises(KernelFault, match=r"libdevice\.sin takes fp32 and fp64, not fp16"):
        call("sin", np.array([1.0], np.float16).astype(np.float16))


SUBNORMAL = np.array([1e-40, -1e-40], np.float32)
LEAST = np.finfo(np.float32).tiny


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sqrt", [0.0, -0.0]),
        ("floor", [0.0, -0.0]),
        ("log1p", [0.0, 0.0]),
        ("rsqrt", [math.inf, -math.inf]),
        ("cbrt", [math.nan, math.nan]),
        ("logb", [-150.0, -150.0]),
        ("normcdfinv", [-math.inf, -math.inf]),
        ("tgamma", [math.inf, -math.inf]),
        ("y0", [-math.inf, math.nan]),
        ("j1", [0.0, -0.0]),
        ("trunc", [0.0, -0.0]),
        ("erfinv", (SUBNORMAL * np.float32(math.sqrt(math.pi) / 2)).tolist()),
        ("log2", [*np.log2(SUBNORMAL[:1]).tolist(), math.nan]),
    ],
)
def test_subnormal_operands_are_zeros_where_libdevice_flushes_them(name: str, expected: list[float]) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(call(name, SUBNORMAL), np.array(expected, np.float32))


def test_results_that_are_subnormal_are_flushed_too() -> None:
    small = np.float32(1.5e-38)
    assert call("mul_rn", small, np.float32(0.5)) == 0
    assert call("pow", small, np.float32(1.01)) == 0
    assert call("pow", np.float32(1e-40), np.float32(-1)) == 2.0**127
    assert call("fmod", np.float32(2.5e-38), np.float32(1.2e-38)) == 0
    assert call("fmod", np.float32(1), np.float32(2.5e-38)) == np.fmod(np.float32(1), np.float32(2.5e-38)) > 0
    assert call("fdim", small, np.float32(1.2e-38)) == small - np.float32(1.2e-38) > 0


@pytest.mark.parametrize("x", [0.0, 1e-40])
def test_neighbours_of_zero_are_the_least_normal_numbers(x: float) -> None:
    assert call("nextafter", np.float32(x), np.float32(1)) == LEAST
    assert call("nextafter", np.float32(x), np.float32(-1)) == -LEAST
    assert call("nextafter", 0.0, 1.0) == np.nextafter(0.0, 1.0)


def test_half_turns_are_exact_at_halves() -> None:
    x = np.array([-1, -0.5, 0, 0.5, 1, 1.5, 127.5], np.float32)
    assert call("sinpi", x).tolist() == [0, -1, 0, 1, 0, -1, -1]
    assert call("cospi", x).tolist() == [-1, 0, 1, 0, -1, 0, 0]
