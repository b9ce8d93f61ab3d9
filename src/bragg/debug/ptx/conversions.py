"""`cvt`: conversions between the types of PTX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.numbers.directed import MODES, rounded, stepped
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.rounding import decode, encode, round_to, truncate_to
from bragg.debug.numbers.scaled import E2M1_VALUES
from bragg.debug.ptx.numbers import NumberType, number_type, unsupported
from bragg.model.table import Array

_TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_NARROW = {"e4m3": "fp8e4nv", "e5m2": "fp8e5"}
# Bits of one number of the types that only conversions know.
_WIDTHS = {"e4m3": 8, "e5m2": 8, "ue8m0": 8, "e2m1": 4}


def convert(name: str, modifiers: list[str], values: list[Array]) -> Array:
    """The bits of converted numbers, uint64 [executions] as all registers; of two the first goes to the upper half.

    Raises:
        Unsupported: The types or the rounding are not known.
    """
    target, source = modifiers[-2:]
    options = modifiers[:-2]
    target, _, count = target.partition("x")
    source, _, source_count = source.partition("x")
    lanes = int(count or 1)
    if source_count:
        numbers = _numbers(source, int(source_count), values[0])
    else:
        numbers = [_numbers(source, 1, value)[0] for value in reversed(values)]
    if len(numbers) != lanes:
        raise unsupported(name)
    width = _WIDTHS.get(target) or (32 if target == "tf32" else number_type(target).bits)
    total: Any = np.uint64(0)
    for k, number in enumerate(numbers):
        total = total | _bits(name, target, options, number, source) << np.uint64(width * k)
    return np.asarray(total)


def _numbers(kind: str, count: int, bits: Array) -> list[Array]:
    if kind == "e2m1":
        return [E2M1_VALUES[(bits >> np.uint64(4 * k) & np.uint64(15)).astype(np.intp)] for k in range(count)]
    if kind == "ue8m0":
        codes = [(bits >> np.uint64(8 * k) & np.uint64(255)).astype(np.float64) for k in range(count)]
        return [np.where(code == 255, np.nan, np.exp2(code - 127)) for code in codes]
    if kind in _NARROW:
        dtype = DTYPES[_NARROW[kind]]
        return [decode((bits >> np.uint64(8 * k)).astype(np.uint8), dtype) for k in range(count)]
    return number_type(kind if count == 1 else f"{kind}x{count}").split(bits)


def _bits(name: str, target: str, options: list[str], number: Array, source: str) -> Array:
    if "relu" in options:
        number = np.maximum(number, 0)
    if target in ("e4m3", "e5m2"):
        dtype = DTYPES[_NARROW[target]]
        return encode(round_to(number.astype(np.float32), dtype), dtype).astype(np.uint64)
    if target == "e2m1":
        return _nearest_e2m1(number)
    if target == "ue8m0":
        return _exponents(number, "rp" in options)
    if target == "tf32":
        return _tf32(number, "rna" in options)
    kind = number_type(target)
    if not kind.is_float:
        return kind.joined([_as_integer(kind, options, number, source)])
    if number.dtype.kind == "f" and any(option in _TO_INTEGER for option in options):
        number = next(_TO_INTEGER[option] for option in options if option in _TO_INTEGER)(number)
    result = _as_float(name, kind, options, number)
    if "sat" in options:
        result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(result.dtype)
    return kind.joined([result])


def _as_integer(kind: NumberType, options: list[str], number: Array, source: str) -> Array:
    if number.dtype.kind != "f":
        if "sat" not in options:
            return number
        low, high = (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if kind.signed else (0, (1 << kind.bits) - 1)
        if number.dtype.kind == "u":
            return np.asarray(np.minimum(number, np.uint64(high)))
        clipped = np.maximum(number, low)
        return np.minimum(clipped.astype(np.uint64), np.uint64(high)) if low == 0 else np.minimum(clipped, high)
    turned = next((_TO_INTEGER[option] for option in options if option in _TO_INTEGER), np.trunc)
    wide = turned(number.astype(np.float64))
    least, most = (-(2.0 ** (kind.bits - 1)), 2.0 ** (kind.bits - 1)) if kind.signed else (0.0, 2.0**kind.bits)
    inside = np.where(np.isnan(wide) | (wide <= least) | (wide >= most), 0.0, wide)
    result = inside.astype(np.int64 if kind.signed else np.uint64).astype(np.uint64)
    result = np.where(wide >= most, np.uint64(int(most) - 1), result)
    result = np.where(wide <= least, np.uint64(int(least) % (1 << 64)), result)
    if source == "f64" or kind.bits == 64:
        result = np.where(np.isnan(wide), np.uint64(1 << (kind.bits - 1)), result)
    return result


def _as_float(name: str, kind: NumberType, options: list[str], number: Array) -> Array:
    mode = next((MODES[option] for option in options if option in MODES), "rn")
    if number.dtype.kind != "f" and mode != "rn" and kind.name in ("fp32", "fp64"):
        return _directed_integer(number, DTYPES[kind.name].carrier, mode)
    if kind.name == "fp64":
        return number.astype(np.float64)
    if kind.name == "fp32":
        if mode == "rn" or number.dtype == np.float32:
            return number.astype(np.float32)
        return rounded(number.astype(np.float64), mode)
    if mode == "rn":
        return round_to(number if number.dtype.kind == "f" else number.astype(np.float64), DTYPES[kind.name])
    if mode == "rz":
        return truncate_to(number.astype(np.float32), DTYPES[kind.name])
    raise unsupported(name)


def _directed_integer(number: Array, carrier: np.dtype[Any], mode: str) -> Array:
    nearest = number.astype(carrier)
    exact: Callable[[Array], Array] = np.frompyfunc(int, 1, 1)
    lacking = np.sign((exact(number) - exact(nearest.astype(np.float64))).astype(np.float64))
    return stepped(nearest, lacking, mode)


def _nearest_e2m1(number: Array) -> Array:
    """To nearest, ties to even, saturating; NaN becomes the greatest number."""
    magnitude = np.where(np.isnan(number), 6.0, np.abs(number.astype(np.float64)))
    # Halfway points between the 8 magnitudes; a tie goes to the even code.
    halves = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    code = np.zeros(number.shape, np.uint64)
    for k, half in enumerate(halves):
        code += (magnitude > half) | ((magnitude == half) & (k % 2 == 1))
    return np.asarray(code | np.where(np.signbit(number) & ~np.isnan(number), np.uint64(8), np.uint64(0)))


def _exponents(number: Array, up: bool) -> Array:
    """Powers of two as biased exponents; NaN is 255."""
    mantissa, exponent = np.frexp(np.abs(number.astype(np.float64)))
    code = exponent - 1 + 127 + (up & (mantissa > 0.5))
    code = np.where(np.isinf(number), 254, np.where(number == 0, 0, np.clip(code, 0, 254)))
    return np.where(np.isnan(number), 255, code).astype(np.uint64)


def _tf32(number: Array, away: bool) -> Array:
    """float32 with 10 digits; ties away from zero, or to even."""
    bits = number.astype(np.float32).view(np.uint32).astype(np.uint64)
    half = np.uint64(0x1000) if away else np.uint64(0xFFF) + (bits >> np.uint64(13) & np.uint64(1))
    turned = bits + half & np.uint64(0xFFFFE000)
    return np.where(np.isfinite(number), turned, bits)
