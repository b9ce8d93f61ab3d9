"""What begins in one passage and ends in another: copies and waits for them, warps at one barrier, turns of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bragg.code.instrument.blocks import Activity
from bragg.code.instrument.passages import Passages
from bragg.code.instrument.segments import Frame, Segment

_KINDS = (
    (Activity.TMA_LOAD, Activity.BARRIER_WAIT),
    (Activity.COPY, Activity.COPY_WAIT),
    (Activity.MMA, Activity.BARRIER_WAIT),  # of Blackwell, which let a barrier arrive
)


@dataclass(frozen=True)
class CopyPairs:
    """Asynchronous copies of a loop, or matrix products that let a barrier arrive, each with the wait for it.

    Attributes:
        begins: Segment of the loop in which they begin.
        ends: Segment in which warps wait for them.
        ahead: Copies that have begun before the first wait.
        latency: float64 [stages], median cycles from the beginning of a copy to the end of the wait for it, by stage of
            the pipeline, which take turns. The copy has arrived by then; when the wait is short, long before.
        waited: float64 [stages], median cycles of the wait.
        count: Copies that were paired.
    """

    begins: Segment
    ends: Segment
    ahead: int
    latency: NDArray[np.float64]
    waited: NDArray[np.float64]
    count: int


class _Pairs(NamedTuple):
    """Copies of one block: how many are ahead; cycles to the end of the wait for each, and of the wait."""

    ahead: int
    latency: NDArray[np.int64]
    waited: NDArray[np.int64]


@dataclass(frozen=True)
class WarpBarrier:
    """A barrier at which the warps of a block meet.

    Attributes:
        segment: It.
        skew: Median cycles from the first warp's coming to the last one's.
        longest: The same of the worst meeting.
        count: How often they met.
    """

    segment: Segment
    skew: float
    longest: int
    count: int


@dataclass(frozen=True)
class LoopTurns:
    """Turns of the loop that takes longest.

    Attributes:
        segment: That is timed first in a turn.
        typical: Median cycles of a turn.
        first: The same of the first turn of each warp.
        longest: Cycles.
        count: Turns.
    """

    segment: Segment
    typical: float
    first: float
    longest: int
    count: int


def copies_of(passages: Passages, segments: Sequence[Segment], warps_of_block: int) -> list[CopyPairs]:
    """Copies with their waits: those that begin first are waited for first.

    The warp that begins copies is the one that waits, or, of specialized warps, another one of its block.

    Args:
        passages: Of whole blocks.
        segments: By number.
        warps_of_block: Warps of a block.
    """
    found = []
    for begins, ends in _KINDS:
        beginning, waiting = _of(segments, begins), _waits(segments, begins, ends)
        in_loop = [each for each in waiting if segments[each].in_loop]
        if len(in_loop) != 1 or not any(segments[each].in_loop for each in beginning):
            continue  # several waits: which copies each is for, the order does not say
        paired = [
            pairs
            for starts, waits in _by_block(passages, beginning, waiting, warps_of_block)
            if (pairs := _paired(passages, segments, starts, waits)) is not None
        ]
        if paired:
            found.append(_summed(paired, segments, beginning, in_loop[0]))
    return found


def meetings_of(passages: Passages, segments: Sequence[Segment], warps_of_block: int) -> list[WarpBarrier]:
    """How far apart the warps of a block come to each barrier for all of them.

    Args:
        passages: Of whole blocks.
        segments: By number.
        warps_of_block: Warps of a block.
    """
    found = []
    for number in _of(segments, Activity.BARRIER):
        skews: list[int] = []
        own = passages.segment == number
        for block in np.unique(passages.warp[own] // warps_of_block):
            rows = [
                np.flatnonzero(own & (passages.warp == warp))
                for warp in range(block * warps_of_block, (block + 1) * warps_of_block)
            ]
            met = min(map(len, rows))  # a warp whose memory was full tells fewer
            if met:
                came = np.stack([passages.start[each[:met]] for each in rows])
                skews += (came.max(0) - came.min(0)).tolist()
        if skews and warps_of_block > 1:
            found.append(WarpBarrier(segments[number], float(np.median(skews)), max(skews), len(skews)))
    return found


def turns_of(passages: Passages, frames: Sequence[Frame]) -> LoopTurns | None:
    """Turns of the loop in which warps spend most of their time; None: no loop had two of them.

    Args:
        passages: Of single warps.
        frames: Of the kernel, by number.
    """
    found: list[tuple[int, LoopTurns]] = []
    number = 0
    for frame in frames:
        if frame.segments and frame.segments[0].in_loop:
            own = passages.segment == number
            starts = [passages.start[own & (passages.warp == warp)] for warp in np.unique(passages.warp[own])]
            took = [np.diff(each) for each in starts if len(each) > 1]
            if took:
                every = np.concatenate(took)
                first = float(np.median([each[0] for each in took]))
                turns = LoopTurns(frame.segments[0], float(np.median(every)), first, int(every.max()), len(every))
                found.append((int(every.sum()), turns))
        number += len(frame.segments)
    return max(found, key=lambda each: each[0])[1] if found else None


def _of(segments: Sequence[Segment], activity: Activity, *, in_loop: bool = False) -> list[int]:
    return [
        number for number, each in enumerate(segments) if each.does == activity.value and (each.in_loop or not in_loop)
    ]


def _waits(segments: Sequence[Segment], begins: Activity, ends: Activity) -> list[int]:
    """Waits for what begins in the loop: at its barrier, where that is known, also outside of the loop."""
    barriers = {segments[each].barrier for each in _of(segments, begins, in_loop=True)}
    own = [each for each in _of(segments, ends) if barriers == {segments[each].barrier} != {None}]
    if any(segments[each].in_loop for each in own):
        return own
    return [] if begins is Activity.MMA else _of(segments, ends, in_loop=True)


def _by_block(
    passages: Passages, beginning: Sequence[int], waiting: Sequence[int], warps_of_block: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows of the passages of one warp that begins copies and of one that waits for them, block by block."""
    begins, waits = np.isin(passages.segment, beginning), np.isin(passages.segment, waiting)
    found = []
    for block in np.unique(passages.warp // warps_of_block):
        own = passages.warp // warps_of_block == block
        starters, waiters = (np.unique(passages.warp[own & each]) for each in (begins, waits))
        if not len(starters) or not len(waiters):
            continue
        others = np.setdiff1d(waiters, starters)
        waiter = others[0] if len(others) else starters[0]
        found.append(
            (
                np.flatnonzero(begins & (passages.warp == starters[0])),
                np.flatnonzero(waits & (passages.warp == waiter)),
            )
        )
    return found


def _paired(
    passages: Passages, segments: Sequence[Segment], starts: NDArray[np.int64], waits: NDArray[np.int64]
) -> _Pairs | None:
    """Copies of one block; None: the order does not say which wait is for which."""
    in_loop = np.array([segments[each].in_loop for each in passages.segment[starts]], bool)
    # In a turn of the loop each operand may have a copy of its own. The last turn may not have been told whole.
    is_turn = np.array([segments[each].in_loop for each in passages.segment[waits]], bool)
    n_turns = int(is_turn.sum())
    each_turn = round(in_loop.sum() / n_turns) if n_turns else 0
    if not each_turn or abs(in_loop.sum() - each_turn * n_turns) > each_turn:
        return None
    first = passages.start[starts[::each_turn]]
    n_pairs = min(len(first), len(waits))
    ended = passages.end[waits[:n_pairs]]
    since = ended - first[:n_pairs]
    if (since < 0).any():
        return None
    ahead = int((~in_loop).sum()) // each_turn - int(is_turn.argmax())
    return _Pairs(max(ahead, 0), since, ended - passages.start[waits[:n_pairs]])


def _summed(paired: Sequence[_Pairs], segments: Sequence[Segment], beginning: Sequence[int], waiting: int) -> CopyPairs:
    ahead = paired[0].ahead

    def medians(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        by_stage = [np.concatenate([each[stage :: ahead + 1] for each in columns]) for stage in range(ahead + 1)]
        return np.array([float(np.median(each)) if len(each) else 0.0 for each in by_stage])

    begins = next(segments[each] for each in beginning if segments[each].in_loop)
    latency, waited = medians([each.latency for each in paired]), medians([each.waited for each in paired])
    return CopyPairs(begins, segments[waiting], ahead, latency, waited, sum(len(each.latency) for each in paired))
