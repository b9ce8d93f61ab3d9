"""The readings of a launch as a JSON object."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from bragg.code.instrument.events import Intervals, intervals_of
from bragg.code.instrument.pairs import copies_of, meetings_of, turns_of
from bragg.code.instrument.passages import Passages, passages_of
from bragg.code.instrument.readings import Readings, ValueTotals, Warps, read_frames, read_headers
from bragg.code.instrument.segments import Event, ScopeValue, Segment
from bragg.code.source_place import CallChain
from bragg.record.instrument.placing import Blocks, blocks_of
from bragg.record.instrument.timeline import timeline_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from bragg.code.instrument.rewriting import Instrumented
    from bragg.record.instrument.buffers import Plan


_MAX_WARPS = 16
# Each is a node of the tree.
_MAX_VALUES = 256


def summed(
    headers: bytes, frames: bytes, instrumented: Instrumented, plan: Plan, *, has_timeline: bool = False
) -> dict[str, Any]:
    """The readings of a launch, added up.

    Args:
        headers: As the kernel wrote them.
        frames: As the kernel wrote them.
        instrumented: The kernel.
        plan: Which blocks write.
        has_timeline: With what happened when, as `timeline_of` makes it.

    Raises:
        ValueError: No warp has ended.
    """
    warps = read_headers(headers)
    if not len(warps.slot):
        raise ValueError("no warp has stored its clocks")
    own = _with_frames(warps, plan)
    blocks = blocks_of(warps, plan.warps)
    found = {"blocks": plan.blocks, **_of_blocks(warps, blocks, plan)}
    rows = _first_warps(own)
    passages = passages_of(frames, instrumented, own, rows)
    events = intervals_of(frames, instrumented, own, rows, len(plan.chosen_warps))
    if has_timeline:
        found["timeline"] = timeline_of(blocks, own, passages, instrumented, plan, events)
    if not instrumented.frames:
        return found
    readings = read_frames(frames, instrumented, own, plan.warps)
    return {
        **found,
        **_of_segments(readings, own, plan),
        **_of_pairs(passages, readings.segments, plan),
        **_of_turns(passages, instrumented),
        "events": [_of_event(each) for each in events],
    }


def _first_warps(own: Warps) -> list[int]:
    """Rows of the warps of the first whole blocks with frames, whose passages are looked at one by one."""
    rows = np.flatnonzero(own.due_bytes > 0)
    rows = rows[np.argsort(own.block[rows], kind="stable")]
    _, counts = np.unique(own.block[rows], return_counts=True)
    fitting = np.searchsorted(np.cumsum(counts), _MAX_WARPS, side="right")
    return rows[: counts[: max(int(fitting), 1)].sum()].tolist()  # type: ignore[no-any-return]


def _of_blocks(warps: Warps, blocks: Blocks, plan: Plan) -> dict[str, Any]:
    """When blocks ran, and where."""
    spent = (warps.end - warps.start).astype(np.float64)
    took_ns = (warps.end_ns - warps.start_ns).astype(np.float64)
    multiprocessors, of = np.unique(blocks.multiprocessor, return_inverse=True)
    # A multiprocessor's own time, from its first block to its last one's end.
    begun, ended = np.full(len(multiprocessors), np.iinfo(np.int64).max), np.zeros(len(multiprocessors), np.int64)
    np.minimum.at(begun, of, blocks.start_ns)
    np.maximum.at(ended, of, blocks.end_ns)
    block_ns = blocks.end_ns - blocks.start_ns
    return {
        "blocks_with_times": len(blocks.number),
        "span_ns": blocks.last_ns - blocks.first_ns,
        "block_ns": [float(each) for each in np.quantile(block_ns, (0, 0.5, 1))],
        "clock_ghz": float(spent.sum() / took_ns.sum()) if took_ns.sum() else 0.0,
        "multiprocessors": {
            "number": multiprocessors.tolist(),
            "blocks": np.bincount(of).tolist(),
            "first_start_ns": (begun - blocks.first_ns).tolist(),
            "last_end_ns": (ended - blocks.first_ns).tolist(),
            "busy_ns": np.bincount(of, block_ns).astype(np.int64).tolist(),
        },
        # Of some blocks alone it cannot be told how many there were at once.
        **({} if plan.header_shift else {"resident_blocks": blocks.resident, "tail_share": blocks.tail_share}),
    }


def _with_frames(warps: Warps, plan: Plan) -> Warps:
    """A row for each warp that has frames, in their order; those that did not end have nothing due."""
    frame_block = np.arange(plan.frame_blocks)
    first = np.minimum(frame_block, plan.first_blocks)
    header_block = first + (frame_block - first << plan.frame_shift >> plan.header_shift)
    slot: NDArray[np.int64] = (header_block[:, None] * plan.warps + np.array(plan.chosen_warps)).reshape(-1)
    at = np.minimum(np.searchsorted(warps.slot, slot), len(warps.slot) - 1)
    has_ended: NDArray[np.bool_] = warps.slot[at] == slot

    def column(values: NDArray[Any]) -> NDArray[Any]:
        return np.where(has_ended, values[at], values.dtype.type(0))

    return Warps(
        slot,
        column(warps.block),
        column(warps.multiprocessor),
        column(warps.start_ns),
        column(warps.end_ns),
        column(warps.start),
        column(warps.end),
        column(warps.due_bytes),
        column(warps.read_cycles),
    )


def _of_pairs(passages: Passages, segments: Sequence[Segment], plan: Plan) -> dict[str, Any]:
    """Copies with the waits for them, and how far apart warps come to barriers; in cycles."""
    return {
        "copies": [
            {
                "does": each.begins.does,
                "place": _place(each.begins),
                "ahead": each.ahead,
                "latency": each.latency.tolist(),
                "waited": each.waited.tolist(),
                "count": each.count,
            }
            for each in copies_of(passages, segments, len(plan.chosen_warps))
        ],
        "meetings": [
            {"place": _place(each.segment), "skew": each.skew, "longest": each.longest, "count": each.count}
            for each in (() if plan.frame_warps else meetings_of(passages, segments, plan.warps))
        ],
    }


def _of_turns(passages: Passages, instrumented: Instrumented) -> dict[str, Any]:
    turns = turns_of(passages, instrumented.frames)
    if turns is None:
        return {}
    told = {"typical": turns.typical, "first": turns.first, "longest": turns.longest, "count": turns.count}
    return {"turns": {"place": _place(turns.segment), **told}}


def _of_event(event: Intervals) -> dict[str, Any]:
    """Latencies of an event in cycles: of all, and by value if it has one."""
    values, of = np.unique(event.value, return_inverse=True)
    by_value = [(value, event.cycles[of.reshape(-1) == number]) for number, value in enumerate(values[:_MAX_VALUES])]
    return {
        "event": event.begins.name,
        "place": _place(event.begins),
        "end_place": _place(event.ends),
        "unmatched": event.unmatched,
        **_latency(event.cycles),
        "by_value": [{"value": float(value), **_latency(own)} for value, own in by_value if not np.isnan(value)],
    }


def _latency(cycles: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "count": len(cycles),
        "total": int(cycles.sum()),
        "typical": float(np.median(cycles)),
        "longest": int(cycles.max()),
    }


def _place(at: Segment | ScopeValue | Event) -> list[dict[str, Any]]:
    return [{"file": place.file, "line": place.line, "function": place.function} for place in at.place]


def _of_values(values: Sequence[ValueTotals]) -> list[dict[str, Any]]:
    """What scopes were given, a row for each place in the source: a loop may stand several times in the code."""
    by_place: dict[tuple[str, CallChain], list[ValueTotals]] = defaultdict(list)
    for each in values:
        if each.count or each.not_finite:
            by_place[each.of.scope, each.of.place].append(each)
    rows = []
    for (scope, _), parts in by_place.items():
        count = sum(each.count for each in parts)
        numbers = {
            "total": sum(each.total for each in parts),
            "least": min(each.least for each in parts),
            "greatest": max(each.greatest for each in parts),
        }
        not_finite = sum(each.not_finite for each in parts)
        row = {"scope": scope, "place": _place(parts[0].of), "count": count, "not_finite": not_finite}
        rows.append(row | (numbers if count else {}))
    return rows


def _of_segments(readings: Readings, warps: Warps, plan: Plan) -> dict[str, Any]:
    return {
        "warps_with_frames": len(warps.slot),
        "warp_cycles": int((warps.end - warps.start).sum()),
        "covered_cycles": int(readings.covered.sum()),
        "covered_by_warp": np.bincount(warps.slot % plan.warps, readings.covered, plan.warps).astype(np.int64).tolist(),
        "damaged_warps": readings.damaged,
        "read_cycles": readings.read_cycles,
        "clock_cycles": readings.clock_cycles,
        "values": _of_values(readings.values),
        "segments": [
            {
                "does": segment.does,
                "waits": segment.is_wait,
                "place": _place(segment),
                "in_loop": segment.in_loop,
                "count": count,
                "longest": longest,
                "cycles": cycles,
            }
            for segment, count, longest, cycles in zip(
                readings.segments,
                readings.count.tolist(),
                readings.longest.tolist(),
                readings.cycles.tolist(),
                strict=True,
            )
            if count
        ],
    }
