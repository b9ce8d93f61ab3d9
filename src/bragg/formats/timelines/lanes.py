"""A trace as lanes, the way that trace viewers want it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bragg.errors import UsageError
from bragg.model import Profile, SliceTable, TrackTable
from bragg.model.table import Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class Lane:
    """Slices of one track that nest: each ends before the next begins, or contains it.

    Attributes:
        track: Row of the track table.
        overflow: 0, or the number of the lane that holds what overlapped on this track.
        rows: Rows of the slice table, by start, outer before inner.
    """

    track: int
    overflow: int
    rows: Int64Array

    def label(self, tracks: TrackTable) -> str:
        """How the lane is shown: as its track, numbered where a track needs several lanes."""
        return tracks.label(self.track) + (f" ({self.overflow + 1})" if self.overflow else "")


_NO_TRACE = (
    "Record it again with: bragg run --data trace; or show its sums as a flame graph: bragg export -f speedscope"
)


def require_slices(profile: Profile) -> None:
    """Refuse to write an empty timeline.

    Raises:
        UsageError: The profile has no slices.
    """
    if not len(profile.slices):
        recorded = profile.run.is_trace
        hint = "No scope, operator or GPU work ran" if recorded else _NO_TRACE
        raise UsageError("this profile has no timeline", hint=hint)


def lanes(profile: Profile) -> Iterator[Lane]:
    """All slices, in lanes by track."""
    slices = profile.slices
    begins = np.searchsorted(slices.track, np.arange(len(profile.tracks) + 1))
    for track in range(len(profile.tracks)):
        rows = np.arange(begins[track], begins[track + 1])
        if len(rows):
            number = _lane_numbers(slices, rows)
            yield from (Lane(track, lane, rows[number == lane]) for lane in range(number.max() + 1))


def _lane_numbers(slices: SliceTable, rows: Int64Array) -> Int32Array:
    """The lane of each slice of a track: the first in which it nests."""
    start = slices.start_ns[rows]
    end = start + slices.duration_ns[rows]
    if _nests(start, end):
        return np.zeros(len(rows), np.int32)
    open_ends: list[list[int]] = []
    return np.array([_nest(open_ends, *span) for span in zip(start.tolist(), end.tolist(), strict=True)], np.int32)


def _nests(start: Int64Array, end: Int64Array) -> bool:
    """Whether all slices fit into one lane: none that begins while another lasts ends after it.

    The latest end among those that begin within each slice is looked up in maxima over 1, 2, 4, … slices.
    """
    first = np.arange(1, len(start) + 1)
    behind = np.searchsorted(start, end)
    size, latest = 1, end
    while (behind - first >= size).any():
        asked = np.flatnonzero((behind - first >= size) & (behind - first < 2 * size))
        highest = np.maximum(latest[first[asked]], latest[behind[asked] - size])
        if (highest > end[asked]).any():
            return False
        latest = np.maximum(latest[:-size], latest[size:])
        size *= 2
    return True


def _nest(open_ends: list[list[int]], start: int, end: int) -> int:
    """Put a slice into the first lane where it fits.

    Args:
        open_ends: For each lane the ends of the slices that enclose the current time, outermost first.
        start: When the slice begins, not before any earlier one.
        end: When it ends.
    """
    for lane, ends in enumerate(open_ends):
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            return lane
    open_ends.append([end])
    return len(open_ends) - 1
