"""Records of kernels as a GPU would store them, and Proton's tree and trace of them."""

from __future__ import annotations

import numpy as np

from bragg.proton.inside.records import Passage, read_records
from bragg.proton.inside.results import Launch, Results

WARPS, ROOM_BYTES = 4, 64
BLOCK_BYTES = 40 + 4 * WARPS + 2 * ROOM_BYTES
LAUNCH = Launch(("step", "add"), {0: "kernel", 1: "load_x"}, {1: 0}, 2 * WARPS, 0)


def record(scope: int, clock: int, *, is_end: bool = False) -> list[int]:
    return [int(is_end) << 31 | scope << 23 | clock >> 32, clock % 2**32]


def block(number: int, by_warp: dict[int, list[list[int]]], *, start_ns: int = 1000) -> bytes:
    """Records of warps 0 and 2; the oldest ones are overwritten."""
    words = np.zeros(BLOCK_BYTES // 4, np.uint32)
    words[:4] = 0xDEADBEEF, number, 7, 2 * ROOM_BYTES
    words[4:10] = np.array([start_ns, start_ns + 500, start_ns + 600], np.uint64).view("<u4")
    for index, warp in enumerate((0, 2)):
        words[10 + warp] = 2 * len(by_warp.get(warp, []))
        for at, each in enumerate(by_warp.get(warp, [])):
            place = 10 + WARPS + index * ROOM_BYTES // 4 + at % (ROOM_BYTES // 8) * 2
            words[place : place + 2] = each
    return words.tobytes()


NESTED = [
    record(0, 2**32 - 5),
    record(1, 2**32 + 5),
    record(1, 2**32 + 25, is_end=True),
    record(0, 2**32 + 95, is_end=True),
]


def test_passages_are_read_across_the_halves_of_the_clock() -> None:
    image = block(0, {0: NESTED}) + bytes(BLOCK_BYTES) + block(2, {2: NESTED[1:3]})
    first, last = read_records(image, BLOCK_BYTES, WARPS, [0, 2])
    assert (first.block, first.multiprocessor, first.start_ns, first.last_ns, first.end_ns) == (0, 7, 1000, 1500, 1600)
    assert first.passages == (Passage(1, 0, 2**32 + 5, 2**32 + 25), Passage(0, 0, 2**32 - 5, 2**32 + 95))
    assert (last.block, last.passages) == (2, (Passage(1, 2, 2**32 + 5, 2**32 + 25),))


def test_of_a_full_buffer_the_newest_records_are_read_in_order() -> None:
    records = [record(3, 100 * at + 50 * is_end, is_end=bool(is_end)) for at in range(6) for is_end in (0, 1)]
    (found,) = read_records(block(0, {0: records[:11]}), BLOCK_BYTES, WARPS, [0, 2])
    # Room for 8 of 11: those of the passages from 2 on, the first of which has lost its begin.
    assert [passage.start for passage in found.passages] == [200, 300, 400]
    assert all(passage.end - passage.start == 50 for passage in found.passages)


def test_32_bits_of_the_clock_may_begin_anew() -> None:
    records = [record(0, 2**32 - 10), [1 << 31, 30]]
    (found,) = read_records(block(0, {0: records}), BLOCK_BYTES, WARPS, [0, 2])
    assert found.passages[0].end - found.passages[0].start == 40


def test_what_records_cost_is_taken_off() -> None:
    (found,) = read_records(block(0, {0: NESTED}), BLOCK_BYTES, WARPS, [0, 2], record_cycles=7)
    assert [passage.end - passage.start for passage in found.passages] == [20 - 7, 100 - 3 * 7]


def test_the_tree_has_scopes_below_kernels_and_sums_of_all_launches() -> None:
    results = Results(keeps_events=False, devices={"0": {"arch": "90"}})
    blocks = list(read_records(block(0, {0: NESTED}) + block(1, {0: NESTED}), BLOCK_BYTES, WARPS, [0, 2]))
    results.add(LAUNCH, blocks)
    results.add(LAUNCH, blocks[:1])
    root, devices = results.tree()
    assert devices == {"CUDA": {"0": {"arch": "90"}}}
    (step,) = root["children"]
    (kernel,) = step["children"]
    (outer,) = kernel["children"]
    (inner,) = outer["children"]
    assert [each["frame"]["name"] for each in (step, kernel, outer, inner)] == ["step", "add", "kernel", "load_x"]
    assert outer["metrics"] == {"cycles": 300, "normalized_cycles": 37.5, "device_id": "0", "device_type": "1"}
    assert (inner["metrics"]["cycles"], kernel["metrics"]) == (60, {})


def test_the_trace_has_an_event_for_each_passage_outer_ones_first() -> None:
    results = Results(keeps_events=True)
    image = block(0, {0: NESTED, 2: NESTED}) + block(1, {0: NESTED}, start_ns=1400)
    results.add(LAUNCH, list(read_records(image, BLOCK_BYTES, WARPS, [0, 2])))
    events = results.trace()["traceEvents"]
    assert [each["name"] for each in events] == ["kernel", "load_x"] * 3
    assert [each["tid"] for each in events[:4]] == ["warp 0 (line 0)"] * 2 + ["warp 2 (line 0)"] * 2
    assert (events[1]["ts"], events[1]["dur"], events[4]["ts"]) == (0.01, 0.02, 0.4)
    assert {each["pid"] for each in events} == {"add Core7 CTA0", "add Core7 CTA1"}
    assert events[0]["args"]["call_stack"] == ["ROOT", "step", "add"]
    assert events[4]["args"]["Init Time (ns)"] == 400
    assert events[0]["args"]["Finalization Time (ns)"] == 100


def test_scopes_that_overlap_have_lines_of_their_own() -> None:
    results = Results(keeps_events=True)
    records = [record(0, 0), record(1, 10), record(0, 20, is_end=True), record(1, 30, is_end=True), record(0, 40)]
    image = block(0, {0: [*records, record(0, 50, is_end=True)]})
    results.add(LAUNCH, list(read_records(image, BLOCK_BYTES, WARPS, [0, 2])))
    assert [each["tid"][-2] for each in results.trace()["traceEvents"]] == ["0", "1", "0"]
