"""The operators of Triton on batched values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault, Unsupported
from bragg.debug.memory.provenance import joined
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.comparisons import constant_mask
from bragg.debug.numbers.directed import operate
from bragg.debug.numbers.dtypes import DTYPES, DType
from bragg.debug.numbers.left_out import greater_or_lesser, selected_taint
from bragg.debug.numbers.operands import affine_of, as_tensor, elementwise, in_common_type, pair
from bragg.debug.numbers.promotion import extremes_are_wide, is_number
from bragg.debug.numbers.shapes import broadcast_pair, common_shape
from bragg.debug.state import machine
from bragg.debug.values import (
    CHOSEN,
    DIVIDED,
    OVERFLOWN,
    SHIFTED,
    UNDEFINED,
    Bounds,
    Pointer,
    Tensor,
    lift_array,
    merged_taint,
    scalar,
    taint_of_choice,
)
from bragg.model.table import Array

_BOOL = DTYPES["int1"]
_NO_TAINT = np.zeros(1, np.uint8)


def _integer_result(
    function: Callable[..., Array], x: Tensor, y: Tensor, dtype: DType, bounds: Bounds, affine: Affine | None
) -> Tensor:
    """The result of + - * on integers, with what is known of its range."""
    taint = merged_taint(x, y)
    low, high = dtype.limits
    if bounds is not None and low <= bounds[0] and bounds[1] <= high:
        if affine is not None:
            return Tensor(None, dtype, affine, bounds, taint)
        result = elementwise(function, dtype, x, y)
        result.bounds = bounds
        return result
    result = elementwise(function, dtype, x, y)
    if dtype.signed and dtype.bits < 64:
        rank = result.data.ndim
        wide = function(lift_array(x.data, rank).astype(np.int64), lift_array(y.data, rank).astype(np.int64))
        is_over = (wide < low) | (wide > high)
        if is_over.any():
            over = is_over.astype(np.uint8) * np.uint8(OVERFLOWN)
            result.taint = over if result.taint is None else result.taint | over
            for listener in machine().listeners.overflow:
                listener(dtype, int(wide[is_over].flat[0]))
    return result


def _affine_sum(x: Tensor, y: Tensor, sign: int) -> Affine | None:
    a, b = affine_of(x), affine_of(y)
    if a is None or b is None or (not a.shape and not b.shape):
        return None
    rank = max(len(a.shape), len(b.shape))
    return a.lifted(rank).plus(b.lifted(rank).times(sign))


def _affine_product(x: Tensor, y: Tensor) -> Affine | None:
    a, b = affine_of(x), affine_of(y)
    if a is None or b is None:
        return None
    if a.shape:
        a, b = b, a
    if a.shape or len(a.base) > 1 or not b.shape:
        return None
    return b.times(int(a.base[0]))


def add(a: Any, b: Any) -> Any:
    """`a + b`, also of a pointer and an offset."""
    if isinstance(b, Pointer):
        a, b = b, a
    if isinstance(a, Pointer):
        return _move(a, b, 1)
    x, y, dtype = pair(a, b)
    if dtype.is_floating():
        return elementwise(np.add, dtype, x, y)
    if dtype is _BOOL:
        return elementwise(np.logical_xor, dtype, x, y)
    (low, high), (other_low, other_high) = x.known_bounds(), y.known_bounds()
    return _integer_result(np.add, x, y, dtype, (low + other_low, high + other_high), _affine_sum(x, y, 1))


def sub(a: Any, b: Any) -> Any:
    """`a - b`, also of a pointer and an offset."""
    if isinstance(a, Pointer):
        return _move(a, b, -1)
    x, y, dtype = pair(a, b)
    if dtype.is_floating():
        return elementwise(np.subtract, dtype, x, y)
    if dtype is _BOOL:
        return elementwise(np.logical_xor, dtype, x, y)
    (low, high), (other_low, other_high) = x.known_bounds(), y.known_bounds()
    return _integer_result(np.subtract, x, y, dtype, (low - other_high, high - other_low), _affine_sum(x, y, -1))


def mul(a: Any, b: Any) -> Any:
    """`a * b`."""
    x, y, dtype = pair(a, b)
    if dtype.is_floating():
        return elementwise(np.multiply, dtype, x, y)
    if dtype is _BOOL:
        return _absorbed(elementwise(np.logical_and, dtype, x, y), x, y, 0)
    products = [i * j for i in x.known_bounds() for j in y.known_bounds()]
    bounds = min(products), max(products)
    return _absorbed(_integer_result(np.multiply, x, y, dtype, bounds, _affine_product(x, y)), x, y, 0)


def _absorbed(result: Tensor, x: Tensor, y: Tensor, absorbing: int) -> Tensor:
    """A result that is known where one side is known to be a number that decides it alone."""
    if result.taint is None:
        return result
    lanes: Any = False
    for side in (x, y):
        rank = result.data.ndim
        decides = lift_array(side.data, rank) == absorbing
        lanes = lanes | (decides if side.taint is None else decides & (lift_array(side.taint, rank) == 0))
    return result.known(lanes)


def _move(pointer: Pointer, amount: Any, sign: int) -> Pointer:
    """A pointer moved by whole elements; offsets count as 64 bits from here on."""
    if isinstance(amount, Pointer):
        raise KernelFault("two pointers cannot be added or subtracted", hint="Add an offset to a pointer")
    offset = as_tensor(amount)
    if not offset.dtype.is_int():
        raise KernelFault(
            f"a pointer is moved by integers, not by {offset.dtype}", hint="Convert the offset: .to(tl.int64)"
        )
    machine().tell_taint("offset", offset.taint, OVERFLOWN, pointer.buffer)
    wide = cast(offset.untainted(OVERFLOWN), DTYPES["int64"])
    moved = add(pointer.offset, wide) if sign > 0 else sub(pointer.offset, wide)
    return pointer.moved(moved)


def truediv(a: Any, b: Any) -> Tensor:
    """`a / b`; integers are divided as float32."""
    x, y, dtype = pair(a, b, division=True)
    if not dtype.is_floating():
        x, y = cast(x, DTYPES["fp32"]), cast(y, DTYPES["fp32"])
        dtype = x.dtype
    return elementwise(np.divide, dtype, x, y)


def _integers(a: Any, b: Any, what: str) -> tuple[Tensor, Tensor, DType]:
    x, y, dtype = pair(a, b, division=True)
    if not dtype.is_int():
        raise KernelFault(f"{what} takes integers, not {dtype}", hint="Use tl.floor(a / b)")
    return x, y, dtype


def _divided(result: Tensor, divisor: Tensor) -> Tensor:
    """The result of an integer division, without meaning where the divisor is zero."""
    for listener in machine().listeners.division:
        lanes = listener(divisor)
        if lanes is not None:
            result = result.tainted(lift_array(lanes, result.data.ndim), DIVIDED)
    return result


def floordiv(a: Any, b: Any) -> Tensor:
    """`a // b`: rounds toward zero, as C does; all ones where the divisor is zero, as NVIDIA GPUs give."""
    x, y, dtype = _integers(a, b, "//")
    if dtype is _BOOL:
        raise Unsupported("// on booleans is not supported", hint="Convert them with .to(tl.int32)")
    is_plain = x.known_bounds()[0] >= 0 and y.known_bounds()[0] > 0
    if is_plain:
        result = elementwise(np.floor_divide, dtype, x, y)
        result.bounds = (x.known_bounds()[0] // y.known_bounds()[1], x.known_bounds()[1] // y.known_bounds()[0])
        return result
    return _divided(elementwise(_truncated_quotient, dtype, x, y), y)


def _truncated_quotient(x: Array, y: Array) -> Array:
    quotient = np.floor_divide(x, y)
    if quotient.dtype.kind == "i":
        quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))
    return np.where(y == 0, ~np.zeros((), quotient.dtype), quotient).astype(quotient.dtype)


def mod(a: Any, b: Any) -> Tensor:
    """`a % b`: the sign is that of the dividend, as in C; the dividend itself where an integer divisor is zero."""
    if not (is_number(a) and is_number(b)):
        x, y, dtype = pair(a, b, division=True)
        if dtype.is_floating():
            return elementwise(_float_remainder, dtype, x, y)
    x, y, dtype = _integers(a, b, "%")
    (low, high), (least_divisor, most_divisor) = x.known_bounds(), y.known_bounds()
    machine().tell_taint("remainder", x.taint, OVERFLOWN)
    x, y = x.untainted(OVERFLOWN), y.untainted(OVERFLOWN)  # Hash functions overflow on purpose.
    if low >= 0 and high < least_divisor and (len(x.shape) >= len(y.shape)) and not y.shape:
        return x
    if low >= 0 and least_divisor > 0:
        result = elementwise(np.remainder, dtype, x, y)
        result.bounds = (0, min(high, most_divisor - 1))
        return result
    remainder = elementwise(
        lambda i, j: np.where(j == 0, i, np.fmod(i, np.where(j == 0, 1, j))).astype(i.dtype), dtype, x, y
    )
    return _divided(remainder, y)


def _float_remainder(x: Array, y: Array) -> Array:
    """`x - trunc(x / y) * y` with one rounding at the end, as the compiler expands it; x where y is infinite."""
    return np.where(np.isinf(y), x, operate("fma", "rn", -np.trunc(x / y), y, x)).astype(x.dtype)


# Operations of hash functions, which overflow on purpose.
_MIXING = ("&", "^", ">>")


def bitwise(name: str, function: Callable[..., Array]) -> Callable[[Any, Any], Tensor]:
    """The operator that Python writes as `name`.

    Args:
        name: One of `&`, `|`, `^`, `<<`, `>>`.
        function: NumPy's, for two integer arrays of one type and of shapes that broadcast.
    """

    def operate(a: Any, b: Any) -> Tensor:
        x, y = as_tensor(a), as_tensor(b)
        if not (x.dtype.is_int() and y.dtype.is_int()):
            raise KernelFault(
                f"invalid operands of type {x.dtype} and {y.dtype}: {name} takes integers and booleans",
                hint="Convert the floats with .to(), or with bitcast=True for their bits",
            )
        is_signed = (y if is_number(a) else x).dtype.signed
        x, y, dtype = pair(a, b)
        if dtype is _BOOL and name in "&|":
            short = _with_constant(x, y, absorbing=0 if name == "&" else 1)
            if short is not None:
                return short
        if name == "^" and x.taint is not None and y.taint is not None:
            machine().may_cancel = True
        # The type that the left side had before decides which bits are shifted in, not the common type.
        result = elementwise(_arithmetic_shift if name == ">>" and is_signed else function, dtype, x, y)
        if name in _SHIFTS:
            result = _shifted(result, y)
        if name == "&" or (name == "|" and dtype is _BOOL):
            result = _absorbed(result, x, y, 0 if name == "&" else 1)
        return result.untainted(OVERFLOWN) if name in _MIXING else result

    return operate


_SHIFTS = ("<<", ">>")


def _arithmetic_shift(x: Array, y: Array) -> Array:
    signed = np.dtype(f"i{x.dtype.itemsize}")
    result: Array = (x.astype(signed) >> y.astype(signed)).astype(x.dtype)
    return result


def _shifted(result: Tensor, amount: Tensor) -> Tensor:
    """The result of a shift, without meaning where the amount is negative, or as large as the integer has bits."""
    low, high = amount.known_bounds()
    if low < 0 or high >= result.dtype.bits:
        for listener in machine().listeners.shift:
            lanes = listener(amount, result.dtype.bits)
            if lanes is not None:
                result = result.tainted(lift_array(lanes, result.data.ndim), SHIFTED)
    return result


def _with_constant(x: Tensor, y: Tensor, absorbing: int) -> Tensor | None:
    """The result of & or | when one mask is known to be constant."""
    for one, other in ((x, y), (y, x)):
        if one.bounds is None or one.bounds[0] != one.bounds[1] or one.taint is not None:
            continue
        is_absorbing = one.bounds[0] == absorbing
        whole: tuple[Tensor, Tensor] = broadcast_pair(one, other)
        return whole[0] if is_absorbing else whole[1]
    return None


def neg(a: Any) -> Any:
    """`-a`, which Triton computes as 0 - a."""
    x = as_tensor(a)
    return sub(scalar(0.0 if x.dtype.is_floating() else 0, x.dtype), x)


def invert(a: Any) -> Tensor:
    """`~a`."""
    x = as_tensor(a)
    if not x.dtype.is_int():
        raise KernelFault(f"~ takes integers and booleans, not {x.dtype}")
    if x.dtype is _BOOL and x.bounds is not None and x.bounds[0] == x.bounds[1]:
        return constant_mask(x.shape, not x.bounds[0])
    return elementwise(np.invert, x.dtype, x)


def abs_(a: Any) -> Any:
    """Absolute value."""
    if is_number(a):
        return abs(a)
    if a.dtype.minifloat is not None:  # A bit of the sign less: nothing is rounded.
        return Tensor(np.abs(a.data), a.dtype, taint=a.taint)
    return elementwise(np.abs, a.dtype, a)


def select(condition: Any, a: Any, b: Any) -> Any:
    """`tl.where`: lanes of `a` where the condition holds, else of `b`."""
    test = cast(as_tensor(condition), _BOOL)
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        a, b = joined([a, b])
        return a.moved(select(test, a.offset, b.offset))
    x, y, dtype = in_common_type(a, b)
    shape = common_shape(test.shape, x.shape, y.shape)
    rank = max(test.data.ndim, x.data.ndim, y.data.ndim)
    if test.bounds is not None and test.bounds[0] == test.bounds[1] and test.taint is None:
        chosen = x if test.bounds[0] else y
        return chosen if chosen.shape == shape else broadcast_pair(chosen, constant_mask(shape, True))[0]
    mask = lift_array(test.data, rank)
    data = np.where(mask, lift_array(x.data, rank), lift_array(y.data, rank))
    result = Tensor(data, dtype, taint=_selected_taint(mask, test, x, y, rank))
    for listener in machine().listeners.result if dtype.is_floating() else ():
        listener((x, y), result)
    return result


def _selected_taint(mask: Array, test: Tensor, x: Tensor, y: Tensor, rank: int) -> Array | None:
    """Only the chosen side matters, and the condition; where that is undefined, both sides do."""
    if test.taint is None and x.taint is None and y.taint is None:
        return None
    a, b, c = (_NO_TAINT if t is None else lift_array(t, rank) for t in (x.taint, y.taint, test.taint))
    is_open = c & np.uint32(UNDEFINED | CHOSEN) != 0
    if is_open.any() and x.dtype.bits > 1:
        c = np.where(is_open & ((a | b) & UNDEFINED != 0), c | a | b, taint_of_choice(c))
    return selected_taint(mask, test, x, y, np.where(mask, a, b) | c)


def _extreme(
    a: Any,
    b: Any,
    number: Callable[..., Array],
    nan: Callable[..., Array],
    propagate_nan: bool,
    zero: Callable[..., Array],
) -> Tensor:
    """The greater or the lesser; `zero` decides between the two zeros."""
    x, y, dtype = pair(*(map(_wide, (a, b)) if extremes_are_wide() else (a, b)))
    function = nan if propagate_nan or dtype.is_int() else number

    def choose(left: Array, right: Array) -> Array:
        chosen = function(left, right)
        if chosen.dtype.kind == "f" and not chosen.all():
            return np.where((left == 0) & (right == 0), zero(left, right), chosen)
        return chosen

    return greater_or_lesser(elementwise(choose, dtype, x, y), x, y, is_greater=number is np.fmax)


def _wide(value: Any) -> Tensor:
    tensor = as_tensor(value)
    return cast(tensor, DTYPES["fp32"]) if tensor.dtype.name == "bf16" else tensor


def greatest(a: Any, b: Any, propagate_nan: bool = False) -> Tensor:
    """`tl.maximum`: the number where one operand is NaN, unless NaN is to propagate."""
    return _extreme(a, b, np.fmax, np.maximum, propagate_nan, np.add)


def least(a: Any, b: Any, propagate_nan: bool = False) -> Tensor:
    """`tl.minimum`: the number where one operand is NaN, unless NaN is to propagate."""
    return _extreme(a, b, np.fmin, np.minimum, propagate_nan, lambda x, y: -(-x - y))


def fused(a: Any, b: Any, c: Any) -> Tensor:
    """`a * b + c` with one rounding."""
    if extremes_are_wide():
        a, b, c = map(as_tensor, (a, b, c))
    x, y, dtype = pair(a, b)
    x, z, dtype = pair(x, c)
    y = cast(y, dtype)
    if dtype.is_int():
        return add(mul(x, y), z)  # type: ignore[no-any-return]
    return elementwise(lambda *sides: operate("fma", "rn", *sides), dtype, x, y, z)
