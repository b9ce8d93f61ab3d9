"""The functions of libdevice.

Source: CUDA libdevice user's guide; which types each takes: triton.language.extra.cuda.libdevice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.flow.lanes import broadcast_all
from bragg.debug.numbers import special_functions
from bragg.debug.numbers.casts import bitcast, cast
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.libdevice_floats import FLOAT_FUNCTIONS
from bragg.debug.numbers.mathematics import each, unsigned_high_product
from bragg.debug.numbers.operands import as_tensor, elementwise, pair
from bragg.debug.numbers.rounding import decode, encode
from bragg.debug.ptx.bits import BITWISE
from bragg.debug.ptx.conversions import convert
from bragg.debug.ptx.numbers import arithmetic
from bragg.debug.values import Tensor
from bragg.model.table import Array

Function = Callable[..., Array]
_FLOATS = ("fp32", "fp64")
_INTEGERS = ("int32", "uint32", "int64", "uint64")


def _ilogb(x: Array) -> Array:
    """The exponent of two as int32; zero and NaN give the least number, infinity the greatest."""
    exponent = np.frexp(x)[1].astype(np.int64) - 1
    exponent = np.where((x == 0) | np.isnan(x), -(2**31), np.where(np.isinf(x), 2**31 - 1, exponent))
    return exponent.astype(np.int32)


_TESTS: dict[str, Callable[[Array], Array]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinited": np.isfinite,
    "finitef": np.isfinite,
}


def _of_floats(name: str, function: Function) -> Callable[..., Tensor]:
    def apply(*operands: Any) -> Tensor:
        tensors = [as_tensor(operand) for operand in operands]
        dtype = tensors[0].dtype
        for operand in operands[1:]:
            tensors[0], _, dtype = pair(tensors[0], operand)
        if dtype.is_int() and name not in ("abs", "min", "max"):
            dtype = DTYPES["fp32"]
        if dtype.is_narrow:
            raise KernelFault(f"libdevice.{name} takes fp32 and fp64, not {dtype}", hint="Convert with .to(tl.float32)")
        return elementwise(function, dtype, *(cast(tensor, dtype) for tensor in tensors))

    return apply


def _test(function: Callable[[Array], Array], result: str = "int1") -> Callable[[Any], Tensor]:
    dtype = DTYPES[result]
    return lambda x: Tensor(function(as_tensor(x).data).astype(dtype.carrier), dtype, taint=as_tensor(x).taint)


def _typed(name: str, given: Any, allowed: tuple[str, ...]) -> Tensor:
    """An operand of one of some types; numbers take the first one.

    Raises:
        KernelFault: It is of another type.
    """
    if not isinstance(given, Tensor):
        converted: Tensor = cast(as_tensor(given), DTYPES[allowed[0]])
        return converted
    if given.dtype.name not in allowed:
        raise KernelFault(
            f"libdevice.{name} takes {' or '.join(allowed)}, not {given.dtype}", hint="Convert with .to()"
        )
    return given


def _on_bits(
    name: str, function: Callable[[list[Array], DType], Array], allowed: tuple[str, ...], result: str = ""
) -> Callable[..., Tensor]:
    """A function of the operands' bits.

    Args:
        name: For messages.
        function: Takes uint64 bits of each operand and the first one's type.
        allowed: Types of operands.
        result: Type of the result; empty: that of the first operand.
    """

    def apply(*operands: Any) -> Tensor:
        tensors = broadcast_all([_typed(name, operand, allowed) for operand in operands])
        own = tensors[0].dtype
        target = DTYPES[result] if result else own

        def compute(*arrays: Array) -> Array:
            whole = np.broadcast_arrays(*(_bits(array, own) for array in arrays))
            bits = np.asarray(function([array.ravel() for array in whole], own)).reshape(whole[0].shape)
            return decode(bits.astype(f"u{target.size_bytes}").view(target.storage), target)

        return elementwise(compute, target, *tensors)

    return apply


def _bits(values: Array, dtype: DType) -> Array:
    code = np.ascontiguousarray(encode(np.ascontiguousarray(values), dtype))
    return code.view(f"u{dtype.size_bytes}").astype(np.uint64)


# Types in the names of conversions, and in PTX.
_PTX = {"float": "f32", "double": "f64", "int": "s32", "uint": "u32", "ll": "s64", "ull": "u64"}
_ENGINE = {"float": "fp32", "double": "fp64", "int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
_DIRECTIONS = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}


def _conversion(source: str, target: str, mode: str) -> Callable[..., Tensor]:
    name = f"{source}2{target}_{mode}"
    direction = _DIRECTIONS[mode] + ("i" if source in ("float", "double") and target not in ("float", "double") else "")
    modifiers = [direction, _PTX[target], _PTX[source]]
    allowed = (_ENGINE[source], *({"int32": ("uint32",), "int64": ("uint64",)}.get(_ENGINE[source], ())))
    return _on_bits(name, lambda bits, _: convert(name, modifiers, bits), allowed, _ENGINE[target])


_CONVERSIONS = {
    f"{source}2{target}_{mode}": _conversion(source, target, mode)
    for source, targets in {
        "float": ("int", "uint", "ll", "ull"),
        "double": ("float", "int", "uint", "ll", "ull"),
        "int": ("float", "double"),
        "uint": ("float", "double"),
        "ll": ("float", "double"),
        "ull": ("float", "double"),
    }.items()
    for target in targets
    for mode in _DIRECTIONS
}


def _same_bits(name: str, source: tuple[str, ...], target: str) -> Callable[[Any], Tensor]:
    return lambda x: bitcast(_typed(name, x, source), DTYPES[target])


def _ptx(opcode: str, kinds: dict[str, str], *modifiers: str) -> Callable[[list[Array], DType], Array]:
    """An instruction of PTX, by the type of the first operand."""

    def compute(bits: list[Array], dtype: DType) -> Array:
        words = [*modifiers, kinds[dtype.name]]
        if opcode in BITWISE:
            return BITWISE[opcode](bits, dtype.bits, words)
        return arithmetic(opcode, opcode, words, bits)

    return compute


_BITS = {"int32": "b32", "uint32": "b32", "int64": "b64", "uint64": "b64"}
_SIGNS = {"int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64"}


def _average(up: bool) -> Callable[[list[Array], DType], Array]:
    def compute(bits: list[Array], dtype: DType) -> Array:
        x, y = (value.astype(np.uint32).view(np.int32 if dtype.signed else np.uint32) for value in bits)
        return ((x.astype(np.int64) + y.astype(np.int64) + up) >> 1).astype(np.uint64)

    return compute


def _first_one(bits: list[Array], dtype: DType) -> Array:
    """Place of the lowest one, counted from 1; 0 where there is none."""
    lowest = bits[0] & (~bits[0] + np.uint64(1))
    place = np.uint64(dtype.bits) - BITWISE["clz"]([lowest], dtype.bits, [_BITS[dtype.name]])
    return np.asarray(np.where(bits[0] == 0, np.uint64(0), place))


def _mulhi(a: Any, b: Any) -> Tensor:
    x, y, dtype = pair(a, b)
    if not dtype.signed:
        return unsigned_high_product(x, y)
    return _on_bits("mulhi", _ptx("mul", _SIGNS, "hi"), _INTEGERS)(x, y)


_ON_INTEGERS: dict[str, Callable[..., Tensor]] = {
    "clz": _on_bits("clz", _ptx("clz", _BITS), ("int32", "int64"), "int32"),
    "popc": _on_bits("popc", _ptx("popc", _BITS), ("int32", "int64"), "int32"),
    "ffs": _on_bits("ffs", _first_one, ("int32", "int64"), "int32"),
    "brev": _on_bits("brev", _ptx("brev", _BITS), ("int32", "int64")),
    "byte_perm": _on_bits("byte_perm", _ptx("prmt", _BITS), ("int32", "uint32")),
    "mul24": _on_bits("mul24", _ptx("mul24", _SIGNS), ("int32", "uint32")),
    "sad": _on_bits("sad", _ptx("sad", _SIGNS), ("int32", "uint32")),
    "hadd": _on_bits("hadd", _average(up=False), ("int32", "uint32")),
    "rhadd": _on_bits("rhadd", _average(up=True), ("int32", "uint32")),
    "mulhi": _mulhi,
    "double2hiint": _on_bits("double2hiint", lambda bits, _: bits[0] >> np.uint64(32), ("fp64",), "int32"),
    "double2loint": _on_bits("double2loint", lambda bits, _: bits[0], ("fp64",), "int32"),
    "hiloint2double": _on_bits(
        "hiloint2double", lambda bits, _: bits[0] << np.uint64(32) | bits[1], ("int32", "uint32"), "fp64"
    ),
    "llrint": lambda x: cast(_FUNCTIONS["rint"](_typed("llrint", x, _FLOATS)), DTYPES["int64"]),
    "llround": lambda x: cast(_FUNCTIONS["round"](_typed("llround", x, _FLOATS)), DTYPES["int64"]),
    "float_as_int": _same_bits("float_as_int", ("fp32",), "int32"),
    "float_as_uint": _same_bits("float_as_uint", ("fp32",), "uint32"),
    "int_as_float": _same_bits("int_as_float", ("int32",), "fp32"),
    "uint_as_float": _same_bits("uint_as_float", ("uint32", "int32"), "fp32"),
    "double_as_longlong": _same_bits("double_as_longlong", ("fp64",), "int64"),
    "longlong_as_double": _same_bits("longlong_as_double", ("int64",), "fp64"),
}


def _with_integer(name: str, function: Function, integer_first: bool = False) -> Callable[[Any, Any], Tensor]:
    """A function of a float and an integer, in either order."""

    def apply(a: Any, b: Any) -> Tensor:
        x = _typed(name, b if integer_first else a, _FLOATS)
        count = _typed(name, a if integer_first else b, ("int32",))
        x, count = broadcast_all([x, count])
        return elementwise(lambda values, counts: function(values, counts).astype(values.dtype), x.dtype, x, count)

    return apply


def _bessel(function: Callable[[int, float], float]) -> Function:
    return lambda x, order: each(lambda value, n: function(int(n), value))(x, order)


_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    name: _of_floats(name, function) for name, function in FLOAT_FUNCTIONS.items()
}

LIBDEVICE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **_CONVERSIONS,
    **_FUNCTIONS,
    **{name: _test(function) for name, function in _TESTS.items()},
    **_ON_INTEGERS,
    "signbit": _test(np.signbit, "int32"),
    "ilogb": lambda x: Tensor(_ilogb(as_tensor(x).data), DTYPES["int32"], taint=as_tensor(x).taint),
    "ldexp": _with_integer("ldexp", np.ldexp),
    "scalbn": _with_integer("scalbn", np.ldexp),
    "jn": _with_integer("jn", _bessel(special_functions.bessel_j), integer_first=True),
    "yn": _with_integer("yn", _bessel(special_functions.bessel_y), integer_first=True),
}
