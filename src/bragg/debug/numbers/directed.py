"""Floating-point operations with a rounding direction: to nearest, toward zero, down, up.

The nearest result is computed first; the sign of what it lacks to the exact one says whether the neighbour is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from bragg.model.table import Array

# Names of libdevice and of PTX.
MODES = {"rn": "rn", "rz": "rz", "rd": "rd", "ru": "ru", "rm": "rd", "rp": "ru"}


def rounded(wide: Array, mode: str) -> Array:
    """float64 [any], exact or rounded to odd, to float32 of that shape."""
    nearest = wide.astype(np.float32)
    return stepped(nearest, np.sign(wide - nearest.astype(np.float64)), mode)


def odd_sum(a: Array, b: Array) -> Array:
    """`a + b`, float64 of any shape; an inexact sum has an odd last digit, so that rounding again is harmless."""
    total, error = _two_sum(a, b)
    is_even = (total.view(np.int64) & 1) == 0
    step = np.where((error > 0) == (total > 0), 1, -1)
    is_off = (error != 0) & is_even & np.isfinite(total)
    return np.where(is_off, (total.view(np.int64) + step).view(np.float64), total)


def operate(name: str, mode: str, *operands: Array) -> Array:
    """One of add, sub, mul, div, fma, sqrt, rcp on float32 or float64.

    Args:
        name: The operation.
        mode: rn, rz, rd or ru.
        operands: Arrays of one type and shape, which the result has, too.
    """
    if name == "sub":
        return operate("add", mode, operands[0], -operands[1])
    if name == "rcp":
        return operate("div", mode, np.ones_like(operands[0]), operands[0])
    if operands[0].dtype == np.float32:
        return _single(name, mode, *operands)
    if mode == "rn":
        return _fused(*operands) if name == "fma" else _NEAREST[name](*operands)
    return _exactly(name, mode, *operands)


_NEAREST: dict[str, Callable[..., Array]] = {"add": np.add, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}


def _fused(x: Array, y: Array, z: Array) -> Array:
    """`x * y + z` in float64, rounded once (Boldo and Melquiond, Emulation of FMA, 2008)."""
    x, y, z = np.broadcast_arrays(x, y, z)
    product = x * y
    error = _half(x) * _half(y) - product + _half(x) * _rest(y) + _rest(x) * _half(y) + _rest(x) * _rest(y)
    low, lower = _two_sum(z, error)
    high, middle = _two_sum(product, low)
    result: Array = np.asarray(high + odd_sum(lower, middle))
    is_plain = (np.abs(x) < _WIDE) & (np.abs(y) < _WIDE) & (np.abs(z) < _WIDE) & (np.abs(product) < _WIDE)
    is_plain &= (np.abs(product) > 1 / _WIDE) & (result != 0)
    if not is_plain.all():
        result[~is_plain] = _exactly("fma", "rn", x[~is_plain], y[~is_plain], z[~is_plain])
    return result


# Below it, and above its reciprocal, no part of a product of float64 overflows or is lost.
_WIDE = 2.0**900


def _half(x: Array) -> Array:
    """The upper half of the digits (Veltkamp)."""
    big = x * 134217729.0
    return np.asarray(big - (big - x))


def _rest(x: Array) -> Array:
    return np.asarray(x - _half(x))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """A sum and what it lacks."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _single(name: str, mode: str, *operands: Array) -> Array:
    if name in ("div", "sqrt"):
        nearest = _NEAREST[name](*operands)
        if mode == "rn":
            return nearest
        wide, x = nearest.astype(np.float64), operands[0].astype(np.float64)
        if name == "sqrt":
            return stepped(nearest, np.sign(x - wide * wide), mode)
        y = operands[1].astype(np.float64)
        return stepped(nearest, np.sign(x - wide * y) * np.sign(y), mode)
    x, *others = (operand.astype(np.float64) for operand in operands)
    if name == "mul":
        return rounded(x * others[0], mode)
    return rounded(odd_sum(x * others[0], others[1]) if name == "fma" else odd_sum(x, others[0]), mode)


def stepped(nearest: Array, lacking: Array, mode: str) -> Array:
    """The neighbour where the exact result lies on its side.

    Args:
        nearest: float32 or float64, of any shape.
        lacking: Of the same shape: the sign of exact minus nearest.
        mode: rn, rz, rd or ru.
    """
    down, up = np.nextafter(nearest, nearest.dtype.type(-np.inf)), np.nextafter(nearest, nearest.dtype.type(np.inf))
    if mode == "rd":
        return np.where(lacking < 0, down, nearest)
    if mode == "ru":
        return np.where(lacking > 0, up, nearest)
    if mode == "rz":
        return np.where((nearest > 0) & (lacking < 0), down, np.where((nearest < 0) & (lacking > 0), up, nearest))
    return nearest


_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "fma": lambda x, y, z: x * y + z,
}


def _exactly(name: str, mode: str, *operands: Array) -> Array:
    """float64, element by element with fractions."""

    def one(*values: float) -> tuple[float, float]:
        if not all(math.isfinite(value) for value in values) or (name == "div" and values[1] == 0):
            return _plain(name, *values), 0
        if name == "sqrt":
            root = math.sqrt(values[0]) if values[0] >= 0 else math.nan
            return root, 0 if math.isnan(root) else _sign(Fraction(values[0]) - Fraction(root) ** 2)
        exact = _EXACT[name](*map(Fraction, values))
        if exact == 0:
            return _plain(name, *values), 0
        try:
            nearest = float(exact)
        except OverflowError:
            return _sign(exact) * math.inf, -_sign(exact)
        return nearest, _sign(exact - Fraction(nearest))

    nearest, lacking = np.vectorize(one, otypes=[np.float64, np.float64])(*operands)
    return stepped(nearest, lacking, mode)


def _plain(name: str, *values: float) -> float:
    """The result where an operand is not finite, or the result is zero: it is exact, up to the sign of zero."""
    x, *others = (np.float64(value) for value in values)
    with np.errstate(all="ignore"):
        if name == "fma":
            return float(x * others[0] + others[1])
        return float(_NEAREST[name](x, *others))


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)
