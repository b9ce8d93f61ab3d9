"""Where the blocks of a launch ran, from the headers of their warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bragg.code.instrument.blocks import Value
from bragg.code.instrument.rewriting import HEADER_BYTES, MAGIC, Instrumented
from bragg.code.instrument.segments import Event, Frame, ScopeValue, Segment
from bragg.code.instrument.storing import FRAME, WARP_BYTES
from bragg.code.source_place import SourcePlace
from bragg.model.kernels.inside import InsideKernel
from bragg.model.kernels.inside_rows import inside_kernels
from bragg.record.instrument.buffers import Plan
from bragg.record.instrument.summing import summed

GHZ = 2


def header(block: int, multiprocessor: int, start_ns: int, end_ns: int) -> bytes:
    words = np.zeros(HEADER_BYTES // 4, np.uint32)
    words[:8] = np.array([start_ns, start_ns * GHZ, end_ns, end_ns * GHZ], np.uint64).view("<u4")
    words[8:12] = MAGIC, multiprocessor, block, 0
    return words.tobytes()


def told(blocks: list[tuple[int, int, int]], shift: int = 0) -> dict[str, Any]:
    """Blocks of two warps, each with its multiprocessor, start and end."""
    images = [header(number, *block) for number, block in enumerate(blocks) for _ in range(2)]
    plan = Plan(len(blocks) << shift, 2, shift, shift)
    return summed(b"".join(images), b"", Instrumented("", ()), plan, has_timeline=True)


def placed(blocks: list[tuple[int, int, int]], shift: int = 0) -> InsideKernel:
    (kernel,) = inside_kernels([{"kernel": "k", "level": "blocks", **told(blocks, shift)}])
    return kernel


def test_blocks_that_follow_each_other_at_once_are_one_at_a_time() -> None:
    kernel = placed([(0, 100, 200), (1, 100, 200), (0, 200, 300), (1, 200, 300)])
    assert (kernel.placement.resident, kernel.waves, kernel.placement.tail_share) == (1, 2.0, 0.0)
    assert kernel.placement.busy_ns == (200, 200)
    assert kernel.placement.imbalance == 0


def test_blocks_that_overlap_share_a_multiprocessor() -> None:
    kernel = placed([(0, 100, 200), (0, 110, 210), (1, 100, 190), (1, 105, 205), (0, 200, 300)])
    assert (kernel.placement.resident, kernel.waves) == (2, 1.25)
    # From 200 to 300, of 4 places: one is used whole, two for 10 and 5 ns.
    assert kernel.placement.tail_share == pytest.approx((400 - 100 - 10 - 5) / (4 * 200))
    assert kernel.placement.imbalance == pytest.approx(300 / 245 - 1)


def test_where_only_some_blocks_told_nothing_is_said_of_waves() -> None:
    kernel = placed([(0, 100, 200), (1, 100, 200)], shift=1)
    assert (kernel.blocks, kernel.waves, kernel.placement.multiprocessors) == (4, None, 2)


def test_the_timeline_has_the_blocks_in_the_order_of_their_beginning() -> None:
    timeline = told([(0, 110, 200), (1, 100, 180)])["timeline"]
    assert timeline == {
        "span_ns": 100,
        "blocks_left_out": 0,
        "block": [1, 0],
        "multiprocessor": [1, 0],
        "start_ns": [0, 10],
        "duration_ns": [80, 90],
    }


def test_the_timeline_has_the_passages_of_the_first_warps() -> None:
    frames = (
        Frame(
            (Segment("load", False, (SourcePlace("/src/k.py", 3, 0, "k"),), True, 0, 1),),
            ((5, False), (5, True)),
            (6, False),
        ),
    )
    memory = np.zeros((4, WARP_BYTES // 4), np.uint32)
    images = []
    for slot in range(4):
        words = np.frombuffer(header(slot // 2, 6, 100, 200), np.uint32).copy()
        words[11] = 16
        images.append(words.tobytes())
        start = 100 * GHZ + 10 * slot
        memory[slot, :4] = FRAME | 2, start, start + 30, FRAME | 2
    timeline = summed(
        b"".join(images), memory.tobytes(), Instrumented("", frames), Plan(2, 2, 0, 0), has_timeline=True
    )["timeline"]
    assert timeline["warps"] == [[0, 0, 6], [0, 1, 6], [1, 0, 6], [1, 1, 6]]
    assert timeline["names"] == [["load", "/src/k.py", 3]]
    assert (timeline["warp"], timeline["segment"]) == ([0, 1, 2, 3], [0, 0, 0, 0])
    assert (timeline["passage_start_ns"], timeline["passage_ns"]) == ([0, 5, 10, 15], [15, 15, 15, 15])


def test_values_of_a_scope_name_its_passages_and_are_added_up() -> None:
    place = (SourcePlace("/src/k.py", 3, 0, "k"),)
    given = ScopeValue("load", place, Value("%r1", "i32"))
    frames = (
        Frame((Segment("load", False, place, True, 0, 1),), ((5, False), (5, True)), (6, False), (given,)),
        Frame((), (), (9, False), (given,)),
    )
    memory = np.zeros((1, WARP_BYTES // 4), np.uint32)
    words = np.frombuffer(header(0, 6, 100, 200), np.uint32).copy()
    words[11] = 48
    for turn in range(2):
        memory[0, 4 * turn : 4 * turn + 4] = FRAME | 3, 200 + 20 * turn, 210 + 20 * turn, turn + 6
    memory[0, 8:12] = FRAME | 1 << 8 | 1, 2**32 - 1, FRAME | 1 << 8 | 1, FRAME | 1 << 8 | 1
    found = summed(words.tobytes(), memory.tobytes(), Instrumented("", frames), Plan(1, 1, 0, 0), has_timeline=True)
    at = [{"file": "/src/k.py", "line": 3, "function": "k"}]
    assert found["values"] == [
        {"scope": "load", "place": at, "count": 3, "not_finite": 0, "total": 12.0, "least": -1.0, "greatest": 7.0}
    ]
    timeline = found["timeline"]
    assert timeline["names"] == [["load = 6", "/src/k.py", 3], ["load = 7", "/src/k.py", 3]]
    assert timeline["segment"] == [0, 1]


def test_events_have_latencies_by_value_and_intervals_in_the_timeline() -> None:
    place, end = ((SourcePlace("/src/k.py", line, 0, "k"),) for line in (3, 9))
    value = (ScopeValue("copy", place, Value("%r1", "i32")),)
    frames = tuple(
        Frame((), ((5 + line, False),), (6 + line, True), value, Event("copy", line == 0, (place, end)[line]))
        for line in (0, 1)
    )
    memory = np.zeros((2, WARP_BYTES // 4), np.uint32)
    images = []
    for warp, clocks in enumerate(((210, 220, 230), (260, 290))):  # the third event does not end
        words = np.frombuffer(header(0, 6, 100, 200), np.uint32).copy()
        words[11] = 16 * len(clocks)
        images.append(words.tobytes())
        for turn, clock in enumerate(clocks):
            memory[warp, 4 * turn : 4 * turn + 3] = FRAME | warp << 8 | 2, clock, turn
    plan = Plan(1, 2, 0, 0)
    found = summed(b"".join(images), memory.tobytes(), Instrumented("", frames), plan, has_timeline=True)
    (event,) = found["events"]
    assert (event["event"], event["count"], event["total"], event["typical"], event["longest"]) == (
        "copy",
        2,
        120,
        60,
        70,
    )
    assert (event["unmatched"], event["place"][0]["line"], event["end_place"][0]["line"]) == (1, 3, 9)
    assert [(each["value"], each["total"]) for each in event["by_value"]] == [(0, 50), (1, 70)]
    timeline = found["timeline"]
    assert timeline["event_names"] == [["copy = 0", "/src/k.py", 3], ["copy = 1", "/src/k.py", 3]]
    assert (timeline["event"], timeline["event_start_ns"], timeline["event_ns"]) == ([0, 1], [5, 10], [25, 35])
    (kernel,) = inside_kernels([{"kernel": "k", "level": "scopes", **found}])
    assert [(each.name, each.latency.total, each.by_value[1][1].longest) for each in kernel.events] == [
        ("copy", 120, 70)
    ]


def test_events_of_few_warps_are_those_of_whole_blocks() -> None:
    """Three of four warps have frames: 16 rows would end within a block."""
    value = (ScopeValue("copy", (), Value("%r1", "i32")),)
    frames = tuple(Frame((), ((5, False),), (6, True), value, Event("copy", begins, ())) for begins in (True, False))
    memory = np.zeros((4 * 6, WARP_BYTES // 4), np.uint32)
    images = []
    for slot in range(4 * 6):
        words = np.frombuffer(header(slot // 4, 6, 100, 200), np.uint32).copy()
        words[11] = 16 * (slot % 4 < 3)
        images.append(words.tobytes())
        memory[slot, :3] = FRAME | (slot % 4 == 2) << 8 | 2, 210 + slot % 4, 7
    found = summed(b"".join(images), memory.tobytes(), Instrumented("", frames), Plan(6, 4, 0, 0))
    (event,) = found["events"]
    assert (event["count"], event["unmatched"], event["typical"]) == (5, 0, 2)


def test_frames_of_sampled_warps_and_blocks_are_those_of_their_headers() -> None:
    frames = (Frame((Segment("load", False, (), False, 0, 1),), ((5, False), (5, True)), (6, False)),)
    plan = Plan(9, 4, 0, 1, 3, (0, 2))
    images, memory = [], []
    for block in range(9):
        for warp in range(4):
            words = np.frombuffer(header(block, 0, 100, 200), np.uint32).copy()
            words[11] = 16
            if block < 3 or block % 2:  # the first wave, and every other block after it
                if warp in (0, 2):
                    took = 1 + block + 10 * warp
                    stored = np.zeros(WARP_BYTES // 4, np.uint32)
                    stored[:4] = FRAME | 2, 1000, 1000 + took, FRAME | 2
                    memory.append(stored)
            else:
                words[11] = 0
            images.append(words.tobytes())
    found = summed(b"".join(images), np.stack(memory).tobytes(), Instrumented("", frames), plan)
    (segment,) = found["segments"]
    assert (segment["count"], found["warps_with_frames"], found["damaged_warps"]) == (12, 12, 0)
    own = sum(1 + block for block in (0, 1, 2, 3, 5, 7))
    assert segment["cycles"] == [own, 0, own + 6 * 20, 0]
    assert found["meetings"] == []
    assert found["covered_by_warp"] == [6 * 200, 0, 6 * 200, 0]
