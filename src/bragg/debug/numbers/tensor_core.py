"""Matrix products of float32 bit for bit as an H200 computes them, where the order of its sums is known.

Fused multiply-adds run along k. A tensor core adds the products of one instruction and the sum so far at once, in
fixed point: each term is cut off 25 places below the leading one of the largest, and so is their sum to float32. That
gives all bits of an H200's products of fp16, bf16 and tf32 of random numbers, up to 128x128x64, by mma and by wgmma;
not those of fp8. For V100 to H100 see Fasi and others, Numerical behavior of NVIDIA tensor cores (2021), and Li and
others, FTTN (2024).
"""

from __future__ import annotations

import numpy as np

from bragg.debug.numbers.directed import odd_sum, rounded
from bragg.debug.numbers.dtypes import DTYPES
from bragg.debug.numbers.rounding import round_to
from bragg.model.table import Array

# The 13 low bits of a float32 that a tensor core does not read in tf32.
_TF32_MASK = np.uint32(0xFFFFE000)
_TF32_HALF = np.uint32(0x1000)
_PLACES = 25
# Elements that one instruction of a tensor core multiplies and adds: mma.m16n8k8 of tf32, mma.m16n8k16 of bf16.
_DEPTH = {"tf32": 8, "bf16": 16}
_HALFWAY = np.int64(0x10000000)  # Of the 29 digits of a float64 that a float32 lacks.
_LACKING = np.int64(0x1FFFFFFF)
_LEAST_EXPONENT = -900  # Of zero, which is not a leading term.


def cut_to_tf32(values: Array) -> Array:
    """What a tensor core reads of float32 [any]: float32 of that shape."""
    result: Array = (np.ascontiguousarray(values).view(np.uint32) & _TF32_MASK).view(np.float32)
    return result


def fused_product(left: Array, right: Array, start: Array) -> Array:
    """`start + left @ right` by one fused multiply-add after another along k.

    Args:
        left: float32 [..., m, k].
        right: float32 [..., k, n].
        start: float32 [..., m, n].
    """
    a, b = left.astype(np.float64), right.astype(np.float64)
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], start.shape[:-2])
    total = np.array(np.broadcast_to(start, (*shape, a.shape[-2], b.shape[-1])))
    wide = np.empty(total.shape, np.float64)
    digits = np.empty(total.shape, np.int64)
    # Else all products are multiples of the least float32, and so are sums, which are exact where they are subnormal.
    is_deep = _least(a) * _least(b) < 2.0**-103
    for k in range(a.shape[-1]):
        column, row = a[..., :, k, None], b[..., None, k, :]
        np.multiply(column, row, out=wide)
        np.add(wide, total, out=wide)
        np.bitwise_and(wide.view(np.int64), _LACKING, out=digits)
        # The product is exact, and the sum rounds twice: that is wrong only for what lies halfway, or below the normal.
        at_risk = digits == _HALFWAY
        if is_deep:
            at_risk |= np.abs(wide) < np.finfo(np.float32).tiny
        before = total[at_risk] if at_risk.any() else None
        np.copyto(total, wide, casting="same_kind")
        if before is not None:
            exact = np.broadcast_to(column, total.shape)[at_risk] * np.broadcast_to(row, total.shape)[at_risk]
            total[at_risk] = odd_sum(exact, before.astype(np.float64)).astype(np.float32)
    return total


def _least(values: Array) -> float:
    """The least magnitude but zero."""
    return float(np.min(np.abs(values), where=values != 0, initial=np.inf))


def split_product(left: Array, right: Array, precision: str) -> Array:
    """`left @ right` in several products of parts of float32, the smallest ones first, as a Hopper GPU adds them.

    Args:
        left: float32 [..., m, k].
        right: float32 [..., k, n].
        precision: `tf32x3`, `bf16x3` or `bf16x6`.
    """
    kind = precision[:4]
    x, y = _parts(left, precision), _parts(right, precision)
    shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*shape, left.shape[-2], right.shape[-1]), np.float32)
    for i, j in _ORDER[precision]:
        total = _tensor_core(x[i], y[j], total, _DEPTH[kind])
    # Infinity less infinity is not a small part.
    return _tensor_core(x[0], y[0], np.where(np.isnan(total), np.float32(0), total), _DEPTH[kind])


# Which parts are multiplied before the leading ones, as Triton 3.6.0 compiles it.
_ORDER = {"tf32x3": ((1, 0), (0, 1)), "bf16x3": ((1, 0), (0, 1)), "bf16x6": ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1))}


def _parts(values: Array, precision: str) -> list[Array]:
    """Numbers of fewer digits that add up to float32, the leading ones first."""
    if precision == "tf32x3":
        large = _nearest_tf32(values)
        return [large, cut_to_tf32(values - large)]
    parts = []
    for _ in range(int(precision[-1]) // 3 + 1):
        parts.append(round_to(values, DTYPES["bf16"]))
        values = values - parts[-1]
    return parts


def _nearest_tf32(values: Array) -> Array:
    """`cvt.rna.tf32.f32`: ties away from zero."""
    bits = (np.ascontiguousarray(values).view(np.uint32) + _TF32_HALF) & _TF32_MASK
    return np.where(np.isnan(values), values, bits.view(np.float32))


def _tensor_core(left: Array, right: Array, start: Array, depth: int) -> Array:
    total = start
    for k in range(0, left.shape[-1], depth):
        total = _added(left[..., :, k : k + depth], right[..., k : k + depth, :], total)
    return total


def _added(left: Array, right: Array, start: Array) -> Array:
    """One instruction: all products and the sum so far, with the places of the largest term."""
    rows, columns = _exponents(left), _exponents(right)
    largest = _exponents(start)
    exponent = np.empty_like(largest)
    for k in range(left.shape[-1]):
        # Of the product before it is normalised: that of 1.5 and 1.5 counts as 1, not 2.
        np.add(rows[..., :, k, None], columns[..., None, k, :], out=exponent)
        np.maximum(largest, exponent, out=largest)
    step = np.ldexp(1.0, np.maximum(largest, _LEAST_EXPONENT) - _PLACES)
    places = 1 / step
    total = np.trunc(start * places)
    term = np.empty_like(total)
    a, b = left.astype(np.float64), right.astype(np.float64)
    for k in range(a.shape[-1]):
        np.multiply(a[..., :, k, None], b[..., None, k, :], out=term)
        np.multiply(term, places, out=term)
        np.add(total, np.trunc(term, out=term), out=total)
    return rounded(total * step, "rz")


def _exponents(values: Array) -> Array:
    """Of the leading digits; that of zero is below all."""
    return np.where(values == 0, _LEAST_EXPONENT, np.frexp(values)[1] - 1).astype(np.int16)
