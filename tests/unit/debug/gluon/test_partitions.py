"""A race between partitions names both lines and what an order of them lacks."""

from __future__ import annotations

from contextlib import suppress

import pytest

import bragg.debug
from bragg.debug.faults import KernelFault

pytest.importorskip("triton")
gl = pytest.importorskip("triton.experimental.gluon.language")
if not hasattr(gl, "num_warps"):
    pytest.skip("this Triton has an earlier Gluon", allow_module_level=True)

from tests.kernels.planted import PLANTED  # noqa: E402

# Planted kernel, what is done too early, the earlier access, what the order lacks.
RACES = [
    (
        "partition_that_waits_too_late",
        "read in partition 1 (reads_without_a_wait), which nothing orders after partition 0 (ones_stored) has",
        "smem.store(",
        "partition 1 (reads_without_a_wait) has waited for no barrier before it",
    ),
    (
        "partition_that_arrives_too_early",
        "read in partition 1 (waits_and_reads), which nothing orders after partition 0 (arrives_before_it_stores) has",
        "smem.store(",
        "partition 0 (arrives_before_it_stores) has arrived at no barrier after it",
    ),
    (
        "slot_that_nobody_frees",
        "read in partition 1 (reads_three), which nothing orders after partition 0 (stores_three) has written it",
        "smem.store(",
        "the wait of partition 1 (reads_three) may end by an earlier phase of the barrier",
    ),
    (
        "tile_that_one_of_two_partitions_waits_for",
        "read in partition 2 (is_told_too_early), which nothing orders after partition 0 (loads_a_tile) has",
        "copy_in(",
        "partition 2 (is_told_too_early) has waited for no barrier that tells that this is over",
    ),
    (
        "slot_whose_neighbour_is_waited_for",
        "read in partition 1 (waits_for_the_other_slot), which nothing orders after partition 0 (fills_two_slots) has",
        "smem.store(",
        "has waited for no barrier that partition 0 (fills_two_slots) has arrived at after it",
    ),
]


@pytest.mark.parametrize(("name", "message", "other", "why"), RACES, ids=[one[0] for one in RACES])
def test_race_says_who_where_and_why(name: str, message: str, other: str, why: str) -> None:
    with bragg.debug.check(only=["missing-barrier"]) as report, suppress(KernelFault):
        PLANTED[name].launch()
    (found,) = [one for one in report if one.rule == "missing-barrier"]
    assert message in found.message
    assert found.other is not None
    assert found.other["code"].startswith(other)
    assert why in found.other["why"]
    assert f"  not ordered: {found.other['why']}" in report.lines()
