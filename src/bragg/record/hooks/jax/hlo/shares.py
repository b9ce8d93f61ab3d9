"""What share of its operands an operation of an HLO module needs for a share of its result."""

from __future__ import annotations

import re
from math import prod
from operator import gt
from typing import NamedTuple

from bragg.record.hooks.jax.hlo.module import DIMENSIONS
from bragg.record.hooks.jax.hlo.zeros import nonzero_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bragg.record.hooks.jax.hlo.graph import Value


ELEMENTWISE = frozenset(
    {"add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "and", "or", "xor", "not", "negate"}
    | {"abs", "exponential", "log", "sqrt", "rsqrt", "tanh", "sine", "cosine", "logistic", "compare", "clamp"}
    | {"floor", "ceil", "sign", "erf", "log-plus-one", "exponential-minus-one", "shift-left", "real", "imag"}
    | {"shift-right-logical", "shift-right-arithmetic", "remainder", "complex", "cbrt", "atan2", "is-finite"}
    | {"select", "convert", "bitcast-convert", "dynamic-update-slice"}
)
"""Of which each element needs that of the operands of its size; of an update only the array that is written to."""
_NEEDS_PARTS = frozenset(
    {"slice", "dynamic-slice", "gather", "reduce", "reduce-window", "multiply", "select", "dot", "custom-call"}
)
"""Whose whole result may need but a part of an operand, which lies elsewhere or meets zeros."""

_PAIRED, _ADDED_UP = (
    [re.compile(rf"\b{side}_{kind}_dim(?:s|ensions)\"?[=:][{{\[]([\d,\"]*)[}}\]]") for side in ("lhs", "rhs")]
    for kind in ("batch", "contracting")
)
_OFFSETS, _MAPPED, _SLICES = (
    re.compile(rf"\b{name}=\{{([\d,]*)\}}") for name in ("offset_dims", "start_index_map", "slice_sizes")
)


_LABELS, _WINDOW = re.compile(r"\bdim_labels=(\w+)_\w+->(\w+)"), re.compile(r"\bwindow=\{size=([\dx]+)(?: pad=\S+)?\}")
_DECOMPOSED = re.compile(r'op_name="(?:[^"]*/)?(?:eigh|svd)"')
_EXTREMES = ("maximum", "minimum")


class Share(NamedTuple):
    """A bound on what is used of an array.

    Attributes:
        sides: Of each dimension, at most this share: what is used lies in rows, columns ... of these.
        total: Of all elements, at most this share.
    """

    sides: tuple[float, ...]
    total: float = 1.0

    @property
    def part(self) -> float:
        """The share of all elements, as both bounds tell."""
        return min(self.total, prod(self.sides))

    def joined(self, other: Share) -> Share:
        """What is used by two users."""
        total = min(1.0, self.part + other.part)
        if len(self.sides) != len(other.sides):
            return Share((), total)
        return Share(tuple(min(1.0, one + two) for one, two in zip(self.sides, other.sides, strict=True)), total)


def is_decomposition(value: Value) -> bool:
    """Whether it computes eigenvalues or singular values, and vectors."""
    return value.made.code == "custom-call" and bool(_DECOMPOSED.search(value.made.line))


def is_convolution(value: Value) -> bool:
    """Whether it is a convolution, which a library may compute."""
    return value.made.code in ("convolution", "custom-call") and "dim_labels=" in value.made.line


def whole(value: Value) -> Share:
    """All of a value."""
    return Share((1.0,) * len(value.sizes))


def share_of_operand(user: Value, at: int, share: Share) -> Share:
    """What is used of one operand.

    Args:
        user: The operation.
        at: Which operand.
        share: What is used of its result.
    """
    operand = user.operands[at]
    if share.part == 1 and user.made.code not in _NEEDS_PARTS:
        return whole(operand)
    if len(share.sides) != len(user.sizes):
        share = Share((1.0,) * len(user.sizes), share.part)
    judge = _of_element if user.made.code in ELEMENTWISE else _JUDGES.get(user.made.code)
    needed = judge(user, at, share) if judge else whole(operand)
    if needed.part == 1 or (user.is_row_major and operand.is_row_major):
        return needed
    return Share((1.0,) * len(operand.sizes), needed.total)  # A bitcast in between may have exchanged dimensions.


def _of_element(user: Value, at: int, share: Share) -> Share:
    operand = user.operands[at]
    if operand.size != user.size or (user.made.code == "dynamic-update-slice" and at):
        return whole(operand)
    if user.made.code == "multiply" or (user.made.code == "select" and at == 1 and user.operands[2].is_number("0")):
        share = share._replace(total=min(share.total, nonzero_part(user.operands[1 - at])))
    if share.part == 1:
        return whole(operand)
    return _reshaped(user, operand, share)


def _of_slice(user: Value, at: int, share: Share) -> Share:
    operand = user.operands[at]
    if at:
        return whole(operand)
    total = min(1.0, share.part * user.size / max(1, operand.size))
    if len(operand.sizes) != len(user.sizes) or any(map(gt, user.sizes, operand.sizes)):
        # A bitcast in between has changed the shape.
        return Share((1.0,) * len(operand.sizes), total)
    sizes = zip(share.sides, user.sizes, operand.sizes, strict=True)
    return Share(tuple(side * one / max(1, other) for side, one, other in sizes), total)


def _of_gather(user: Value, at: int, share: Share) -> Share:
    operand, line = user.operands[at], user.made.line
    offsets, mapped, slices = (numbers(each, line) for each in (_OFFSETS, _MAPPED, _SLICES))
    rows = [
        (side, size) for d, (side, size) in enumerate(zip(share.sides, user.sizes, strict=True)) if d not in offsets
    ]
    used = prod(side for side, _ in rows)
    if at:  # the indices, a row for each of these
        return Share((1.0,) * len(operand.sizes), used)
    total = min(1.0, share.part * user.size / max(1, operand.size))
    sides = [1.0] * len(operand.sizes)
    if len(mapped) == 1 and len(slices) == len(sides):
        n_rows = prod(size for _, size in rows) * slices[mapped[0]]
        sides[mapped[0]] = min(1.0, used * n_rows / max(1, operand.sizes[mapped[0]]))
    return Share(tuple(sides), total)


def _of_reduction(user: Value, at: int, share: Share) -> Share:
    operand = user.operands[at]
    if not at and _is_extreme(user):
        return _of_extreme(operand)
    dropped = numbers(DIMENSIONS, user.made.line)
    if len(operand.sizes) != len(user.sizes) + len(dropped):
        return Share((1.0,) * len(operand.sizes), share.part if operand.size >= user.size else 1.0)
    kept = iter(share.sides)
    return Share(tuple(1.0 if each in dropped else next(kept) for each in range(len(operand.sizes))), share.total)


def _of_windows(user: Value, at: int, share: Share) -> Share:
    operand = user.operands[at]  # XLA adds up long rows in parts, and takes their maximum so.
    return _of_extreme(operand) if not at and _is_extreme(user) else whole(operand)


def _is_extreme(user: Value) -> bool:
    return user.codes.endswith(_EXTREMES) and _is_sorted(user.operands[0])


def _of_extreme(operand: Value) -> Share:
    return whole(operand)._replace(total=1 / max(1, operand.sizes[-1] if operand.sizes else 1))


def _is_sorted(value: Value) -> bool:
    """Whether these are the values of a decomposition, of which the first or last is the least or greatest."""
    value = value.plain
    while value.made.code in ("select", "abs") and value.operands:  # JAX puts NaN in place of what has failed.
        value = value.operands[-2 if value.made.code == "select" else 0].plain
    return is_decomposition(value)


def _of_broadcast(user: Value, at: int, share: Share) -> Share:
    operand, over = user.operands[at], numbers(DIMENSIONS, user.made.line)
    total = min(1.0, share.part * user.size / max(1, operand.size))
    if len(over) != len(operand.sizes):
        return Share((1.0,) * len(operand.sizes), total)
    return Share(tuple(share.sides[each] for each in over), total)


def _of_transpose(user: Value, at: int, share: Share) -> Share:
    operand, order = user.operands[at], numbers(DIMENSIONS, user.made.line)
    if sorted(order) != list(range(len(operand.sizes))):
        return Share((1.0,) * len(operand.sizes), share.part)
    sides = dict(zip(order, share.sides, strict=True))
    return Share(tuple(sides[each] for each in range(len(order))), share.total)


def _of_reshape(user: Value, at: int, share: Share) -> Share:
    return _reshaped(user, user.operands[at], share)


def _of_call(user: Value, at: int, share: Share) -> Share:
    return (_of_convolution if is_convolution(user) else _of_product)(user, at, share)


def _of_convolution(user: Value, at: int, share: Share) -> Share:
    """Rows of an image need those around them, as far as the filter reaches."""
    operand, labels = user.operands[at], _LABELS.search(user.made.line)
    window = _WINDOW.search(user.made.line)  # that moves by one
    if (
        at
        or labels is None
        or window is None
        or len(labels[1]) != len(operand.sizes)
        or len(share.sides) != len(labels[2])
    ):
        return whole(operand)
    sides, reach = [1.0] * len(operand.sizes), window[1].split("x")
    for each, label in enumerate(labels[1]):
        if label != "f":
            of_result = labels[2].index(label)
            around = int(reach[int(label)]) - 1 if label != "b" else 0
            n_needed = share.sides[of_result] * user.sizes[of_result] + around
            sides[each] = min(1.0, n_needed / max(1, operand.sizes[each]))
    return Share(tuple(sides))


def _of_product(user: Value, at: int, share: Share) -> Share:
    """Rows of the result need rows of the left matrix, columns those of the right one."""
    operand = user.operands[at]
    if not user.made.is_product or at > 1:
        return _of_element(user, at, share) if at > 1 else whole(operand)
    batch, inner = zip(*(dimensions_of(user, side) for side in (0, 1)), strict=True)
    free = [
        [each for each in range(len(user.operands[side].sizes)) if each not in (*batch[side], *inner[side])]
        for side in (0, 1)
    ]
    other = user.operands[1 - at]
    is_once = prod(other.sizes[each] for each in free[1 - at]) == 1
    total = nonzero_part(other) if is_once else 1.0
    n_batch, n_left = len(batch[0]), len(free[0])
    if n_batch + n_left + len(free[1]) != len(share.sides):
        return whole(operand)._replace(total=total)
    begin = n_batch + (n_left if at else 0)
    sides = dict(zip(batch[at], share.sides, strict=False))
    sides |= dict(zip(free[at], share.sides[begin:], strict=False))
    return Share(tuple(sides.get(each, 1.0) for each in range(len(operand.sizes))), total)


def _along(user: Value, at: int, share: Share) -> Share:
    """All of one dimension."""
    operand, along = user.operands[at], numbers(DIMENSIONS, user.made.line)
    if len(operand.sizes) != len(share.sides):
        return whole(operand)
    return Share(tuple(1.0 if each in along else side for each, side in enumerate(share.sides)))


_JUDGES: dict[str, Callable[[Value, int, Share], Share]] = {
    "slice": _of_slice,
    "dynamic-slice": _of_slice,
    "gather": _of_gather,
    "reduce": _of_reduction,
    "reduce-window": _of_windows,
    "broadcast": _of_broadcast,
    "transpose": _of_transpose,
    "reshape": _of_reshape,
    "dot": _of_product,
    "custom-call": _of_call,
    "convolution": _of_convolution,
    "concatenate": _along,
    "sort": _along,
}


def _reshaped(user: Value, operand: Value, share: Share) -> Share:
    """The same elements in another shape: dimensions that were joined have what is known of all of them."""
    if user.sizes == operand.sizes:
        return share
    sides = [1.0] * len(operand.sizes)
    for joined, split in alike_dimensions(user.sizes, operand.sizes):
        large = [each for each in split if operand.sizes[each] > 1]
        if len(large) == 1:
            sides[large[0]] = prod(share.sides[each] for each in joined)
    return Share(tuple(sides), share.part)


def dimensions_of(product: Value, side: int) -> tuple[list[int], list[int]]:
    """Those dimensions of a factor whose matrices are multiplied one by one, and those that are added up."""
    line = product.made.line
    return numbers(_PAIRED[side], line), numbers(_ADDED_UP[side], line)


def alike_dimensions(one: list[int], other: list[int]) -> Iterator[tuple[range, range]]:
    """Dimensions of two shapes that have as many elements, as few as possible at a time."""
    begins, ends = (0, 0), (1, 1)
    while ends[0] <= len(one) and ends[1] <= len(other):
        sizes = prod(one[begins[0] : ends[0]]), prod(other[begins[1] : ends[1]])
        if sizes[0] == sizes[1]:
            yield range(begins[0], ends[0]), range(begins[1], ends[1])
            begins, ends = ends, (ends[0] + 1, ends[1] + 1)
        else:
            ends = (ends[0] + (sizes[0] < sizes[1]), ends[1] + (sizes[0] > sizes[1]))


def numbers(pattern: re.Pattern[str], line: str) -> list[int]:
    """Those that a field of an operation lists."""
    found = pattern.search(line)
    return [int(each) for each in re.findall(r"\d+", found[1])] if found else []
