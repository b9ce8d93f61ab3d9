"""What all operators do: operands become tensors of one type, results are rounded and keep what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bragg.debug.faults import KernelFault
from bragg.debug.numbers.affine import Affine
from bragg.debug.numbers.casts import cast
from bragg.debug.numbers.dtypes import DType
from bragg.debug.numbers.left_out import without_others
from bragg.debug.numbers.promotion import common_type, is_number, type_with_number
from bragg.debug.numbers.rounding import round_to
from bragg.debug.state import machine
from bragg.debug.values import UNSET, Tensor, lift_array, merged_taint, scalar, unset_fault
from bragg.model.table import Array


def as_tensor(value: Any) -> Tensor:
    """A tensor as it is, a number as a tensor of one value.

    Raises:
        KernelFault: It is neither.
    """
    if isinstance(value, Tensor):
        return value
    if is_number(value):
        return scalar(value)
    if value is UNSET:
        raise unset_fault()
    if isinstance(value, np.ndarray):
        shown = "an array of NumPy; at a prompt choose a program last: (x + offsets)[1]"
        raise KernelFault(f"a number or a tensor is needed here, not {shown}")
    raise KernelFault(f"a number or a tensor is needed here, not {type(value).__name__}: {value!r}")


def pair(a: Any, b: Any, division: bool = False) -> tuple[Tensor, Tensor, DType]:
    """Two operands of arithmetic in their common type, and that type."""
    x, y, dtype = in_common_type(a, b, division)
    if dtype.bits == 8 and dtype.is_floating():
        machine().listeners.tell_difference(
            f"Triton does not compile arithmetic of {dtype}", "Convert with .to(tl.float32) first"
        )
    return x, y, dtype


def in_common_type(a: Any, b: Any, division: bool = False) -> tuple[Tensor, Tensor, DType]:
    """The same for what computes nothing, as `where`."""
    a_number, b_number = is_number(a), is_number(b)
    x, y = as_tensor(a), as_tensor(b)
    if a_number == b_number:
        dtype = common_type(x.dtype, y.dtype, division)
    elif a_number:
        dtype = type_with_number(y.dtype, a, x.dtype, division)
    else:
        dtype = type_with_number(x.dtype, b, y.dtype, division)
    return cast(x, dtype), cast(y, dtype), dtype


def finished(data: Array, dtype: DType, *operands: Any) -> Tensor:
    """The result of an operation, [programs or 1, *block]: rounded to its type, with the operands' taint."""
    if dtype.is_narrow:
        data = round_to(data, dtype)
    result = Tensor(data, dtype, taint=without_others(merged_taint(*operands), operands, data.shape))
    if dtype.is_floating():
        now = machine()
        now.operations += 1
        for listener in now.listeners.result:
            listener(operands, result)
    return result


def elementwise(function: Callable[..., Array], dtype: DType, *operands: Tensor) -> Tensor:
    """A result computed lane by lane from operands of one type, by a function of arrays whose shapes broadcast."""
    arrays = [operand.data for operand in operands]
    rank = max([array.ndim for array in arrays])
    try:
        data = function(*[lift_array(array, rank) for array in arrays])
    except ValueError:
        shapes = " and ".join(str(list(operand.shape)) for operand in operands)
        raise KernelFault(f"blocks of shapes {shapes} do not fit together") from None
    return finished(data, dtype, *operands)


def affine_of(x: Tensor) -> Affine | None:
    """The closed form of an integer tensor, where there is one."""
    if x.affine is not None:
        return x.affine
    if not x.shape and x.dtype.is_int() and x.dtype.bits > 1 and x.dtype.name != "uint64":
        return Affine(x.data.astype(np.int64), (), ())
    return None
