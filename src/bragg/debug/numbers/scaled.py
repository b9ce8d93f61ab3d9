"""Products of microscaled blocks: narrow elements, of which each group along k shares a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.arithmetic import add
from bragg.debug.numbers.casts import bitcast, cast
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.operands import as_tensor
from bragg.debug.numbers.rounding import round_to
from bragg.debug.values import FILLED, Tensor, lift_array
from bragg.model.table import Array

_FORMATS = {"e5m2": "fp8e5", "e4m3": "fp8e4nv", "bf16": "bf16", "fp16": "fp16"}
# Source: OCP Microscaling Formats specification 1.0, table 5 (FP4 E2M1).
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E2M1_VALUES: Array = np.array([*_MAGNITUDES, *(-value for value in _MAGNITUDES)], np.float32)
_NAN_SCALE = 0xFF


def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: str,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: str,
    acc: Any = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: DType = DTYPES["fp32"],
) -> Tensor:
    """`lhs @ rhs + acc` as Hopper computes it: elements times scale are rounded to bf16, or fp16 if one side is fp16.

    Args:
        lhs: [..., m, k]; e2m1 holds two elements in a byte, the first in the lower half.
        lhs_scale: [..., m, k / group]; uint8: exponents with a bias of 127; fp8e4nv: numbers, as of nvfp4; None: 1.
        lhs_format: e2m1, e4m3, e5m2, bf16 or fp16.
        rhs: [..., k, n].
        rhs_scale: [..., n, k / group].
        rhs_format: As that of lhs.
        acc: fp32 [..., m, n]; None: zeros.
        fast_math: The scale 255 is not a NaN.
        lhs_k_pack: Bytes of e2m1 hold neighbours along k, else along m.
        rhs_k_pack: Bytes of e2m1 hold neighbours along k, else along n.
        out_dtype: fp32.

    Raises:
        KernelFault: Shapes, types or formats that Triton does not multiply.
    """
    if out_dtype is not DTYPES["fp32"]:
        raise KernelFault(f"tl.dot_scaled gives fp32, not {out_dtype}")
    narrow = DTYPES["fp16" if "fp16" in (lhs_format, rhs_format) else "bf16"]
    left, right = as_tensor(lhs), as_tensor(rhs)
    x = _scaled(_elements(left, lhs_format, -1 if lhs_k_pack else -2, lhs_k_pack), lhs_scale, narrow, fast_math)
    transposed = _elements(right, rhs_format, -2 if rhs_k_pack else -1, rhs_k_pack).swapaxes(-1, -2)
    y = _scaled(transposed, rhs_scale, narrow, fast_math)
    if x.ndim != y.ndim or x.shape[-1] != y.shape[-1]:
        raise KernelFault(
            f"tl.dot_scaled cannot multiply blocks of shapes {list(left.shape)} and {list(right.shape)}"
            f" as {lhs_format} and {rhs_format}"
        )
    product = Tensor(np.matmul(x, y.swapaxes(-1, -2)), DTYPES["fp32"])
    product.taint = _taint(product, left, lhs_scale, right, rhs_scale)
    if acc is None:
        return product
    total = as_tensor(acc)
    if total.shape != product.shape or total.dtype is not product.dtype:
        raise KernelFault(f"the accumulator is {total.dtype}{list(total.shape)}, not fp32{list(product.shape)}")
    result: Tensor = add(total, product)
    return result


def _elements(block: Tensor, name: str, packed_axis: int, k_pack: bool) -> Array:
    """The values of a block in float32, unpacked."""
    if len(block.shape) not in (2, 3):
        raise KernelFault(f"tl.dot_scaled takes blocks of two or three axes, not {list(block.shape)}")
    if name == "e2m1":
        if block.dtype.name not in ("uint8", "int8"):
            raise KernelFault(f"e2m1 is packed in uint8, not in {block.dtype}")
        codes = np.moveaxis(block.data.view(np.uint8), packed_axis, -1)
        both = np.stack([codes & 0xF, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
        return np.moveaxis(E2M1_VALUES[both], -1, packed_axis)
    if name not in _FORMATS:
        raise KernelFault(f"unknown format {name!r}", hint="Choose e2m1, e4m3, e5m2, bf16 or fp16")
    if not k_pack:
        raise KernelFault(f"only e2m1 can be packed along another axis than k, not {name}")
    dtype = DTYPES[_FORMATS[name]]
    if block.dtype is not dtype and block.dtype.name != f"uint{dtype.bits}":
        raise KernelFault(f"{name} is held in {dtype} or uint{dtype.bits}, not in {block.dtype}")
    values: Array = bitcast(block, dtype).data
    return values


def _scaled(values: Array, scale: Any, narrow: DType, fast_math: bool) -> Array:
    """[..., rows, k] times the scales of its groups, rounded."""
    values = round_to(values, narrow)
    if scale is None:
        return values
    given = as_tensor(scale)
    if given.dtype.name not in ("uint8", "int8", "fp8e4nv"):
        raise KernelFault(f"scales are exponents in uint8 or numbers in fp8e4nv, not {given.dtype}")
    groups = given.shape[-1] if given.shape else 0
    if given.shape[:-1] != values.shape[1:-1] or not groups or values.shape[-1] // groups not in (16, 32):
        raise KernelFault(
            f"scales of shape {list(given.shape)} do not fit {values.shape[-2]} rows of {values.shape[-1]} elements",
            hint="Rows first, for rhs too: [n, k / 32]",
        )
    if given.dtype.name == "fp8e4nv":  # With e2m1 6 bits, which bf16 and fp16 hold.
        return round_to(values * np.repeat(given.data, values.shape[-1] // groups, axis=-1), narrow)
    exponents = np.repeat(given.data.view(np.uint8), values.shape[-1] // groups, axis=-1).astype(np.uint32)
    factor = round_to((exponents << np.uint32(23)).view(np.float32), narrow)
    product = round_to(values * factor, narrow)
    return product if fast_math else np.where(exponents == _NAN_SCALE, np.float32(np.nan), product)


def _taint(product: Tensor, *operands: Any) -> Array | None:
    """An undefined element spoils the whole product of its program."""
    taint: Any = None
    for operand in operands:
        if isinstance(operand, Tensor) and operand.taint is not None:
            own = np.bitwise_or.reduce(operand.taint.reshape(len(operand.taint), -1), axis=1)
            own = lift_array(own, product.data.ndim)
            taint = own if taint is None else taint | own
    return None if taint is None else np.asarray(taint & ~np.uint32(FILLED))


def fp4_to_fp(source: Any, element: DType, axis: int) -> Tensor:
    """e2m1, two in a byte, as floats of another type, unpacked along an axis."""
    block = as_tensor(source)
    values = _elements(block, "e2m1", axis + 1 if axis >= 0 else axis, True)
    converted: Tensor = cast(Tensor(values, DTYPES["fp32"]), element)
    return converted
