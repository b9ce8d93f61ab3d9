"""Elements of a result that no program has written, though others of its neighbours are.

Judged when the program ends, by what memory then holds: later launches and the host may write the rest. Whoever makes
a tensor larger than what is written may have meant it: rows that are padded, slots of a workspace, blocks above a
diagonal. So what lies at an end counts only in a tensor that the kernel was told the extent of, and where no mask has
left it out, unless that mask compares with the extent less a constant. A constant tells the extent where a store
without a mask counts to a part of it, as in `tl.arange(0, BLOCK // 2)`. Gaps count between elements that are written,
except at the ends of rows of many different lengths, as triangles have them. Equal gaps are slots of a workspace,
unless the lanes of a block are as far apart as elements have bytes: a pointer was counted in bytes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

import numpy as np

from bragg.code.python_nodes import parts_of
from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.expressions import access_text, arange_ends
from bragg.debug.flow.dependence import dependence_of
from bragg.debug.memory.access import Access
from bragg.debug.memory.arrays import is_of_torch
from bragg.debug.memory.emptiness import is_known_by_element, looks_unwritten, unwritten_memory
from bragg.debug.memory.storage import Buffer, window
from bragg.debug.numbers.operands import affine_of
from bragg.debug.state import Listeners, machine
from bragg.debug.values import lift_array
from bragg.model import Severity
from bragg.model.table import Array

# Lengths one after the other, from 0, which tiles of one element alone would leave too.
_MOST_TILED_LENGTHS = 3
# Bytes of elements that are no single byte.
_ELEMENT_SIZES = (2, 4, 8)
_TILES_HINT = (
    "Start a program for each tile, as triton.cdiv(n, BLOCK) counts them, and let tiles meet: the distance between two"
    " is the size of one"
)


class _Result:
    """A tensor that was empty before the launch, and that the launch stores to.

    Attributes:
        buffer: The tensor.
        place: File and line of the last store.
        has_mask: A store had one.
        steps: Distances between neighbouring lanes of its stores, the smallest of each; 0: not known.
    """

    def __init__(self, buffer: Buffer, place: tuple[str, int]) -> None:
        self.buffer = buffer
        self.place = place
        self.has_mask = False
        self.steps: set[int] = set()
        count = buffer.high - buffer.low
        self._left_out = np.zeros(count, bool)
        self._idle = np.zeros(count, np.int32)  # Numbers of programs whose mask left out a whole block, from 1.
        self._has_idle = False
        self._rest: Array | None = None  # Of types that are not known by the element: what was empty and stays so.
        if not is_known_by_element(buffer):
            self._rest = unwritten_memory(buffer)
            word = 8 // buffer.dtype.size_bytes
            for edge in (slice(None, word), slice(-word, None)):  # Words that reach beyond an end are not looked at.
                self._rest[edge] |= looks_unwritten(buffer)[edge].all()

    def empty(self) -> Array:
        """Elements of the memory that nobody has written: bool.

        Where somebody else has written some of what the launch has not, it may be all: single elements do not tell.
        """
        if self._rest is None:
            return unwritten_memory(self.buffer)
        is_kept = bool(looks_unwritten(self.buffer)[self._rest].all())
        return self._rest if is_kept else np.zeros_like(self._rest)

    def see(self, access: Access) -> None:
        """A store to it."""
        self.place = access.place
        if self._rest is not None:
            self._rest[access.offsets - self.buffer.low] = False
        self.has_mask |= access.mask is not None
        self.steps.add(_step_of(access))
        if access.mask is None or access.mask.all():
            return
        mask = np.broadcast_to(lift_array(access.mask, len(access.shape)), access.shape)
        offsets = np.broadcast_to(access.offset.data, access.shape)
        off = ~mask & ~self.buffer.outside(offsets)
        if not off.any():
            return
        active = machine().active_programs
        is_idle = np.broadcast_to(~mask.any(axis=tuple(range(1, mask.ndim)), keepdims=True), mask.shape)
        self._left_out[offsets[off & ~is_idle] - self.buffer.low] = True
        self._has_idle |= bool(is_idle.any())
        idle = np.broadcast_to(active.reshape(-1, *[1] * (mask.ndim - 1)), mask.shape)[off & is_idle]
        self._idle[offsets[off & is_idle] - self.buffer.low] = idle + 1

    def left_out(self, empty: Array) -> Array:
        """Elements that a mask has left out: bool, as `empty`, the elements of the memory that nobody has written.

        A program beyond the end of a row points at the rows that follow, which others write: it left out nothing.
        """
        if not self._has_idle:
            return self._left_out
        beyond = np.unique(self._idle[~empty])
        result: Array = self._left_out | ((self._idle > 0) & ~np.isin(self._idle, beyond))
        return result

    @property
    def byte_step(self) -> int:
        """The one distance between neighbouring lanes, where it is the size of an element; 0: it is none."""
        (step, *others) = self.steps
        return step if not others and step in _ELEMENT_SIZES else 0

    def conditions(self) -> Iterator[ast.Compare]:
        """Comparisons of the mask of the last store, as far as its source tells."""
        text = access_text(*self.place, "store", self.buffer.name).mask
        return parts_of(ast.parse(text), ast.Compare)


def _step_of(access: Access) -> int:
    block = affine_of(access.offset)
    pairs = () if block is None else zip(block.strides, block.shape, strict=True)
    return min((abs(stride) for stride, extent in pairs if extent > 1), default=0)


def _watch(record: LaunchFindings) -> Listeners:
    launch = record.launch
    empty = {key: buffer for key, buffer in launch.empty.items() if buffer.shape}
    if not empty or launch.only is not None or not launch.is_in_host_memory:
        return Listeners()
    results: dict[int, _Result] = {}

    def look(access: Access) -> None:
        key = id(access.buffer)
        if access.kind == "store" and key in empty:
            if key not in results:
                results[key] = _Result(empty[key], access.place)
            results[key].see(access)

    def end() -> None:
        partial_results = [result for result in results.values() if result.empty().any()]
        # Which slots of a cache or a sorted list are filled is up to the data.
        if not partial_results or dependence_of(launch.program, launch.fixed) is not None:
            return
        for result in partial_results:
            if _holes(record, result).any():
                key = (record.rule, launch.kernel, result.place, result.buffer.name)
                record.report.judge_at_end(key, partial(_judge, record, result))

    return Listeners(access=[look], end=[end])


def _judge(record: LaunchFindings, result: _Result) -> None:
    buffer = result.buffer
    if not _has_memory(buffer):
        return
    holes = _holes(record, result)
    if not holes.any():
        return
    left_out = _as_tensor(buffer, result.left_out(result.empty()))
    text = access_text(*result.place, "store", buffer.name)
    ends = int(holes.argmax()), holes.size - 1 - int(np.flip(holes).argmax())
    first, last = (", ".join(str(int(index)) for index in np.unravel_index(end, holes.shape)) for end in ends)
    count = np.count_nonzero(holes)
    record.at_source(
        *result.place,
        f"{count} of {holes.size} elements of {buffer.name} are written by nobody, and their neighbours are",
        _hint(result, text.mask if not (holes & ~left_out).any() else ""),
        Severity.WARNING,
        buffer,
        example=f"the first is {buffer.name}[{first}], the last {buffer.name}[{last}]",
        text=text,
    )


def _hint(result: _Result, mask: str) -> str:
    """What to change; `mask` is what has left out the elements, empty: the grid has no lanes for them."""
    if result.byte_step:
        lanes = f"Neighbouring lanes of the store are {result.byte_step} elements apart"
        return f"{lanes}: a pointer of Triton counts elements, not bytes"
    if mask:
        shape = result.buffer.shape
        limit = f"the index with {shape[0]}" if len(shape) == 1 else f"each index with its extent of {list(shape)}"
        return f"The mask {mask} leaves them out, and there are lanes for them: compare {limit}"
    return _TILES_HINT


def _has_memory(buffer: Buffer) -> bool:
    """The tensor's memory is where it was."""
    owner = buffer.owner
    if not is_of_torch(owner):
        return True
    storage = owner.untyped_storage()
    size_bytes = storage.nbytes() + storage.data_ptr() - owner.data_ptr()
    return bool(owner.data_ptr() == buffer.address and size_bytes >= (buffer.high - 1) * buffer.flat.itemsize)


def _holes(record: LaunchFindings, result: _Result) -> Array:
    """bool, as the tensor: elements that nobody has written, and somebody should have."""
    buffer = result.buffer
    memory = result.empty()
    empty, left_out = (_as_tensor(buffer, flat) for flat in (memory, result.left_out(memory)))
    holes = np.zeros(buffer.shape, bool)
    is_ragged = _ragged_ends(empty)
    for axis in range(len(buffer.shape)):
        gaps = _gaps(empty, axis) & ~is_ragged
        if _is_meant(record, result, axis):
            holes |= gaps | _end(empty, axis, None if _stops_short(record, result, axis) else left_out)
            if not empty.take(-1, axis).any():
                holes |= np.flip(_end(np.flip(empty, axis), axis, np.flip(left_out, axis)), axis)
        elif empty.ndim > 1 or not _is_regular(gaps) or result.byte_step:
            holes |= gaps
    return holes


def _as_tensor(buffer: Buffer, flat: Array) -> Array:
    """A copy of what belongs to each element of a tensor's memory, in the shape of the tensor."""
    return np.array(window(flat, buffer.first, buffer.shape, buffer.strides))


def _gaps(empty: Array, axis: int) -> Array:
    """bool, as the tensor: holes with written elements before and after them along an axis."""
    written = ~empty
    before = np.logical_or.accumulate(written, axis)
    after = np.flip(np.logical_or.accumulate(np.flip(written, axis), axis), axis)
    result: Array = empty & before & after
    return result


def _ragged_ends(empty: Array) -> Array:
    """bool, as the tensor: the unwritten ends of its rows, and of lines along other axes, where no two tiles end alike.

    Tiles that are missing leave out few lengths: a tile, two, all of the row.
    """
    result = np.zeros_like(empty)
    for axis in range(empty.ndim):
        ends = np.flip(np.logical_and.accumulate(np.flip(empty, axis), axis), axis)
        lengths = np.unique(ends.sum(axis))
        if len(lengths) > _MOST_TILED_LENGTHS and (np.diff(lengths) == 1).all():
            result |= ends
    return result


def _end(empty: Array, axis: int, left_out: Array | None) -> Array:
    """bool, as the tensor: the slab at the end of an axis that is missing at all indices of the other axes.

    Args:
        empty: bool, as the tensor.
        axis: The axis.
        left_out: bool, as the tensor: where a mask has left out the begin of the slab, it is meant. None: nowhere.
    """
    others = tuple(other for other in range(empty.ndim) if other != axis)
    written = np.flatnonzero(~empty.all(axis=others))
    result = np.zeros_like(empty)
    if not len(written) or written[-1] + 1 == empty.shape[axis]:
        return result
    begin = int(written[-1]) + 1
    if left_out is None or not left_out.take(begin, axis).all():
        result[(slice(None),) * axis + (slice(begin, None),)] = True
    return result


def _is_regular(gaps: Array) -> bool:
    """Equal gaps at equal distances, as between slots of a workspace that are larger than what is in them."""
    edges = np.diff(np.concatenate([[False], gaps, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return len(np.unique(ends - starts)) <= 1 and len(np.unique(np.diff(starts))) <= 1


def _is_meant(record: LaunchFindings, result: _Result, axis: int) -> bool:
    """The kernel was told the extent of an axis.

    A mask compares with it, a range of numbers is a part of it, or it is not the stride of a tensor only.
    """
    launch, extent = record.launch, result.buffer.shape[axis]
    if any(_extents(record, condition, extent) for condition in result.conditions()):
        return True
    parts = [] if result.has_mask else [end for end in arange_ends(*result.place) if isinstance(end, ast.BinOp)]
    if any(_extents(record, part, extent) for part in parts):
        return True
    numbers = [value for name, value in launch.arguments.items() if name not in launch.constants]
    told = sum(isinstance(value, int) and value == extent for value in numbers)
    strides = sum(stride == extent for one in launch.buffers for stride in one.strides)
    return told > strides


def _extents(record: LaunchFindings, node: ast.AST, extent: int) -> set[str]:
    """Names in an expression of arguments that are the extent of an axis."""
    names = {part.id for part in parts_of(node, ast.Name)}
    return {name for name, value in record.launch.arguments.items() if name in names and value == extent}


def _stops_short(record: LaunchFindings, result: _Result, axis: int) -> bool:
    """A mask compares with the extent of an axis less a constant, as in `i < n - 1` and `i + 1 < n`."""
    extent = result.buffer.shape[axis]
    for condition in result.conditions():
        if len(condition.ops) == 1 and isinstance(condition.ops[0], ast.Lt | ast.LtE):
            left, right = condition.left, condition.comparators[0]
            less = isinstance(right, ast.BinOp) and isinstance(right.op, ast.Sub) and right.right
            more = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add) and left.right
            if isinstance(less or more, ast.Constant) and _extents(record, right, extent):
                return True
    return False


UNWRITTEN_RESULT = Checker("unwritten", "elements of a result that no program writes", True, _watch)
