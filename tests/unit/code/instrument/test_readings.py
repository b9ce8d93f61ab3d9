"""Clock readings as a GPU would store them, and what is read from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bragg.code.instrument.blocks import Value
from bragg.code.instrument.passages import passages_of
from bragg.code.instrument.readings import launches_in, read_frames, read_headers
from bragg.code.instrument.rewriting import HEADER_BYTES, Instrumented
from bragg.code.instrument.segments import Frame, ScopeValue, Segment
from bragg.code.instrument.storing import FRAME, WARP_BYTES, SharedMemory
from tests.support.clock_readings import FRAMES, KERNEL, Warp, launch


@pytest.mark.parametrize("passages", [[0, 1, 5, 17], [1000], [2000, 3, 1022, 1023, 1024, 1025, 1021, 1020]])
def test_what_was_stored_is_read(passages: list[int]) -> None:
    warps, truth = launch(passages)
    headers = read_headers(b"".join(warp.header(number) for number, warp in enumerate(warps)))
    read = read_frames(b"".join(warp.memory.tobytes() for warp in warps), KERNEL, headers, len(warps))
    assert read.cycles.tolist() == truth.tolist()
    assert read.damaged == 0
    assert read.count[0] == len(warps)
    whole = [warp.at <= WARP_BYTES - 112 for warp in warps]
    spans = [warp.clock - warp.start for warp in warps]
    assert [int(each) for each, is_whole in zip(read.covered, whole, strict=True) if is_whole] == [
        span for span, is_whole in zip(spans, whole, strict=True) if is_whole
    ]
    assert (read.covered <= spans).all()
    assert (read.covered >= truth.sum(axis=0)).all()


def test_of_a_long_loop_the_first_passages_fit_into_shared_memory() -> None:
    store = SharedMemory(2, 1024)
    warps, truth = launch([3, 1000], store=store)
    for warp in warps:
        assert warp.memory[store.warp_bytes // 4 :].max() == 0
        warp.memory[warp.at // 4 : store.warp_bytes // 4] = FRAME | 1 << 8 | 2  # what was in shared memory before
    headers = read_headers(b"".join(warp.header(number) for number, warp in enumerate(warps)))
    image = b"".join(warp.memory.tobytes() for warp in warps)
    read = read_frames(image, Instrumented("", FRAMES, store), headers, 2)
    assert (read.damaged, read.cycles.tolist()) == (0, truth.tolist())
    assert read.count.tolist() == [2, 2, 3 + (1024 - 64 - 16) // 16 + 1]
    assert len(passages_of(image, Instrumented("", FRAMES, store), headers, [1]).warp) == 2 + 60


def valued(kind: str, scope: str = "load") -> ScopeValue:
    return ScopeValue(scope, (), Value("%r1", kind))


def test_values_of_scopes_are_read_beside_the_clocks() -> None:
    segments = (Segment("load", False, (), True, 0, 1), Segment("store", False, (), True, 1, 2))
    frames = [
        Frame(segments, ((1, False), (1, True), (2, True)), (3, True), (valued("i32"), valued("f32", "other"))),
        Frame((), (), (6, True), (valued("f32"),)),
        Frame(segments[:1], ((7, False), (7, True)), (8, True)),
    ]
    warp = Warp(1000)
    bits = np.array([0.25, np.nan], np.float32).view(np.uint32).tolist()
    warp.frame(2, [1000, 1010])
    warp.frame(0, [1010, 1020, 1040, 2**32 - 3, bits[0]])
    warp.frame(0, [1050, 1060, 1080, 7, bits[1]])
    warp.frame(1, [bits[0]])
    warp.frame(2, [1090, 1100])
    warp.clock = 1100
    headers, image = read_headers(warp.header(0)), warp.memory.tobytes()
    read = read_frames(image, Instrumented("", frames), headers, 1)
    assert (read.damaged, read.count.tolist(), read.cycles[:, 0].tolist()) == (0, [2, 2, 2], [20, 40, 20])
    assert [(each.of.scope, each.count, each.total, each.least, each.greatest) for each in read.values] == [
        ("load", 2, 4.0, -3.0, 7.0),
        ("other", 1, 0.25, 0.25, 0.25),
        ("load", 1, 0.25, 0.25, 0.25),
    ]
    assert [each.not_finite for each in read.values] == [0, 1, 0]
    passages = passages_of(image, Instrumented("", frames), headers, [0])
    assert passages.segment.tolist() == [2, 0, 1, 0, 1, 2]
    assert [None if math.isnan(each) else each for each in passages.value] == [None, -3, None, 7, None, 0.25]


def test_headers_of_warps_that_did_not_end_are_left_out() -> None:
    warps, _ = launch([1, 2, 3])
    image = warps[0].header(0) + bytes(HEADER_BYTES) + warps[2].header(2)
    headers = read_headers(image)
    assert headers.slot.tolist() == [0, 2]
    assert headers.block.tolist() == [0, 2]
    assert headers.start.tolist() == [2**32 - 50] * 2


def test_memory_that_holds_something_else_is_told_and_not_counted() -> None:
    warps, truth = launch([3, 3])
    warps[1].memory[4] = 7
    headers = read_headers(b"".join(warp.header(number) for number, warp in enumerate(warps)))
    read = read_frames(b"".join(warp.memory.tobytes() for warp in warps), KERNEL, headers, 2)
    assert read.damaged == 1
    assert read.cycles[:, 0].tolist() == truth[:, 0].tolist()
    assert read.cycles[2, 1] == 0


def test_passages_of_single_warps_are_what_was_stored() -> None:
    warps, _ = launch([3, 1, 2000])
    headers = read_headers(b"".join(warp.header(number) for number, warp in enumerate(warps)))
    image = b"".join(warp.memory.tobytes() for warp in warps)
    read = read_frames(image, KERNEL, headers, len(warps))
    found = passages_of(image, KERNEL, headers, [0, 2])
    assert set(found.warp.tolist()) == {0, 2}
    for warp in (0, 2):
        own = found.warp == warp
        # Two cycles are a nanosecond, and each time is cut.
        for segment in range(3):
            chosen = own & (found.segment == segment)
            spent_ns = int((found.end_ns - found.start_ns)[chosen].sum())
            assert abs(spent_ns - read.cycles[segment, warp] / 2) <= chosen.sum()
        assert (np.diff(found.start_ns[own]) >= 0).all()
        assert found.start_ns[own][0] == 10
    assert (found.warp == 0).sum() == 2 + 3


def test_what_readings_cost_is_taken_off() -> None:
    warps, truth = launch([3, 5])
    plain = read_headers(b"".join(warp.header(number) for number, warp in enumerate(warps)))
    costly = read_headers(b"".join(warp.header(number, 1) for number, warp in enumerate(warps)))
    image = b"".join(warp.memory.tobytes() for warp in warps)
    before, after = (read_frames(image, KERNEL, headers, 2) for headers in (plain, costly))
    passages = [2, 2, 3 + 5]  # each has one reading's cost in it
    assert (truth.sum(axis=1) - after.cycles.sum(axis=1)).tolist() == passages
    assert after.longest.tolist() == [each - 1 for each in before.longest.tolist()]
    assert (before.read_cycles, before.clock_cycles) == (0, 0)
    assert (after.read_cycles, after.clock_cycles) == (1, 2 * 3 + 8 * 2)


def test_launches_that_stored_headers_are_counted_once_all_warps_have_ended() -> None:
    warp = Warp(100)
    warp.clock = 900
    begun_again = np.frombuffer(warp.header(1, launches=4), np.uint32).copy()
    begun_again[0] = 2000
    assert launches_in(bytes(3 * HEADER_BYTES)) == 0
    assert launches_in(warp.header(0, launches=4) + warp.header(1, launches=4)) == 4
    assert launches_in(warp.header(0, launches=5) + warp.header(1, launches=4)) is None
    assert launches_in(warp.header(0, launches=4) + begun_again.tobytes()) is None
