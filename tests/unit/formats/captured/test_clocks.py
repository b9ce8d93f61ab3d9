"""What clocks inside of kernels said, in the tree and in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bragg.formats.captured.clocks import with_clocks
from bragg.formats.limits import Limits
from bragg.model import Profile
from bragg.model.kernels.inside_rows import inside_kernels
from bragg.views.text.clock_facts import clock_lines
from tests.support.profiles import profile_from_text

KERNEL = "matmul<w4 s3 f16>"
TREE = f"""root
  step
    {KERNEL} 100ms x10 @0
    {KERNEL} (with clocks) 20ms x2 @0
  other
    {KERNEL} (with clocks) 60ms x6 @0"""


def stretch(does: str, line: int, cycles: list[int], *, waits: bool = False, inlined: int = 0) -> dict[str, Any]:
    places = [{"file": "/src/standard.py", "line": inlined, "function": "sum"}] if inlined else []
    place = [*places, {"file": "/src/matmul.py", "line": line, "function": "matmul"}]
    return {"does": does, "waits": waits, "place": place, "in_loop": True, "count": 8, "longest": 90, "cycles": cycles}


MEASURED = {
    "kernel": KERNEL,
    "level": "everything",
    "refused": [],
    "pairs": 6,
    "plain_ns": 1000.0,
    "timed_ns": 1020.0,
    "registers": [90, 96],
    "blocks": 128,
    "warps": 4,
    "warps_with_frames": 256,
    "covered_cycles": 10_000,
    "warp_cycles": 10_000,
    "block_ns": [80.0, 100.0, 140.0],
    "segments": [
        stretch("wait for matrix products", 20, [3000, 2000], waits=True),
        stretch("begin matrix products", 20, [500, 500]),
        stretch("wait for matrix products", 20, [600, 400], waits=True, inlined=191),
    ],
}


def measured(*rows: dict[str, Any]) -> Profile:
    profile = profile_from_text(TREE)
    return with_clocks(replace(profile, meta={**profile.meta, "inside_kernels": list(rows)}), Limits(1 << 30))


def test_cycles_stand_below_the_lines_of_the_launches_with_clocks() -> None:
    profile = measured(MEASURED)
    cycles = profile.inclusive("warp_cycles")
    assert cycles[0] == 10_000
    assert profile.own("warp_cycles").sum() == 10_000
    assert profile.inclusive("warp_wait_cycles")[0] == 6000
    tree = profile.tree
    by_name = {tree.frames.name[tree.frame[node]]: int(cycles[node]) for node in range(len(tree)) if cycles[node]}
    assert by_name["other"] == 10_000  # where most of the launches with clocks are
    assert "step" not in by_name
    assert by_name["begin matrix products"] == 1000
    assert by_name["<between what has clocks>"] == 3000
    lines = {
        int(tree.frames.line[tree.frame[node]]): int(cycles[node])
        for node in range(len(tree))
        if cycles[node] and tree.frames.file[tree.frame[node]]
    }
    assert lines == {20: 7000, 191: 1000}
    assert profile.own("gpu_time").sum() == profile_from_text(TREE).own("gpu_time").sum()


def test_what_readings_cost_stands_by_itself() -> None:
    profile = measured({**MEASURED, "read_cycles": 7, "clock_cycles": 1000})
    tree, cycles = profile.tree, profile.inclusive("warp_cycles")
    by_name = {tree.frames.name[tree.frame[node]]: int(cycles[node]) for node in range(len(tree))}
    assert cycles[0] == 10_000
    assert by_name["<between what has clocks>"] == 2000
    assert by_name["<reading the clocks>"] == 1000
    assert list(clock_lines({"inside_kernels": [{**MEASURED, "read_cycles": 7, "clock_cycles": 1000}]}))[-2:] == [
        "   20.0 %  everything else: arithmetic, and waits for registers that loads fill",
        "   10.0 %  reading the clocks, 7 cycles each",
    ]


GIVEN = [
    {
        "scope": "load",
        "place": [{"file": "/src/matmul.py", "line": 19, "function": "matmul"}],
        "count": 4,
        "total": 6,
        "least": 0.0,
        "greatest": 3.5,
        "not_finite": 0,
    },
    {"scope": "load", "place": [], "count": 0, "not_finite": 2},
]


def test_values_of_scopes_stand_at_their_lines() -> None:
    profile = measured({**MEASURED, "values": GIVEN})
    tree = profile.tree
    nodes = [node for node in range(len(tree)) if tree.frames.name[tree.frame[node]] == "load"]
    assert [profile.own("scope_value_count")[node] for node in nodes] == [4, 0]
    assert [profile.own("scope_value_sum")[node] for node in nodes] == [6, 0]
    assert profile.own("scope_value_min")[nodes[0]] == 0
    assert profile.own("scope_value_max")[nodes[0]] == 3.5
    assert profile.metrics["scope_value_max"].has_value.sum() == 1
    assert profile.inclusive("warp_cycles")[0] == 10_000
    assert list(clock_lines({"inside_kernels": [{**MEASURED, "values": GIVEN}]}))[-2:] == [
        "  load (matmul.py:19) was given 0 to 3.5, 1.5 on average, 4 times",
        "  load was given NaN or Inf, 2 times",
    ]


def specialized(**more: Any) -> dict[str, Any]:
    """Two consumer warps that wait for most of their time, a producer, and a warp that told nothing."""
    waits = stretch("wait for a barrier in memory", 20, [800, 700, 100, 0], waits=True)
    segments = [waits, stretch("begin a tensor copy to shared memory", 21, [0, 0, 50, 0])]
    segments.append(stretch("begin matrix products", 22, [90, 90, 0, 0]))
    return {**MEASURED, "segments": segments, "covered_by_warp": [1000, 1000, 1000, 0], **more}


def test_the_warps_that_wait_least_are_critical() -> None:
    def told(**more: Any) -> list[str]:
        lines = clock_lines({"inside_kernels": [specialized(**more)]})
        return [line for line in lines if "critical" in line]

    assert told(partitions=[0, 2, 3]) == [
        "  critical: warp 2 waits least, 10.0 % of the time (begins a tensor copy to shared memory); "
        "warps 0 to 1 wait 75.0 %"
    ]
    assert told(partitions=[0]) == [
        "  critical: warp 2 waits least, 10.0 % of the time; warp 1 waits 70.0 %; warp 0 waits 80.0 %"
    ]
    assert told(partitions=[0, 2], covered_by_warp=[1000, 1000, 0, 0]) == []
    assert told(partitions=[0], covered_by_warp=[1000, 900, 130, 0]) == []  # nearly the same share
    (kernel,) = inside_kernels([specialized(partitions=[0, 2, 99])])
    assert [(each.first, each.last) for each in kernel.groups()] == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("does", "what"),
    [("begin a tensor copy to shared memory", "copies"), ("begin matrix products", "matrix products")],
)
def test_what_is_in_flight_is_told_by_its_kind(does: str, what: str) -> None:
    flight = {"does": does, "place": [], "ahead": 1, "latency": [70.0, 80.0], "waited": [30.0, 20.0], "count": 7}
    lines = list(clock_lines({"inside_kernels": [{**MEASURED, "copies": [flight]}]}))
    assert lines[-1].startswith(f"  {what} are 1 ahead: by stage, 70, 80 cycles from the beginning of one to the end")


def test_blocks_that_clocks_leave_no_room_for_are_told() -> None:
    lines = list(clock_lines({"inside_kernels": [{**MEASURED, "blocks_at_once": [264, 132]}]}))
    assert lines[-1] == "  with clocks 132 blocks fit on the GPU at once, not 264"
    same = {**MEASURED, "blocks_at_once": [264, 264]}
    assert not any("at once" in line for line in clock_lines({"inside_kernels": [same]}))


def test_turns_of_the_loop_have_a_line() -> None:
    place = [{"file": "/src/matmul.py", "line": 20, "function": "matmul"}]
    turns = {"place": place, "typical": 498.0, "first": 1203.5, "longest": 5000, "count": 2032}
    assert list(clock_lines({"inside_kernels": [{**MEASURED, "turns": turns}]}))[-1] == (
        "  a turn of its loop (matmul.py:20) takes 498 cycles (median of 2,032), the first 1,204, the longest 5,000"
    )


def test_a_profile_without_clocks_is_as_it_was() -> None:
    assert "warp_cycles" not in measured().metrics
    assert "warp_cycles" not in measured({**MEASURED, "kernel": "another"}).metrics
    assert "warp_cycles" not in measured({"kernel": KERNEL, "refused": [{"level": "waits", "why": "cost"}]}).metrics


def test_the_lines_say_what_warps_did_and_what_it_cost() -> None:
    assert list(clock_lines({"inside_kernels": [MEASURED]})) == [
        f"inside {KERNEL}: clocks of everything cost 2.0 % of a launch (6 pairs); 50.0 % of the warps told",
        "   60.0 %  wait for matrix products (matmul.py:20)",
        "   10.0 %  begin matrix products (matmul.py:20)",
        "   30.0 %  everything else: arithmetic, and waits for registers that loads fill",
    ]


def test_the_end_of_a_run_tells_one_kernel_and_counts_the_others() -> None:
    lines = list(clock_lines({"inside_kernels": [MEASURED, MEASURED, MEASURED]}, 1))
    assert len(lines) == 5
    assert lines[-1] == "inside 2 more kernels: bragg info"


def test_the_lines_say_why_there_are_fewer_clocks_or_none() -> None:
    refused = [{"level": "everything", "why": "cost"}, {"level": "waits", "why": "spills"}]
    fewer = {**MEASURED, "level": "blocks", "refused": refused, "covered_cycles": 0, "segments": []}
    none = {"kernel": "k\x1b[2J", "refused": refused}
    never = {"kernel": "once", "refused": []}
    assert list(clock_lines({"inside_kernels": [fewer, none, never]})) == [
        f"inside {KERNEL}: clocks of blocks cost 2.0 % of a launch (6 pairs)",
        "  a block takes 0.1 us, from 0.1 to 0.1",
        "  fewer clocks than asked for: everything: costs too much; waits: spills registers",
        "inside k\\x1b[2J: no clocks: everything: costs too much; waits: spills registers",
        "inside once: no clocks: it was launched less than twice",
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"kernel": 5},
        {"kernel": KERNEL, "segments": [{"place": "x", "cycles": [None, "2", 3.5]}], "registers": "many"},
        {"kernel": KERNEL, "segments": [{"place": [{"line": -5}], "cycles": [4]}], "pairs": True, "plain_ns": "x"},
        {"kernel": KERNEL, "refused": ["x", {"why": ["y"]}], "block_ns": {"a": 1}},
    ],
)
def test_what_anybody_may_have_written_is_read_without_trust(row: dict[str, Any]) -> None:
    (kernel,) = inside_kernels([row])
    assert kernel.covered_cycles == 0
    measured(row)
    assert list(clock_lines({"inside_kernels": [row]}))


def test_events_stand_where_they_begin_with_their_latency_by_value() -> None:
    place = [{"file": "/src/matmul.py", "line": 12, "function": "matmul"}]
    end = [{"file": "/src/matmul.py", "line": 30, "function": "matmul"}]
    by_value = [
        {"value": 0.0, "count": 2, "total": 600, "typical": 300.0, "longest": 310},
        {"value": 1.0, "count": 2, "total": 200, "typical": 100.0, "longest": 120},
    ]
    told = {"place": place, "end_place": end, "count": 4, "total": 800, "typical": 205.0, "longest": 310}
    event = {"event": "copy", "unmatched": 1, "by_value": by_value, **told}
    profile = measured(MEASURED | {"events": [event]})
    tree = profile.tree
    own = {tree.label(node): node for node in range(len(tree))}
    cycles, count, longest = (profile.inclusive(f"kernel_event_{name}") for name in ("cycles", "count", "max"))
    assert [cycles[own[name]] for name in ("copy", "copy = 0", "copy = 1")] == [800, 600, 200]
    assert [count[own[name]] for name in ("copy", "copy = 0")] == [4, 2]
    assert [longest[own[name]] for name in ("copy = 0", "copy = 1")] == [310, 120]
    assert profile.own("warp_cycles").sum() == 10_000
    assert (
        "  copy (matmul.py:12) takes 205 cycles to its end (matmul.py:30) (median of 4 events, at most 310); most if "
        "its value is 0, 300; 1 begin or end without a counterpart"
    ) in list(clock_lines(profile.meta))
