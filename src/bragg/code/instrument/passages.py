"""When single warps passed through the segments of a kernel, one passage after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bragg.code.instrument.readings import Warps, values_in
from bragg.code.instrument.rewriting import Instrumented
from bragg.code.instrument.storing import FRAME, WARP_BYTES

_WORD = 4


@dataclass(frozen=True, eq=False)
class Passages:
    """Passages through segments; all arrays are [passages].

    Attributes:
        warp: int64, row of the warp.
        segment: int64, number of the segment, in the order of the text.
        start, end: int64, on the clock of the multiprocessor, cycles, which all warps of a block share.
        start_ns, end_ns: int64, on the GPU's global timer.
        value: float64, what the program gave the scope last; NaN: nothing.
    """

    warp: NDArray[np.int64]
    segment: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    value: NDArray[np.float64]


def passages_of(image: bytes, instrumented: Instrumented, warps: Warps, rows: Sequence[int]) -> Passages:
    """The passages of some warps, each in order.

    Args:
        image: `WARP_BYTES` for each warp.
        instrumented: The kernel.
        warps: The headers of the same warps: row for row.
        rows: The warps that are wanted.
    """
    frames = instrumented.frames
    words = np.frombuffer(image, "<u4").reshape(-1, WARP_BYTES // _WORD)
    first_of = np.cumsum([0, *(len(frame.segments) for frame in frames)]).tolist()
    found: list[tuple[int, int, int, int]] = []
    values: list[float] = []
    for row in rows:
        own = words[row].tolist()
        start = int(warps.start[row])
        given: dict[str, float] = {}
        for at, number in frames_in(own, instrumented, int(warps.due_bytes[row])):
            frame = frames[number]
            if frame.event is not None:
                continue
            for word, each in enumerate(frame.values, at + 1 + len(frame.reads)):
                given[each.scope] = float(values_in(words[row, word : word + 1], each)[0])
            # A warp lives for less than 2^32 cycles: the low half of the clock tells how long it has been there.
            since = [(clock - start) % 2**32 for clock in own[at + 1 : at + 1 + len(frame.reads)]]
            found += [
                (row, segment, since[each.start], since[each.end])
                for segment, each in enumerate(frame.segments, first_of[number])
            ]
            values += [given.get(each.does, math.nan) for each in frame.segments]
    columns = np.array(found, np.int64).reshape(-1, 4)
    warp = columns[:, 0]
    cycles = np.maximum((warps.end - warps.start).astype(np.float64), 1)
    cycle_ns = (warps.end_ns - warps.start_ns) / cycles
    began, ended = (warps.start[warp].astype(np.int64) + columns[:, each] for each in (2, 3))
    start_ns, end_ns = (warps.start_ns[warp] + (columns[:, each] * cycle_ns[warp]).astype(np.int64) for each in (2, 3))
    return Passages(warp, columns[:, 1], began, ended, start_ns, end_ns, np.array(values, np.float64))


def frames_in(own: Sequence[int], instrumented: Instrumented, due_bytes: int) -> Iterator[tuple[int, int]]:
    """Position and number of each frame in the words of one warp.

    Args:
        own: Its words.
        instrumented: The kernel.
        due_bytes: Of all its frames, stored or not.
    """
    at = 0
    while at * _WORD < due_bytes and at * _WORD <= instrumented.store.last_start:
        number = own[at] >> 8 & 0xFFFFF
        if own[at] & 0xF0000000 != FRAME or number >= len(instrumented.frames):
            return
        yield at, number
        at += instrumented.frames[number].n_stored_words
