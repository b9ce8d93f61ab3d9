"""Rounding to narrow floats, and their bits in memory.

Floats below 32 bits are carried as float32. One operation in float32 followed by one rounding gives the correctly
rounded result for + - * / and square root, because float32 has more than twice their digits.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from bragg.debug.numbers.dtypes import DType, Minifloat
from bragg.model.table import Array

_BF16_NAN = np.uint32(0x7FFF0000)  # What cvt.rn.bf16.f32 gives for every NaN.


def round_to(values: Array, dtype: DType) -> Array:
    """Round float32 [any] to the nearest value of a narrow type, ties to even; floats of 8 bits saturate.

    Args:
        values: float32, or float64 for the widest sources.
        dtype: A type with `is_narrow`.
    """
    if dtype.name == "fp16":
        return values.astype(np.float16).astype(np.float32)
    if values.dtype == np.float64:
        values = _round_to_odd(values)
    if dtype.name == "bf16":
        return _round_bf16(values)
    layout = _layout(dtype)
    return _round_finite(values) if layout.is_finite else _round_minifloat(values, layout)


def truncate_to(values: Array, dtype: DType) -> Array:
    """Round float32 [any] to fp16, bf16 or fp8e5 toward zero; fp8e5 is the upper byte of fp16, as in Triton."""
    if dtype.name == "bf16":
        cut = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        result: Array = np.where(np.isnan(values), np.float32(np.nan), cut.view(np.float32))
        return result
    half = _truncated_fp16(values)
    if dtype.name == "fp16":
        return half
    upper = (half.astype(np.float16).view(np.uint16) & np.uint16(0xFF00)).view(np.float16)
    return np.asarray(np.where(np.isnan(values), np.float32(np.nan), upper.astype(np.float32)))


def _truncated_fp16(values: Array) -> Array:
    nearest = values.astype(np.float16)
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(values.astype(np.float64))
    toward_zero = np.where(too_far, np.nextafter(nearest, np.float16(0)), nearest)
    return np.where(np.isinf(values), values, toward_zero.astype(np.float32)).astype(np.float32)


def flushed(values: Array) -> Array:
    """Values of any shape: subnormal float32 become zeros of their sign, as `.ftz` asks for; other types stay."""
    if values.dtype != np.float32:
        return values
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def encode(values: Array, dtype: DType) -> Array:
    """The bits in memory of values that the type can hold: unsigned, of the shape of the values [any]."""
    if dtype.minifloat:
        return _encode_minifloat(values, dtype.minifloat)
    if dtype.name == "bf16":
        result: Array = (np.ascontiguousarray(values).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return result
    return values.astype(dtype.storage)


def decode(bits: Array, dtype: DType) -> Array:
    """Values of bits in memory, in the type's carrier, of the shape of the bits [any]."""
    if dtype.minifloat:
        table: Array = _table(dtype.minifloat)
        return table[bits]
    if dtype.name == "bf16":
        result: Array = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return result
    return bits.astype(dtype.carrier, copy=False)


def _layout(dtype: DType) -> Minifloat:
    assert dtype.minifloat is not None
    return dtype.minifloat


def _round_to_odd(values: Array) -> Array:
    """float64 to float32 so that a second rounding to fewer digits is exact (Boldo and Melquiond, 2005)."""
    nearest = values.astype(np.float32)
    inexact = (nearest.astype(np.float64) != values) & np.isfinite(nearest) & ~np.isnan(values)
    away = np.abs(nearest.astype(np.float64)) > np.abs(values)
    toward_zero = np.where(away & inexact, np.nextafter(nearest, np.float32(0)), nearest)
    bits = toward_zero.view(np.uint32) | inexact.astype(np.uint32)
    result: Array = bits.view(np.float32)
    return result


def _round_bf16(values: Array) -> Array:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits >> np.uint32(16)
    rounded &= np.uint32(1)
    rounded += np.uint32(0x7FFF)
    rounded += bits
    rounded &= np.uint32(0xFFFF0000)
    is_nan = np.isnan(values)
    if is_nan.any():
        rounded[is_nan] = _BF16_NAN
    result: Array = rounded.view(np.float32)
    return result


def _greatest(layout: Minifloat) -> float:
    """The greatest finite value."""
    steps = (1 << (layout.mantissa + 1)) - 1
    highest = (1 << layout.exponent) - 1 - layout.bias
    if layout.has_infinity:
        highest -= 1
    elif not layout.is_fnuz:
        steps -= 1  # All ones is NaN.
    return float(steps * 2.0 ** (highest - layout.mantissa))


def _round_minifloat(values: Array, layout: Minifloat) -> Array:
    magnitude = np.abs(values).astype(np.float32, copy=False)
    bits = magnitude.view(np.uint32)
    shift = np.uint32(23 - layout.mantissa)
    odd = (bits >> shift) & np.uint32(1)
    half = np.uint32((1 << (22 - layout.mantissa)) - 1)
    normal = (((bits + half + odd) >> shift) << shift).view(np.float32)
    least_exponent = 1 - layout.bias
    step = np.float32(2.0 ** (least_exponent - layout.mantissa))
    subnormal = np.rint(magnitude / step) * step
    rounded = np.where(magnitude < np.float32(2.0**least_exponent), subnormal, normal)
    rounded = np.minimum(rounded, np.float32(_greatest(layout)))
    signed = np.copysign(np.where(np.isnan(values), np.float32(np.nan), rounded), values)
    result: Array = signed + np.float32(0) if layout.is_fnuz else signed
    return result


def _round_finite(values: Array) -> Array:
    """float32 to fp8e4b15: toward zero to fp16, clamped to 1.75 as NaN is, then to nearest with ties away from zero.

    Source: what Triton compiles for sm_80 and later; there is no instruction for it.
    """
    magnitude = np.fmin(np.abs(_truncated_fp16(values)), np.float32(1.75)).astype(np.float16)
    code = (magnitude.view(np.uint16).astype(np.uint32) * 2 + 0x80) >> 8
    rounded = (code << 7).astype(np.uint16).view(np.float16).astype(np.float32)
    result: Array = np.copysign(rounded, values)
    return result


def _encode_minifloat(values: Array, layout: Minifloat) -> Array:
    magnitude = np.abs(values).astype(np.float32, copy=False)
    bits = magnitude.view(np.uint32)
    shift = np.uint32(23 - layout.mantissa)
    normal = (bits >> shift) - np.uint32((127 - layout.bias) << layout.mantissa)
    step = np.float32(2.0 ** (1 - layout.bias - layout.mantissa))
    least = np.float32(2.0 ** (1 - layout.bias))
    is_nan = np.isnan(values) if not layout.is_finite else np.bool_(False)
    small = np.where(magnitude < least, magnitude / step, 0).astype(np.uint32)
    code = np.where(magnitude < least, small, normal)
    code = np.where(np.isinf(values), np.uint32(((1 << layout.exponent) - 1) << layout.mantissa), code)
    code |= np.signbit(values).astype(np.uint32) << np.uint32(7)
    nan = 0x80 if layout.is_fnuz else 0x7F
    return np.where(is_nan, np.uint32(nan), code).astype(np.uint8)


@cache
def _table(layout: Minifloat) -> Array:
    """float32 [256]: the value of each code."""
    codes = np.arange(256)
    exponent = (codes >> layout.mantissa) & ((1 << layout.exponent) - 1)
    mantissa = codes & ((1 << layout.mantissa) - 1)
    significand = mantissa + np.where(exponent > 0, 1 << layout.mantissa, 0)
    power = np.maximum(exponent, 1) - layout.bias - layout.mantissa
    values = (significand * 2.0**power).astype(np.float32)
    values = np.where(codes >= 128, -values, values)
    top = (1 << layout.exponent) - 1
    if layout.is_fnuz:
        values[0x80] = np.nan
    elif layout.has_infinity:
        values = np.where(exponent == top, np.where(mantissa == 0, np.copysign(np.inf, values), np.nan), values)
    elif not layout.is_finite:
        values[[0x7F, 0xFF]] = np.nan
    result: Array = values.astype(np.float32)
    return result
