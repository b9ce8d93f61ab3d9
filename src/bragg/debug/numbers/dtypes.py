"""The number types of Triton: what they are called, how they lie in memory, how the engine carries them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np


class Kind(IntEnum):
    """Order of promotion between Python numbers and tensors: a lower or equal kind gives way."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


class Shape(tuple[int, ...]):
    """A shape as kernels see it: it also joins with lists, and equals them."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if type(other) is list else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: Any) -> Shape:
        return Shape((*self, *other))

    def __radd__(self, other: Any) -> Shape:
        return Shape((*other, *self))

    def __getitem__(self, key: Any) -> Any:
        part = tuple.__getitem__(self, key)
        return Shape(part) if isinstance(key, slice) else part


@dataclass(frozen=True)
class Minifloat:
    """Layout of a float of 8 bits.

    Attributes:
        exponent: Bits of the exponent.
        mantissa: Bits of the mantissa.
        bias: Of the exponent.
        has_infinity: The highest exponent is kept for infinities and NaN, as in IEEE 754.
        is_fnuz: One NaN, in the place of the negative zero; else the highest code of either sign is NaN.
        is_finite: Neither infinities nor NaN.
    """

    exponent: int
    mantissa: int
    bias: int
    has_infinity: bool = False
    is_fnuz: bool = False
    is_finite: bool = False


@dataclass(frozen=True, eq=False)
class DType:
    """A number type.

    Attributes:
        name: As Triton prints it.
        kind: Boolean, integral or floating.
        bits: Width in memory; 1 for booleans, which take a byte.
        signed: False for unsigned integers and booleans.
        carrier: Type of arrays of such values in the engine; floats below 32 bits are carried as float32.
        storage: Type of the bits in memory.
        minifloat: Layout, for floats of 8 bits.
    """

    name: str
    kind: Kind
    bits: int
    signed: bool
    carrier: np.dtype[Any]
    storage: np.dtype[Any]
    minifloat: Minifloat | None = None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return dtype_named, (self.name,)

    @cached_property
    def is_narrow(self) -> bool:
        """Carried in float32 and rounded after every operation."""
        return self.kind is Kind.FLOATING and self.bits < 32

    @cached_property
    def limits(self) -> tuple[int, int]:
        """Least and greatest value of an integer type."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    @property
    def size_bytes(self) -> int:
        """Bytes of an element in memory."""
        return self.storage.itemsize

    # What kernels ask a type, under Triton's names.

    @property
    def scalar(self) -> DType:
        """The type of one element."""
        return self

    @property
    def primitive_bitwidth(self) -> int:
        """Width in bits."""
        return self.bits

    @property
    def int_bitwidth(self) -> int:
        """Width in bits."""
        return self.bits

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return self.size_bytes

    @property
    def fp_mantissa_width(self) -> int:
        """Stored bits of the mantissa."""
        if self.minifloat:
            return self.minifloat.mantissa
        return {"fp16": 10, "bf16": 7, "fp32": 23, "fp64": 52}[self.name]

    def is_floating(self) -> bool:
        """A float of any width."""
        return self.kind is Kind.FLOATING

    def is_standard_floating(self) -> bool:
        """A float of at least 16 bits."""
        return self.is_floating() and self.bits >= 16

    def is_int(self) -> bool:
        """An integer or a boolean."""
        return self.kind is not Kind.FLOATING

    def is_int_signed(self) -> bool:
        """A signed integer."""
        return self.is_int() and self.signed

    def is_int_unsigned(self) -> bool:
        """An unsigned integer or a boolean."""
        return self.is_int() and not self.signed

    def is_bool(self) -> bool:
        """A boolean."""
        return self.kind is Kind.BOOLEAN

    def is_ptr(self) -> bool:
        """Numbers are not pointers."""
        return False

    def is_block(self) -> bool:
        """The type of one element."""
        return False

    def is_fp8(self) -> bool:
        """A float of 8 bits."""
        return self.minifloat is not None

    def get_int_max_value(self) -> int:
        """Greatest value."""
        return self.limits[1]

    def get_int_min_value(self) -> int:
        """Least value."""
        return self.limits[0]

    @property
    def value(self) -> DType:
        """The type itself, for functions that take it as a `tl.constexpr`."""
        return self

    def __getattr__(self, name: str) -> Any:
        """`is_fp16()`, `is_int32()` and the like."""
        if name.startswith("is_") and (name[3:] in DTYPES or name[3:] in _SHORT_NAMES):
            return lambda: self.name == _SHORT_NAMES.get(name[3:], name[3:])
        raise AttributeError(f"a Triton type has no attribute {name!r}")


@dataclass(frozen=True)
class PointerType:
    """Type of pointers to one type."""

    element_ty: DType
    address_space: int = 1

    def __repr__(self) -> str:
        return f"pointer<{self.element_ty}>"

    @property
    def name(self) -> str:
        """As Triton prints it."""
        return repr(self)

    @property
    def scalar(self) -> PointerType:
        """The type of one element."""
        return self

    @property
    def primitive_bitwidth(self) -> int:
        """Addresses have 64 bits."""
        return 64

    def is_ptr(self) -> bool:
        """True."""
        return True

    def is_block(self) -> bool:
        """The type of one element."""
        return False

    def is_floating(self) -> bool:
        """False."""
        return False

    def is_int(self) -> bool:
        """False."""
        return False


def _row(name: str, kind: Kind, bits: int, signed: bool, carrier: str, storage: str, *layout: Any) -> tuple[str, DType]:
    minifloat = Minifloat(*layout) if layout else None
    return name, DType(name, kind, bits, signed, np.dtype(carrier), np.dtype(storage), minifloat)


_SHORT_NAMES = {"uint1": "int1"}

DTYPES: dict[str, DType] = dict(
    [
        _row("int1", Kind.BOOLEAN, 1, False, "bool", "u1"),
        *(_row(f"int{bits}", Kind.INTEGRAL, bits, True, f"i{bits // 8}", f"i{bits // 8}") for bits in (8, 16, 32, 64)),
        *(
            _row(f"uint{bits}", Kind.INTEGRAL, bits, False, f"u{bits // 8}", f"u{bits // 8}")
            for bits in (8, 16, 32, 64)
        ),
        _row("fp8e4nv", Kind.FLOATING, 8, True, "f4", "u1", 4, 3, 7),
        _row("fp8e4b15", Kind.FLOATING, 8, True, "f4", "u1", 4, 3, 15, False, False, True),
        _row("fp8e5", Kind.FLOATING, 8, True, "f4", "u1", 5, 2, 15, True),
        _row("fp8e4b8", Kind.FLOATING, 8, True, "f4", "u1", 4, 3, 8, False, True),
        _row("fp8e5b16", Kind.FLOATING, 8, True, "f4", "u1", 5, 2, 16, False, True),
        _row("fp16", Kind.FLOATING, 16, True, "f4", "f2"),
        _row("bf16", Kind.FLOATING, 16, True, "f4", "u2"),
        _row("fp32", Kind.FLOATING, 32, True, "f4", "f4"),
        _row("fp64", Kind.FLOATING, 64, True, "f8", "f8"),
    ]
)

# Names that arrays of other packages give their element types.
_ARRAY_NAMES = {
    "bool": "int1",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}


def dtype_named(name: str) -> DType:
    """The type with one of Triton's names.

    Raises:
        KeyError: There is no such type, or the engine does not know it.
    """
    return DTYPES[_SHORT_NAMES.get(name, name)]


def dtype_of_array(name: str) -> DType | None:
    """The type of elements that NumPy, PyTorch or ml_dtypes give a name; None: Triton has none like it."""
    return DTYPES.get(_ARRAY_NAMES.get(name, name))
