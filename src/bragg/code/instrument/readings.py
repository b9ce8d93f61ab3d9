"""What the clock readings of a launch say, by segment, warp and block; see `rewriting` for the layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC, Instrumented
from bragg.code.instrument.segments import ScopeValue, Segment
from bragg.code.instrument.storing import FRAME, WARP_BYTES

_WORD = 4


@dataclass(frozen=True, eq=False)
class Warps:
    """The headers of warps that ended; all arrays are [warps].

    Attributes:
        slot: int64, position of the header: blocks with headers in order, warps of a block in order.
        block: int64, number of the block in its launch.
        multiprocessor: int64.
        start_ns, end_ns: int64, on the GPU's global timer.
        start, end: uint64, on the clock of the multiprocessor, cycles.
        due_bytes: int64, of frames, also those for which there was no room.
        read_cycles: int64, what one reading of the clock cost.
    """

    slot: NDArray[np.int64]
    block: NDArray[np.int64]
    multiprocessor: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    start: NDArray[np.uint64]
    end: NDArray[np.uint64]
    due_bytes: NDArray[np.int64]
    read_cycles: NDArray[np.int64]


@dataclass
class ValueTotals:
    """What a kernel gave a scope at one place.

    Attributes:
        of: The scope.
        count: How often it gave a value that is finite.
        total, least, greatest: Of these.
        not_finite: How often it gave NaN or an infinite value.
    """

    of: ScopeValue
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    greatest: float = float("-inf")
    not_finite: int = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values: float64 [n]."""
        finite = values[np.isfinite(values)]
        self.count += len(finite)
        self.not_finite += len(values) - len(finite)
        self.total += float(finite.sum())
        self.least = min(self.least, float(finite.min(initial=np.inf)))
        self.greatest = max(self.greatest, float(finite.max(initial=-np.inf)))


@dataclass(frozen=True, eq=False)
class Readings:
    """The frames of a launch, added up.

    Attributes:
        segments: All of them, in the order of the text.
        count: int64 [segments], passages.
        cycles: int64 [segments, warps of a block], without what the readings cost.
        longest: int64 [segments], cycles, without what the readings cost.
        read_cycles: What one reading costs: the median of the warps.
        clock_cycles: That all readings of the covered time cost.
        covered: int64 [warps], cycles from a warp's start to its last frame that had room, or to its end.
        damaged: Warps whose frames are not what the kernel stores.
        values: What scopes were given.
    """

    segments: Sequence[Segment]
    count: NDArray[np.int64]
    cycles: NDArray[np.int64]
    longest: NDArray[np.int64]
    read_cycles: int
    clock_cycles: int
    covered: NDArray[np.int64]
    damaged: int
    values: Sequence[ValueTotals] = ()


def launches_in(image: bytes) -> int | None:
    """How many launches have stored these headers, one after the other; None: one is under way."""
    words = np.frombuffer(image, "<u4").reshape(-1, HEADER_BYTES // _WORD)
    times, count = words[:, :8].copy().view("<u8"), words[:, 13]
    has_begun_again = times[:, 0] > times[:, 2]
    return None if has_begun_again.any() or (count != count[0]).any() else int(count[0])


def read_headers(image: bytes) -> Warps:
    """The headers of a launch; warps that have not ended are left out.

    Args:
        image: Headers, 64 bytes each.
    """
    words = np.frombuffer(image, "<u4", len(image) // HEADER_BYTES * (HEADER_BYTES // _WORD))
    words = words.reshape(-1, HEADER_BYTES // _WORD)
    slot = np.flatnonzero(words[:, 8] == MAGIC)
    words = np.ascontiguousarray(words[slot])
    times = words[:, :8].copy().view("<u8")
    return Warps(
        slot,
        words[:, 10].astype(np.int64),
        words[:, 9].astype(np.int64),
        times[:, 0].astype(np.int64),
        times[:, 2].astype(np.int64),
        times[:, 1],
        times[:, 3],
        words[:, 11].astype(np.int64),
        words[:, 12].astype(np.int64),
    )


def read_frames(image: bytes, instrumented: Instrumented, warps: Warps, warps_of_block: int) -> Readings:
    """Add up the frames of a launch.

    Args:
        image: `WARP_BYTES` for each warp.
        instrumented: The kernel.
        warps: The headers of the same warps: row for row.
        warps_of_block: Warps of a block.
    """
    words = np.frombuffer(image, "<u4").reshape(-1, WARP_BYTES // _WORD)
    frames = instrumented.frames
    segments = [segment for frame in frames for segment in frame.segments]
    first_of = np.cumsum([0, *(len(frame.segments) for frame in frames)])
    count = np.zeros(len(segments), np.int64)
    cycles = np.zeros((len(segments), warps_of_block), np.int64)
    longest = np.zeros(len(segments), np.int64)
    values = {
        number: [ValueTotals(each) for each in frame.values if frame.event is None]
        for number, frame in enumerate(frames)
    }
    last = warps.start.astype(np.uint32)
    place = warps.slot % warps_of_block
    at = np.zeros(len(words), np.int64)
    rows = np.flatnonzero(warps.due_bytes > 0)
    damaged, n_reads = 0, 0
    read_cycles = int(np.median(warps.read_cycles[rows])) if len(rows) else 0
    while len(rows):
        head = words[rows, at[rows]]
        number = (head >> 8) & 0xFFFFF
        is_frame = ((head & 0xF0000000) == FRAME) & (number < len(frames))
        damaged += int((~is_frame).sum())
        rows, number = rows[is_frame], number[is_frame]
        for each in np.unique(number).tolist():
            frame, own = frames[each], rows[number == each]
            stored = words[own[:, None], at[own, None] + 1 + np.arange(frame.n_words)]
            clocks = stored[:, : len(frame.reads)]
            for column, totals in enumerate(values[each], len(frame.reads)):
                totals.add(values_in(stored[:, column], totals.of))
            for index, segment in enumerate(frame.segments, int(first_of[each])):
                took = (clocks[:, segment.end] - clocks[:, segment.start]).astype(np.int64) - read_cycles
                took = np.maximum(took, 0)  # a reading is at times cheaper than the median
                count[index] += len(own)
                cycles[index] += np.bincount(place[own], took, warps_of_block).astype(np.int64)
                longest[index] = max(longest[index], took.max(initial=0))
            n_reads += len(own) * len(frame.reads)
            if frame.reads:
                last[own] = clocks[:, -1]
            at[own] += frame.n_stored_words
        rows = rows[(at[rows] * _WORD <= instrumented.store.last_start) & (at[rows] * _WORD < warps.due_bytes[rows])]
    whole = warps.due_bytes <= at * _WORD
    covered = np.where(
        whole, (warps.end - warps.start).astype(np.int64), (last - warps.start.astype(np.uint32)).astype(np.int64)
    )
    found = [each for of_frame in values.values() for each in of_frame]
    return Readings(segments, count, cycles, longest, read_cycles, n_reads * read_cycles, covered, damaged, found)


def values_in(words: NDArray[np.uint32], of: ScopeValue) -> NDArray[np.float64]:
    """What words, uint32 [n], hold: float64 [n]."""
    return words.view(np.int32 if of.value.type == "i32" else np.float32).astype(np.float64)
