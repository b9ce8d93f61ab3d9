"""What clocks inside of kernels said, from the meta of a profile, which anybody may have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bragg.model.facts import Facts
from bragg.model.kernels.inside import (
    Copies,
    Count,
    InsideKernel,
    KernelEvent,
    Latency,
    Line,
    Meeting,
    Placement,
    ScopeValues,
    Stretch,
    Turns,
)

_MAX_CALLS = 50
_MAX_WARPS = 32  # of a block


def inside_kernels(rows: list[Mapping[str, Any]]) -> list[InsideKernel]:
    """Each kernel of a list in the meta; what is missing is empty."""
    return [_kernel(Facts(row)) for row in rows if row]


def _kernel(facts: Facts) -> InsideKernel:
    plain_registers, timed_registers, *_ = *_integers(facts, "registers"), 0, 0
    plain_blocks, timed_blocks, *_ = *_integers(facts, "blocks_at_once"), 0, 0
    plain_shared, timed_shared, *_ = *_integers(facts, "shared_bytes"), 0, 0
    fastest, median, slowest, *_ = *_numbers(facts, "block_ns"), 0, 0, 0
    return InsideKernel(
        facts.text("kernel"),
        facts.text("level"),
        tuple((Facts(row).text("level"), Facts(row).text("why")) for row in facts.rows("refused")),
        facts.count("pairs"),
        facts.number("plain_ns"),
        facts.number("timed_ns"),
        (plain_registers, timed_registers),
        (plain_blocks, timed_blocks),
        (plain_shared, timed_shared),
        tuple(_loop_waits(facts.table("loop_waits"))),
        facts.count("blocks"),
        min(facts.count("warps"), _MAX_WARPS),
        facts.count("warps_with_frames"),
        facts.count("covered_cycles"),
        facts.count("warp_cycles"),
        facts.count("read_cycles"),
        facts.count("clock_cycles"),
        facts.number("clock_ghz"),
        facts.count("span_ns"),
        (fastest, median, slowest),
        tuple(_stretch(Facts(row)) for row in facts.rows("segments")),
        _placement(facts),
        tuple(_copies(Facts(row)) for row in facts.rows("copies")),
        tuple(_meeting(Facts(row)) for row in facts.rows("meetings")),
        facts.count("probed_blocks"),
        tuple(_count(Facts(row)) for row in facts.rows("probes")),
        tuple(_scope_values(Facts(row)) for row in facts.rows("values")),
        tuple(_integers(facts, "covered_by_warp")[:_MAX_WARPS]),
        tuple(_integers(facts, "partitions")),
        _turns(facts.table("turns")),
        tuple(_event(Facts(row)) for row in facts.rows("events")),
        facts.count("replays"),
    )


def _loop_waits(table: Facts) -> Iterator[tuple[str, int, int]]:
    for opcode in table.values():
        before, after, *_ = *_integers(table, opcode), 0, 0
        yield opcode, before, after


def _placement(facts: Facts) -> Placement:
    table = facts.table("multiprocessors")
    return Placement(
        len(_values(table, "number")),
        tuple(_integers(table, "busy_ns")),
        facts.count("resident_blocks"),
        min(max(facts.number("tail_share"), 0.0), 1.0),
    )


def _copies(facts: Facts) -> Copies:
    return Copies(
        facts.text("does"),
        _lines(facts),
        facts.count("ahead"),
        tuple(_numbers(facts, "latency")),
        tuple(_numbers(facts, "waited")),
        facts.count("count"),
    )


def _meeting(facts: Facts) -> Meeting:
    return Meeting(_lines(facts), facts.number("skew"), facts.count("longest"), facts.count("count"))


def _turns(facts: Facts) -> Turns:
    typical, first = facts.number("typical"), facts.number("first")
    return Turns(_lines(facts), typical, first, facts.count("longest"), facts.count("count"))


def _event(facts: Facts) -> KernelEvent:
    return KernelEvent(
        facts.text("event"),
        _lines(facts),
        _lines(facts, "end_place"),
        _latency(facts),
        tuple((Facts(row).number("value"), _latency(Facts(row))) for row in facts.rows("by_value")),
        facts.count("unmatched"),
    )


def _latency(facts: Facts) -> Latency:
    return Latency(facts.count("count"), facts.count("total"), facts.number("typical"), facts.count("longest"))


def _scope_values(facts: Facts) -> ScopeValues:
    return ScopeValues(
        facts.text("scope"),
        _lines(facts),
        facts.count("count"),
        facts.number("total"),
        facts.number("least"),
        facts.number("greatest"),
        facts.count("not_finite"),
    )


def _count(facts: Facts) -> Count:
    values = facts.values()
    greatest, first = values.get("greatest"), _integers(facts, "first_bad")
    return Count(
        facts.text("probe"),
        facts.text("does"),
        _lines(facts),
        facts.count("warps"),
        facts.count("lanes"),
        facts.count("access_bytes"),
        facts.count("sectors"),
        values.get("is_back") is True,
        float(greatest) if greatest in ("inf", "nan") or isinstance(greatest, (int, float)) else None,
        (first[0], first[1], first[2]) if len(first) == 3 else None,
    )


def _lines(facts: Facts, name: str = "place") -> tuple[Line, ...]:
    places = [Facts(row) for row in facts.rows(name)[:_MAX_CALLS]]
    return tuple(Line(place.text("file"), place.count("line"), place.text("function")) for place in places)


def _stretch(facts: Facts) -> Stretch:
    return Stretch(
        facts.text("does"),
        facts.values().get("waits") is True,
        _lines(facts),
        facts.values().get("in_loop") is True,
        facts.count("count"),
        tuple(_integers(facts, "cycles")),
        facts.count("longest"),
    )


def _integers(facts: Facts, name: str) -> list[int]:
    return [Facts({"x": each}).count("x") for each in _values(facts, name)]


def _numbers(facts: Facts, name: str) -> list[float]:
    return [Facts({"x": each}).number("x") for each in _values(facts, name)]


def _values(facts: Facts, name: str) -> list[Any]:
    values = facts.values().get(name)
    return values if isinstance(values, list) else []
