"""Conversions between types."""

from __future__ import annotations

from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.memory.provenance import addresses_of, pointer_of_addresses
from bragg.debug.numbers.dtypes import DTYPES, DType, PointerType
from bragg.debug.numbers.rounding import decode, encode, round_to, truncate_to
from bragg.debug.state import is_wide, machine, tell_result
from bragg.debug.values import OVERFLOWN, Pointer, Tensor, taint_of_choice
from bragg.model.table import Array

# What Triton converts fp8e4b15 to and from.
_WITH_FP8E4B15 = {"fp8e4b15", "fp16", "fp32"}


def cast(x: Any, dtype: Any, rounding: str | None = None) -> Any:
    """Convert values to a type.

    Args:
        x: Tensor or pointer.
        dtype: The type to convert to.
        rounding: `rtne` or `rtz`, for floats that become narrower; None is `rtne`.

    Raises:
        KernelFault: Triton has no such conversion.
    """
    if isinstance(x, Pointer):
        return _cast_pointer(x, dtype)
    source = x.dtype
    if source is dtype:
        return x
    if isinstance(dtype, PointerType):
        return _pointer_of_integers(x, dtype)
    if dtype.is_floating() and is_wide():
        return x if source.name == "fp64" else Tensor(x.data.astype(np.float64), DTYPES["fp64"], taint=x.taint)
    if dtype.minifloat is not None:
        machine().require_type(dtype)
    if "fp8e4b15" in (source.name, dtype.name) and not {source.name, dtype.name} <= _WITH_FP8E4B15:
        raise KernelFault(f"{source} cannot be converted to {dtype}", hint="Go through tl.float16 or tl.float32")
    if rounding not in (None, "rtne", "rtz"):
        raise KernelFault(f"unknown rounding {rounding!r}", hint="Choose rtne or rtz")
    if rounding and not (source.is_floating() and dtype.is_floating() and dtype.bits < source.bits):
        raise KernelFault(
            f"a conversion of {source} to {dtype} has no rounding to choose", hint="Leave the rounding out"
        )
    if (
        x.taint is not None
        and source.is_int()
        and source.bits < (dtype.bits if dtype.is_int() else min(dtype.bits, 32))
    ):
        machine().tell_taint("widened", x.taint, OVERFLOWN)
    if source.is_int() and dtype.is_int() and dtype.bits > 1:
        return _cast_integer(x, dtype)
    result = Tensor(_converted(x.data, source, dtype, rounding), dtype, taint=x.taint)
    if dtype.is_floating() and dtype.bits < source.bits:
        tell_result((x,), result)
    return result


def _cast_pointer(x: Pointer, dtype: Any) -> Any:
    if isinstance(dtype, PointerType):
        if dtype.element_ty is x.element:
            return x
        if dtype.element_ty.size_bytes == x.element.size_bytes:
            return Pointer(x.buffer, x.offset, dtype.element_ty)
        return pointer_of_addresses(addresses_of(x), dtype.element_ty)
    if dtype in (DTYPES["int64"], DTYPES["uint64"]):
        return cast(addresses_of(x), dtype)
    raise KernelFault(f"a pointer cannot be converted to {dtype}", hint="Convert it to tl.int64")


def _pointer_of_integers(x: Tensor, dtype: PointerType) -> Pointer:
    if not x.dtype.is_int() or x.dtype.bits != 64:
        raise KernelFault(f"{x.dtype} cannot become a pointer", hint="Addresses are tl.int64 or tl.uint64")
    return pointer_of_addresses(x, dtype.element_ty)


def _cast_integer(x: Tensor, dtype: DType) -> Tensor:
    """To a wider or narrower integer; bits that do not fit are dropped."""
    low, high = dtype.limits
    bounds, taint = x.bounds, x.taint
    if taint is not None and x.dtype.bits == 1:
        taint = taint_of_choice(taint)
    if x.affine is not None and bounds is None:
        bounds = x.affine.bounds()
    if bounds is not None and low <= bounds[0] and bounds[1] <= high:
        if x.affine is not None:
            return Tensor(None, dtype, x.affine, bounds, taint)
        return Tensor(x.data.astype(dtype.carrier), dtype, None, bounds, taint)
    return Tensor(x.data.astype(dtype.carrier), dtype, taint=taint)


def _converted(data: Array, source: DType, dtype: DType, rounding: str | None) -> Array:
    if dtype.name == "int1":
        result: Array = data != 0
        return result
    if dtype.is_int():
        return _integers_of(data, source, dtype)
    if source.is_int() and dtype.is_narrow:
        data = data.astype(np.float64 if source.bits < 64 else np.float32)
        return round_to(data, dtype)
    if dtype.name == "fp64":
        return data.astype(np.float64)
    if not dtype.is_narrow:
        return data.astype(np.float32)
    if rounding == "rtz":
        if dtype.bits == 8 and dtype.name != "fp8e5":
            raise KernelFault(f"Triton does not round toward zero to {dtype}", hint="Use the default rounding")
        return truncate_to(data, dtype)
    if source.is_narrow and source.bits == 8 and dtype.bits == 16:
        return data  # Every float of 8 bits is one of 16 bits.
    return round_to(data, dtype)


def _integers_of(data: Array, source: DType, dtype: DType) -> Array:
    """Floats to integers: toward zero, to the nearest limit where they do not fit.

    NaN gives 0; from float64 or to 64 bits it gives the highest bit alone. Types of 8 bits are converted through 16
    bits and cut, because PTX has no conversion to them. Source: PTX ISA, cvt.rzi; measured on an H200.
    """
    through = DTYPES[dtype.name.replace("8", "16")] if dtype.bits == 8 else dtype
    low, high = through.limits
    wide = data.astype(np.float64)
    is_nan = np.isnan(wide)
    inside = np.where(is_nan | (wide <= low) | (wide >= high), 0.0, wide)
    result = inside.astype(through.carrier)
    result = np.where(wide >= high, np.array(high, through.carrier), result)
    result = np.where(wide <= low, np.array(low, through.carrier), result)
    if (source.bits == 64 or through.bits == 64) and is_nan.any():
        highest = np.array(low if through.signed else 1 << (through.bits - 1), through.carrier)
        result = np.where(is_nan, highest, result)
    return result.astype(dtype.carrier)


def bitcast(x: Tensor, dtype: Any) -> Any:
    """The same bits as values of another type.

    Raises:
        KernelFault: The types differ in size.
    """
    if isinstance(x, Pointer) or isinstance(dtype, PointerType):
        return cast(x, dtype)
    if x.dtype is dtype:
        return x
    if dtype.minifloat is not None:
        machine().require_type(dtype)
    if x.dtype.bits != dtype.bits:
        raise KernelFault(f"{x.dtype} has {x.dtype.bits} bits and {dtype} has {dtype.bits}: a bitcast keeps the bits")
    bits = np.ascontiguousarray(encode(x.data, x.dtype))
    return Tensor(decode(bits.view(dtype.storage), dtype), dtype, taint=x.taint)
