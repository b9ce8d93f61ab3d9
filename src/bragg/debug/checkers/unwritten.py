"""Elements of a result that no program has written, though others of its neighbours are.

Judged when the program ends, by what memory then holds: later launches and the host may write the rest. Whoever makes
a tensor larger than what is written may have meant it: rows that are padded, slots of a workspace, blocks above a
diagonal. So what lies at an end counts only in a tensor that the kernel was told the extent of, and where no mask has
left it out; gaps count between elements that are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from bragg.debug.checkers.checker import Checker, LaunchFindings
from bragg.debug.flow.dependence import dependence_of
from bragg.debug.memory.access import Access
from bragg.debug.memory.arrays import is_of_torch
from bragg.debug.memory.emptiness import unwritten
from bragg.debug.memory.storage import Buffer
from bragg.debug.state import Listeners
from bragg.debug.values import lift_array
from bragg.model import Severity
from bragg.model.table import Array

__all__ = ["UNWRITTEN_RESULT"]


@dataclass
class _Result:
    """A tensor that was empty before the launch, and that the launch stores to.

    Attributes:
        buffer: The tensor.
        place: File and line of the last store.
        leaves_out: A mask has left out elements of the tensor.
    """

    buffer: Buffer
    place: tuple[str, int]
    leaves_out: bool = False

    def see(self, access: Access) -> None:
        """A store to it."""
        self.place = access.place
        if access.mask is not None and not self.leaves_out:
            off = ~lift_array(access.mask, len(access.shape))
            inside = ~self.buffer.outside(np.broadcast_to(access.offset.data, access.shape))
            self.leaves_out = bool((off & inside).any())


def _watch(record: LaunchFindings) -> Listeners:
    launch = record.launch
    empty = {key: buffer for key, buffer in launch.empty.items() if buffer.shape}
    if not empty or launch.only is not None or not launch.is_in_host_memory:
        return Listeners()
    results: dict[int, _Result] = {}

    def look(access: Access) -> None:
        key = id(access.buffer)
        if access.kind == "store" and key in empty:
            results.setdefault(key, _Result(empty[key], access.place)).see(access)

    def end() -> None:
        # Which slots of a cache or a sorted list are filled is up to the data.
        if not results or dependence_of(launch.program) is not None:
            return
        for result in results.values():
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
    places = np.argwhere(holes)
    first, last = (", ".join(map(str, place.tolist())) for place in (places[0], places[-1]))
    record.at_source(
        *result.place,
        f"{len(places)} of {holes.size} elements of {buffer.name} are written by nobody, and their neighbours are",
        "Start a program for each tile, as triton.cdiv(n, BLOCK) counts them, and let tiles meet:"
        " the distance between two is the size of one",
        Severity.WARNING,
        buffer,
        example=f"the first is {buffer.name}[{first}], the last {buffer.name}[{last}]",
    )


def _has_memory(buffer: Buffer) -> bool:
    """The tensor's memory is where it was."""
    owner = buffer.owner
    if not is_of_torch(owner):
        return True
    size_bytes = owner.untyped_storage().nbytes() - owner.storage_offset() * owner.element_size()
    return bool(owner.data_ptr() == buffer.address and size_bytes >= (buffer.high - 1) * buffer.flat.itemsize)


def _holes(record: LaunchFindings, result: _Result) -> Array:
    """bool, as the tensor: elements that nobody has written, and somebody should have."""
    buffer = result.buffer
    empty = unwritten(buffer, np.arange(buffer.low, buffer.high))
    strides = tuple(stride * empty.itemsize for stride in buffer.strides)
    empty = np.array(as_strided(empty[buffer.first :], buffer.shape, strides))
    holes = np.zeros(buffer.shape, bool)
    for axis in range(len(buffer.shape)):
        holes |= _on_axis(empty, axis, is_meant=_is_meant(record, buffer, axis), result=result)
    return holes


def _on_axis(empty: Array, axis: int, *, is_meant: bool, result: _Result) -> Array:
    """bool, as the tensor: holes by what stands before and after them along an axis."""
    written = ~empty
    before = np.logical_or.accumulate(written, axis)
    after = np.flip(np.logical_or.accumulate(np.flip(written, axis), axis), axis)
    gaps = empty & before & after
    if not is_meant:
        return np.zeros_like(gaps) if empty.ndim == 1 and _is_regular(gaps) else gaps
    if result.leaves_out:
        return gaps
    # A slab at the end, which is missing at all indices of the other axes.
    others = tuple(other for other in range(empty.ndim) if other != axis)
    rows = empty.all(axis=others, keepdims=True)
    ends = rows & ~np.flip(np.logical_or.accumulate(np.flip(~rows, axis), axis), axis)
    return gaps | (np.broadcast_to(ends, empty.shape) if not rows.all() else np.zeros_like(gaps))


def _is_regular(gaps: Array) -> bool:
    """Equal gaps at equal distances, as between slots of a workspace that are larger than what is in them."""
    edges = np.diff(np.concatenate([[False], gaps, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return len(np.unique(ends - starts)) <= 1 and len(np.unique(np.diff(starts))) <= 1


def _is_meant(record: LaunchFindings, buffer: Buffer, axis: int) -> bool:
    """The kernel was told the extent of an axis: as a number that is not the stride of a tensor only."""
    launch, extent = record.launch, buffer.shape[axis]
    numbers = [value for name, value in launch.arguments.items() if name not in launch.constants]
    told = sum(isinstance(value, int) and value == extent for value in numbers)
    strides = sum(stride == extent for one in launch.buffers for stride in one.strides)
    return told > strides


UNWRITTEN_RESULT = Checker("unwritten", "elements of a result that no program writes", True, _watch)
