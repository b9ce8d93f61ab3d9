"""The index along each axis of a tensor, as the source of a kernel writes it and as its names have it."""

from __future__ import annotations

import ast
import math
import operator
from typing import Any

import numpy as np

from bragg.debug.expressions import number_of, pointer_step
from bragg.debug.flow.place import kernel_line, kernel_names
from bragg.debug.memory.access import Access
from bragg.debug.state import machine
from bragg.debug.texts.address_terms import whole_terms
from bragg.debug.values import Pointer, Tensor, lift_array
from bragg.model.table import Array

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_DIVISIONS = {ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}


def axis_indices(access: Access) -> dict[int, Array]:
    """The index along each axis of the tensor that an address goes along: int64, broadcasts to [programs, *block].

    Empty: the source does not tell, what it tells is not the whole address, or it may count a tensor as flat memory,
    where nothing but the number of a program is multiplied, by the size of its block.
    """
    buffer, names = access.buffer, kernel_names()
    known = {stride: axis for axis, stride in enumerate(buffer.strides) if buffer.strides.count(stride) == 1}
    if len(known) < len(buffer.strides) or min(known, default=0) < 1:
        return {}

    def is_sum(name: ast.Name, terms: list[ast.expr]) -> bool:
        return isinstance(names.get(name.id), Pointer) or any(
            (_split(term, known, names) or (1,))[0] > 1 for term in terms
        )

    found: dict[int, Array] = {}
    is_of_rows, rank = False, len(access.shape)
    for term in whole_terms(*kernel_line(), access.kind, buffer.name, is_sum):
        if isinstance(term, ast.Name) and isinstance(names.get(term.id), Pointer):
            continue
        stride, index = _split(term, known, names) or (1, term)
        values = _values(index, names)
        if values is None or stride not in known or (stride == 1 and _may_be_another(values, known)):
            return {}
        values = lift_array(values, rank)
        if not have_common_shape(values.shape, access.shape):
            return {}
        is_of_rows |= stride > 1 and (math.prod(values.shape[1:]) > 1 or stride not in access.shape[1:])
        found[known[stride]] = found.get(known[stride], np.int64(0)) + values
    return found if is_of_rows and _is_whole(access, found) else {}


def _split(term: ast.expr, known: dict[int, int], names: Any) -> tuple[int, ast.expr] | None:
    """The stride that a term multiplies by, and the index; None: it is no such product, or either may be the stride."""
    if not (isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult)):
        return None
    numbers = [(number_of(one, names), other) for one, other in ((term.left, term.right), (term.right, term.left))]
    fitting = [(number, other) for number, other in numbers if number in known]
    return fitting[0] if len(fitting) == 1 else None


def _may_be_another(values: Array, known: dict[int, int]) -> bool:
    """Neighbours are a multiple of another stride apart."""
    steps = [int(np.gcd.reduce(np.diff(values, axis=axis), axis=None)) for axis in range(1, values.ndim)]
    return any(step and step % stride == 0 for step in steps for stride in known if stride > 1)


def _is_whole(access: Access, found: dict[int, Array]) -> bool:
    """The indices give the offsets; what a loop has added to the pointer is given to the axis that it moves along."""
    strides = access.buffer.strides
    total = sum((values * strides[axis] for axis, values in found.items()), np.int64(0))
    rest = np.broadcast_to(access.offset.data - total, access.shape)
    if not rest.any():
        return bool(found)
    first = rest.reshape(len(rest), -1)[:, :1].reshape(-1, *[1] * (rest.ndim - 1))
    step = pointer_step(*kernel_line(), access.kind, access.buffer.name)
    distance = None if step is None else number_of(step.amount, kernel_names())
    if not distance or distance < 0 or (rest != first).any() or (first < 0).any() or (first % distance).any():
        return False
    along = max(((stride, axis) for axis, stride in enumerate(strides) if distance % stride == 0), default=None)
    if along is None:
        return False
    found[along[1]] = found.get(along[1], np.int64(0)) + first // along[0]
    return True


def _values(node: ast.expr, names: Any) -> Array | None:
    """int64 [active programs or 1, *block]; None: it is no integer, or not known."""
    if isinstance(node, ast.BinOp):
        return _combined(node, names)
    if isinstance(node, ast.Subscript):
        return indexed_values(_values(node.value, names), node.slice)
    if isinstance(node, ast.Call):
        return _called(node, names)
    value = names.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
    if isinstance(value, Tensor) and value.dtype.is_int():
        return _of_active(value.data)
    return np.array([value], np.int64) if isinstance(value, int) else None


def _of_active(data: Array) -> Array | None:
    now = machine()
    if len(data) in (1, len(now.rows)):
        return data.astype(np.int64)
    return data[now.rows].astype(np.int64) if len(data) == len(now.linear) else None


def _combined(node: ast.BinOp, names: Any) -> Array | None:
    left, right = _values(node.left, names), _values(node.right, names)
    if left is None or right is None:
        return None
    rank = max(left.ndim, right.ndim)
    left, right = lift_array(left, rank), lift_array(right, rank)
    if not have_common_shape(left.shape, right.shape):
        return None
    divide = _DIVISIONS.get(type(node.op))
    if divide is not None:  # Of numbers below 0 Python and Triton do not say the same.
        return divide(left, right) if (left >= 0).all() and (right > 0).all() else None
    apply = _OPERATORS.get(type(node.op))
    return None if apply is None else apply(left, right)


def indexed_values(values: Array | None, index: ast.expr) -> Array | None:
    """A value with `[:, None]` and the like; None: it has another index, or no value.

    Args:
        values: Of any type, [active programs or 1, *block]; None: not known.
        index: What stands in the brackets.
    """
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    is_none = [isinstance(part, ast.Constant) and part.value is None for part in parts]
    if values is None or any(not none and ast.unparse(part) != ":" for none, part in zip(is_none, parts, strict=True)):
        return None
    if values.ndim - 1 != is_none.count(False):
        return None
    axes = (slice(None), *(None if none else slice(None) for none in is_none))
    return values[axes]


def have_common_shape(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Names that were set where other programs were active, or before another value of theirs, may have none."""
    return len(one) == len(other) and all(a == b or 1 in (a, b) for a, b in zip(one, other, strict=True))


def _called(node: ast.Call, names: Any) -> Array | None:
    numbers = [number for one in node.args if (number := number_of(one, names)) is not None]
    if len(numbers) != len(node.args) or node.keywords:
        return None
    function = ast.unparse(node.func)
    if function == "tl.arange" and len(numbers) == 2:
        return np.arange(numbers[0], numbers[1], dtype=np.int64)[None]
    if function == "tl.program_id" and len(numbers) == 1:
        return _of_active(machine().program_ids(numbers[0]))
    return None
