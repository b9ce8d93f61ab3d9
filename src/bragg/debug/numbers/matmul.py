"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.arithmetic import add
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.left_out import product_sides
from bragg.debug.numbers.operands import as_tensor, finished
from bragg.debug.numbers.tensor_core import cut_to_tf32, fused_product, split_product
from bragg.debug.state import machine
from bragg.debug.values import Tensor, merged_taint
from bragg.model.table import Array

_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


def dot(
    a: Any, b: Any, acc: Any = None, *, input_precision: str | None = None, out_dtype: DType | None = None
) -> Tensor:
    """`a @ b + acc`, accumulated in float32 (in float64 for float64, in int32 for int8).

    Sums of tensor cores are those of BLAS here, in another order; of `ieee` and `tf32x3` all bits are those of a Hopper
    GPU.

    Args:
        a: [..., m, k].
        b: [..., k, n].
        acc: [..., m, n]; None: zeros.
        input_precision: Of float32 operands: `tf32`, of which tensor cores read 10 digits; `ieee`; `tf32x3`, `bf16x3`
            and `bf16x6` split them. None: all digits, summed as BLAS does.
        out_dtype: fp32 or fp16; None: fp32.

    Raises:
        KernelFault: Shapes or types that Triton does not multiply.
    """
    x, y = as_tensor(a), as_tensor(b)
    if len(x.shape) != len(y.shape) or len(x.shape) not in (2, 3) or x.shape[-1] != y.shape[-2]:
        raise KernelFault(f"tl.dot cannot multiply blocks of shapes {list(x.shape)} and {list(y.shape)}")
    if x.dtype is not y.dtype and not (x.dtype.is_fp8() and y.dtype.is_fp8()):
        raise KernelFault(f"tl.dot needs operands of one type, not {x.dtype} and {y.dtype}", hint="Convert with .to()")
    machine().tell_meeting()
    precision = (input_precision or "").lower()
    if precision and precision not in _PRECISIONS:
        raise KernelFault(f"tl.dot has no input_precision {precision!r}", hint=f"Choose {', '.join(_PRECISIONS)}")
    result = _result_type(x.dtype, out_dtype)
    start = None if acc is None else cast(as_tensor(acc), result)
    x, y = product_sides(x, y)
    if x.dtype.name == "fp32" and precision == "ieee":
        return _fused(x, y, start, result)
    carried = finished(_product(x, y, precision), result, *_extremes(x, y))
    carried.taint = _taint(x, y)
    return carried if start is None else add(start, carried)


def _fused(x: Tensor, y: Tensor, start: Tensor | None, result: DType) -> Tensor:
    zeros = np.zeros((1, *x.shape[:-1], y.shape[-1]), np.float32)
    data = fused_product(x.data, y.data, zeros if start is None else start.data)
    carried = finished(data, result, *_extremes(x, y), *(() if start is None else (start,)))
    carried.taint = _taint(x, y)
    if start is not None:
        carried.taint = merged_taint(carried, start)
    return carried


def _result_type(operand: DType, wanted: DType | None) -> DType:
    if operand.is_int():
        if operand.name not in ("int8", "uint8"):
            raise KernelFault(f"tl.dot takes int8 and floats, not {operand}", hint="Convert with .to()")
        return DTYPES["int32"]
    if operand.name == "fp64":
        return operand
    if wanted is None or operand.name in ("fp32", "bf16"):
        return DTYPES["fp32"]
    if wanted.name not in ("fp16", "fp32"):
        raise KernelFault(f"tl.dot gives fp32 or fp16, not {wanted}", hint="Convert the result with .to()")
    return wanted


def _product(x: Tensor, y: Tensor, precision: str) -> Array:
    left, right = x.data, y.data
    if x.dtype.is_int():
        # Below 2^53 every sum of products of 8 bits is exact in float64.
        exact: Array = np.matmul(left.astype(np.float64), right.astype(np.float64))
        return exact.astype(np.int32)
    if x.dtype.name == "fp32":
        if precision not in ("", "tf32"):
            return split_product(left, right, precision)
        if precision:
            left, right = cut_to_tf32(left), cut_to_tf32(right)
    result: Array = np.matmul(left, right)
    return result


def _extremes(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """What of each row and column is farthest from zero, NaN above all: for those who look for the origin of NaN."""
    if not machine().listeners.result or x.dtype.is_int():
        return ()
    rows, columns = np.abs(x.data).max(-1, keepdims=True), np.abs(y.data).max(-2, keepdims=True)
    return (Tensor(rows, x.dtype), Tensor(columns, y.dtype))


def _taint(x: Tensor, y: Tensor) -> Array | None:
    """An undefined element spoils its whole row of the result, or its column."""
    taint: Any = None
    for one, axis in ((x, -1), (y, -2)):
        if (whole := one.whole_taint()) is not None:
            spoilt = np.bitwise_or.reduce(whole, axis=axis, keepdims=True)
            taint = spoilt if taint is None else taint | spoilt
    if taint is None:
        return None
    return np.array(np.broadcast_to(taint, (taint.shape[0], *x.shape[:-1], y.shape[-1])))
