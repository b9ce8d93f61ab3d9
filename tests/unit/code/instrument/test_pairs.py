"""Copies and the waits for them; warps at a barrier."""

from __future__ import annotations

import numpy as np

from bragg.code.instrument.blocks import Activity
from bragg.code.instrument.pairs import copies_of, meetings_of, turns_of
from bragg.code.instrument.passages import Passages
from bragg.code.instrument.segments import Frame, Segment

BEFORE, BEGIN, WAIT, BARRIER = range(4)
SEGMENTS = [
    Segment(Activity.TMA_LOAD.value, False, (), False, 0, 1),
    Segment(Activity.TMA_LOAD.value, False, (), True, 0, 1),
    Segment(Activity.BARRIER_WAIT.value, True, (), True, 1, 2),
    Segment(Activity.BARRIER.value, True, (), False, 0, 1),
]


def passages(*rows: tuple[int, int, int, int]) -> Passages:
    """Of warp, segment, start and end; in the order of each warp."""
    warp, segment, start, end = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Passages(warp, segment, start, end, start, end, np.full(len(warp), np.nan))


def frame(*segments: Segment) -> Frame:
    return Frame(segments, tuple((each.start, False) for each in segments), (9, True))


def test_turns_are_those_of_the_loop_that_takes_longest() -> None:
    frames = [frame(SEGMENTS[BEFORE]), frame(SEGMENTS[BEGIN], SEGMENTS[WAIT]), frame(SEGMENTS[BARRIER])]
    once = (0, 0, 5, 6)
    product = [(warp, 1, at, at + 5) for warp in (0, 1) for at in (100, 400 + warp, 500, 600, 700)]
    short = [(0, 3, at, at + 1) for at in (800, 810, 820)]
    turns = turns_of(passages(once, *product, *short), frames)
    assert turns is not None
    assert turns.segment is SEGMENTS[BEGIN]
    assert (turns.typical, turns.first, turns.longest, turns.count) == (100, 300.5, 301, 8)
    assert turns_of(passages(once), frames) is None
    assert turns_of(passages(once, (0, 1, 20, 30)), frames) is None


def loop(warp: int, turns: int, each: int = 1) -> list[tuple[int, int, int, int]]:
    """Two copies ahead; a copy takes 250 cycles, or, each second one, 350; a turn 100."""
    rows = [(warp, BEFORE, stage * 10 + copy, stage * 10 + copy + 1) for stage in range(2) for copy in range(each)]
    for turn in range(turns):
        at = 1000 + turn * 100
        rows += [(warp, WAIT, at, at + 20 + 10 * (turn % 3))]
        rows += [(warp, BEGIN, at + 50 + copy, at + 51 + copy) for copy in range(each)]
    return rows


def test_copies_are_waited_for_in_their_order_by_stage() -> None:
    (copies,) = copies_of(passages(*loop(0, 12)), SEGMENTS, 1)
    assert (copies.ahead, copies.count) == (2, 12)
    assert copies.begins is SEGMENTS[BEGIN]
    assert copies.ends is SEGMENTS[WAIT]
    # The third copy begins at 1050, and its wait ends at 1240.
    assert copies.latency.tolist() == [170.0, 180.0, 190.0]
    assert copies.waited.tolist() == [20.0, 30.0, 40.0]


def test_two_operands_are_copied_in_each_turn() -> None:
    (copies,) = copies_of(passages(*loop(0, 9, each=2)), SEGMENTS, 1)
    assert (copies.ahead, copies.count) == (2, 9)
    assert copies.latency.tolist() == [170.0, 180.0, 190.0]


def test_a_specialized_warp_begins_what_another_one_waits_for() -> None:
    rows = loop(0, 12)
    split = [(0 if segment != WAIT else 1, segment, start, end) for _, segment, start, end in rows]
    (copies,) = copies_of(passages(*split), SEGMENTS, 2)
    assert copies.latency.tolist() == [170.0, 180.0, 190.0]


def test_where_the_order_does_not_say_it_nothing_is_told() -> None:
    assert copies_of(passages(*loop(0, 12), (0, BEGIN, 5000, 5001), (0, BEGIN, 5001, 5002)), SEGMENTS, 1) == []
    assert copies_of(passages((0, BEFORE, 0, 1), (0, WAIT, 5, 6)), SEGMENTS, 1) == []
    several = [*SEGMENTS, SEGMENTS[WAIT]]
    assert copies_of(passages(*loop(0, 12)), several, 1) == []


def test_warps_come_to_a_barrier_one_after_another() -> None:
    rows = [(0, BARRIER, 100, 130), (0, BARRIER, 300, 360), (1, BARRIER, 120, 130), (1, BARRIER, 350, 360)]
    alone = [(2, BARRIER, 10, 20)]
    (meeting,) = meetings_of(passages(*rows, *alone), SEGMENTS, 2)
    assert (meeting.skew, meeting.longest, meeting.count) == (35.0, 50, 2)
    assert meetings_of(passages(*rows), SEGMENTS, 1) == []


def test_products_of_blackwell_are_waited_for_at_the_barrier_that_they_let_arrive() -> None:
    tma, mma = 98304, 98336
    segments = [
        Segment(Activity.TMA_LOAD.value, False, (), False, 0, 1, tma),
        Segment(Activity.BARRIER_WAIT.value, True, (), False, 0, 1, tma),
        Segment(Activity.MMA.value, False, (), False, 0, 1, mma),
        Segment(Activity.BARRIER_WAIT.value, True, (), True, 0, 1, mma),
        Segment(Activity.TMA_LOAD.value, False, (), True, 1, 2, tma),
        Segment(Activity.BARRIER_WAIT.value, True, (), True, 2, 3, tma),
        Segment(Activity.MMA.value, False, (), True, 3, 4, mma),
        Segment(Activity.BARRIER_WAIT.value, True, (), False, 0, 1, mma),
    ]
    rows = [(0, 0, 0, 1), (0, 0, 10, 11), (0, 1, 50, 300), (0, 2, 310, 320), (0, 0, 330, 331)]
    for turn in range(6):
        at = 1000 + 100 * turn
        rows += [(0, 3, at, at + 30), (0, 4, at + 40, at + 41), (0, 5, at + 50, at + 55), (0, 6, at + 60, at + 62)]
    rows.append((0, 7, 1700, 1720))
    copies, products = copies_of(passages(*rows), segments, 1)
    assert (copies.begins, copies.ends, copies.ahead, copies.count) == (segments[4], segments[5], 2, 7)
    # The fourth copy begins at 1040; the wait for it, the third one in the loop, ends at 1255.
    assert copies.latency[0] == 215.0  # of 300, 1255 - 1040 and 1555 - 1340
    assert (products.begins, products.ends, products.ahead, products.count) == (segments[6], segments[3], 1, 7)
    assert products.waited.tolist() == [30.0, 30.0]
    assert products.latency[1] == 70.0  # from 1060 to 1130
