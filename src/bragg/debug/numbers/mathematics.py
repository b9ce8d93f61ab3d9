"""Functions of floats of triton.language, and what those of libdevice share with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.operands import as_tensor, elementwise, pair
from bragg.debug.numbers.rounding import flushed
from bragg.debug.values import Tensor
from bragg.model.table import Array


def _strict(name: str, function: Callable[..., Array]) -> Callable[..., Tensor]:
    """A function that Triton has for float32 and float64 alone."""

    def apply(*operands: Any) -> Tensor:
        tensors = [as_tensor(operand) for operand in operands]
        for tensor in tensors:
            if tensor.dtype.name not in ("fp32", "fp64"):
                raise KernelFault(
                    f"tl.{name} takes fp32 and fp64, not {tensor.dtype}", hint="Convert with .to(tl.float32)"
                )
        return elementwise(function, tensors[0].dtype, *tensors)

    return apply


@cache
def _nodes() -> tuple[Array, Array]:
    """Places from 0 to 6, 1/128 apart, and the function there."""
    places = np.arange(0, 6.0 + 1 / 128, 1 / 128)
    return places, np.array([math.erf(place) for place in places])


def erf(x: Array) -> Array:
    """The error function of floats of any shape: a Taylor series of degree 6 around the nearest of 769 exact values."""
    places, values = _nodes()
    size = np.minimum(np.abs(x.astype(np.float64)), 6.0)
    index = np.rint(np.nan_to_num(size) * 128).astype(np.int64)
    near, step = places[index], size - places[index]
    slope = 2 / math.sqrt(math.pi) * np.exp(-near * near)
    # Derivatives of exp(-t^2) by the recurrence h[k+1] = -2 t h[k] - 2 k h[k-1].
    before, current = np.zeros_like(near), np.ones_like(near)
    total, factor = np.zeros_like(near), step.copy()
    for k in range(6):
        total += current * factor
        before, current = current, -2 * near * current - 2 * k * before
        factor = factor * step / (k + 2)
    result: Array = np.copysign(np.where(np.isnan(x), np.nan, values[index] + slope * total), x).astype(x.dtype)
    return result


def each(function: Callable[..., float]) -> Callable[..., Array]:
    """A function of Python's math module on floats of one shape; domain errors give NaN, overflows infinity."""

    def safe(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    vectorized = np.vectorize(safe, otypes=[np.float64])
    return lambda *arrays: vectorized(*arrays).astype(arrays[0].dtype)


_LOG2_E = np.float32(1.4426950408889634)


def _exp(x: Array) -> Array:
    """In float32, two to the power of a rounded product, as Triton computes it: far from 0 that costs digits."""
    result: Array = np.exp2(x * _LOG2_E) if x.dtype == np.float32 else np.exp(x)
    return result


def _rsqrt(x: Array) -> Array:
    return (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


def _flushing(function: Callable[..., Array]) -> Callable[..., Array]:
    """Takes and gives subnormal float32 as zeros, as the instructions with .ftz do that Triton compiles it to."""
    return lambda x: flushed(function(flushed(x)))


def exp2_flushed(x: Array) -> Array:
    """2 to the power of float32 of any shape; subnormal results are flushed to 0, as ex2.approx.ftz does."""
    result: Array = np.exp2(x)
    return np.where(result < np.finfo(np.float32).tiny, x.dtype.type(0), result) if x.dtype == np.float32 else result


def through_float64(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function on arrays of any shape and float type: correctly rounded in all but a few cases of 2^29."""
    return lambda *arrays: function(*(array.astype(np.float64) for array in arrays)).astype(arrays[0].dtype)


_STRICT: dict[str, Callable[..., Array]] = {
    "exp": _exp,
    "exp2": exp2_flushed,
    "log": np.log,
    "log2": np.log2,
    "cos": _flushing(np.cos),
    "sin": _flushing(np.sin),
    "sqrt": _flushing(np.sqrt),
    "sqrt_rn": np.sqrt,
    "rsqrt": _flushing(_rsqrt),
    "erf": _flushing(erf),
    "floor": _flushing(np.floor),
    "ceil": _flushing(np.ceil),
    "div_rn": np.divide,
}

LANGUAGE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: _strict(name, function) for name, function in _STRICT.items()
}


def unsigned_high_product(a: Any, b: Any) -> Tensor:
    """The upper half of the product of two integers taken as unsigned."""
    x, y, dtype = pair(a, b)
    if dtype.name not in ("int32", "uint32", "int64", "uint64"):
        raise KernelFault(f"tl.umulhi takes integers of 32 and 64 bits, not {dtype}")
    return elementwise(_high64 if dtype.bits == 64 else _high32, dtype, x, y)


def _high32(x: Array, y: Array) -> Array:
    product = x.astype(np.uint32).astype(np.uint64) * y.astype(np.uint32).astype(np.uint64)
    result: Array = (product >> np.uint64(32)).astype(np.uint32).astype(x.dtype)
    return result


def _high64(x: Array, y: Array) -> Array:
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b = x.astype(np.uint64), y.astype(np.uint64)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & low)
    result: Array = (a1 * b1 + (middle >> half) + (other >> half)).astype(x.dtype)
    return result
