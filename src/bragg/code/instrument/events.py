"""Events that begin at one place of a kernel and end at another, in another turn of a loop or in another warp."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bragg.code.instrument.passages import frames_in
from bragg.code.instrument.readings import Warps, values_in
from bragg.code.instrument.rewriting import Instrumented
from bragg.code.instrument.segments import Event
from bragg.code.instrument.storing import WARP_BYTES

_WORD = 4


@dataclass(frozen=True, eq=False)
class Intervals:
    """One event, each time that it began and ended; all arrays are [intervals], in the order of the begins.

    Attributes:
        begins, ends: Where.
        warp: int64, row of the warp in which it began.
        value: float64, that both places were given; NaN: none.
        cycles: int64, on the clock of the multiprocessor, which all warps of a block share.
        start_ns: int64, on the GPU's global timer.
        end_ns: int64, the same.
        unmatched: Begins and ends that have no counterpart.
    """

    begins: Event
    ends: Event
    warp: NDArray[np.int64]
    value: NDArray[np.float64]
    cycles: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    unmatched: int


class _Mark(NamedTuple):
    """One begin or end: when, and in which warp."""

    clock: int
    row: int
    value: float
    event: Event


def intervals_of(
    image: bytes, instrumented: Instrumented, warps: Warps, rows: Sequence[int], warps_of_block: int
) -> list[Intervals]:
    """The events of some warps.

    If several warps of a block begin an event, the first of them counts, and of those that end it as well. Begins and
    ends with one value are matched in their order.

    Args:
        image: `WARP_BYTES` for each warp.
        instrumented: The kernel.
        warps: The headers of the same warps: row for row.
        rows: The warps that are wanted, whole blocks.
        warps_of_block: Warps of a block with rows.
    """
    by_name: dict[str, dict[int, list[_Mark]]] = defaultdict(lambda: defaultdict(list))
    for mark in _marks(image, instrumented, warps, rows):
        by_name[mark.event.name][mark.row // warps_of_block].append(mark)
    found = []
    for by_block in by_name.values():
        pairs: list[tuple[_Mark, _Mark]] = []
        unmatched = 0
        for marks in by_block.values():
            matched, left = _matched(marks)
            pairs += matched
            unmatched += left
        if pairs:
            found.append(_intervals(sorted(pairs), warps, unmatched))
    return found


def _marks(image: bytes, instrumented: Instrumented, warps: Warps, rows: Sequence[int]) -> Iterator[_Mark]:
    words = np.frombuffer(image, "<u4").reshape(-1, WARP_BYTES // _WORD)
    for row in rows:
        own, start = words[row].tolist(), int(warps.start[row])
        for at, number in frames_in(own, instrumented, int(warps.due_bytes[row])):
            frame = instrumented.frames[number]
            if frame.event is None:
                continue
            value = float(values_in(words[row, at + 2 : at + 3], frame.values[0])[0]) if frame.values else math.nan
            # A warp lives for less than 2^32 cycles: the low half of the clock tells how long it has been there.
            yield _Mark(start + (own[at + 1] - start) % 2**32, row, value, frame.event)


def _matched(marks: Sequence[_Mark]) -> tuple[list[tuple[_Mark, _Mark]], int]:
    """Begins of one block with their ends, and how many of both are left."""
    begins, ends = (_of_first_warp([each for each in marks if each.event.begins is wanted]) for wanted in (True, False))
    waiting: dict[float | None, list[_Mark]] = defaultdict(list)
    for each in begins:
        waiting[None if math.isnan(each.value) else each.value].append(each)
    pairs = []
    for each in ends:
        open_ones = waiting[None if math.isnan(each.value) else each.value]
        if open_ones and open_ones[0].clock <= each.clock:
            pairs.append((open_ones.pop(0), each))
    return pairs, len(begins) + len(ends) - 2 * len(pairs)


def _of_first_warp(marks: Sequence[_Mark]) -> list[_Mark]:
    first = min((each.row for each in marks), default=0)
    return sorted(each for each in marks if each.row == first)


def _intervals(pairs: Sequence[tuple[_Mark, _Mark]], warps: Warps, unmatched: int) -> Intervals:
    begins, ends = ([pair[side] for pair in pairs] for side in (0, 1))
    start_ns, end_ns = (_global_ns(marks, warps) for marks in (begins, ends))
    return Intervals(
        begins[0].event,
        ends[0].event,
        np.array([each.row for each in begins], np.int64),
        np.array([each.value for each in begins], np.float64),
        np.array([end.clock - begin.clock for begin, end in pairs], np.int64),
        start_ns,
        np.maximum(end_ns, start_ns),
        unmatched,
    )


def _global_ns(marks: Sequence[_Mark], warps: Warps) -> NDArray[np.int64]:
    """When marks were passed: each warp has read both clocks at its start and its end."""
    row = np.array([each.row for each in marks], np.int64)
    since = np.array([each.clock for each in marks], np.int64) - warps.start[row].astype(np.int64)
    cycles = np.maximum((warps.end - warps.start).astype(np.float64), 1)
    cycle_ns = (warps.end_ns - warps.start_ns) / cycles
    found: NDArray[np.int64] = warps.start_ns[row] + (since * cycle_ns[row]).astype(np.int64)
    return found
