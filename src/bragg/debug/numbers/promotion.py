"""Which type two operands meet in, by Triton's rules."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.dtypes import DTYPES, DType, Kind
from bragg.debug.versions import is_before

_NUMBERS = (int, float)  # A tuple: a third of the time of a union.
_RANK = {
    "int1": 1,
    "uint8": 8,
    "int8": 8,
    "uint16": 16,
    "int16": 16,
    "uint32": 32,
    "int32": 32,
    "uint64": 64,
    "int64": 64,
}


@lru_cache(maxsize=1024)
def common_type(a: DType, b: DType, division: bool = False) -> DType:
    """The type that two tensors are converted to.

    Args:
        a: Of the left operand.
        b: Of the right operand.
        division: For / // %, which do not exist natively for 16-bit floats.

    Raises:
        KernelFault: The types do not mix.
    """
    names = {a.name, b.name}
    for name in ("fp64", "fp32"):
        if name in names:
            return DTYPES[name]
    if "fp16" in names:
        return DTYPES["fp32" if division else "fp16"]
    if "bf16" in names:
        return DTYPES["bf16" if len(names) == 1 and not division else "fp32"]
    if a.is_floating() and b.is_floating():
        return a if a is b else DTYPES["fp16"]
    if a.is_floating() or b.is_floating():
        raise KernelFault(f"{a} and {b} do not mix", hint="Convert one of them with .to()")
    if division and a.signed != b.signed:
        raise KernelFault(
            f"Cannot use / // % with operands of types {a} and {b} because they have different signedness",
            hint="Convert one of them with .to()",
        )
    return _integer_type(a, b)


def _integer_type(a: DType, b: DType) -> DType:
    a_rank, b_rank = _RANK[a.name], _RANK[b.name]
    if a.signed == b.signed:
        return a if a_rank > b_rank else b
    unsigned, signed = (b, a) if a.signed else (a, b)
    return unsigned if _RANK[unsigned.name] >= _RANK[signed.name] else signed


def type_with_number(tensor: DType, number: bool | float, constant: DType, division: bool = False) -> DType:
    """The type that a tensor and a Python number are converted to.

    Args:
        tensor: Type of the tensor.
        number: The number.
        constant: Type of the number on its own.
        division: For / // %.

    Raises:
        KernelFault: The number does not fit.
    """
    if constant.kind <= tensor.kind:
        result = DTYPES["fp32"] if division and tensor.name in ("fp16", "bf16") else tensor
    else:
        result = common_type(tensor, constant, division)
    if result.kind is not Kind.FLOATING:
        low, high = result.limits
        if not low <= number <= high:
            raise KernelFault(f"{number} is out of range for {result}", hint="Convert the tensor to a wider type")
    return result


def extremes_are_wide() -> bool:
    """`tl.maximum` and the like take bf16 as fp32, and numbers as tensors of their own type: Triton before 3.9."""
    return is_before(3, 9)


def is_number(value: Any) -> bool:
    """A Python number, which is a constant to Triton."""
    return isinstance(value, _NUMBERS)
