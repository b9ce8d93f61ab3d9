"""When the blocks of a launch ran, and what some of their warps did, as a JSON object."""

from __future__ import annotations

import math

import numpy as np

from bragg.code.instrument.events import Intervals
from bragg.code.instrument.passages import Passages
from bragg.code.instrument.readings import Warps
from bragg.code.instrument.segments import Segment
from bragg.record.instrument.placing import Blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from bragg.code.instrument.rewriting import Instrumented
    from bragg.record.instrument.buffers import Plan


# 20,000 rows of JSON take 0.5 MB of the capture, and go when it is read.
_MAX_BLOCKS = 20_000
_MAX_PASSAGES = 20_000
# Each is a node of the tree.
_MAX_NAMES = 1024


def timeline_of(
    blocks: Blocks,
    own: Warps,
    passages: Passages,
    instrumented: Instrumented,
    plan: Plan,
    events: Sequence[Intervals] = (),
) -> dict[str, Any]:
    """The blocks that began first, and the passages and events of their first warps.

    Args:
        blocks: All of the launch.
        own: Those that have frames.
        passages: Of some of these.
        instrumented: The kernel.
        plan: Which blocks write.
        events: Of the same warps.
    """
    first_ns = blocks.first_ns
    chosen = np.argsort(blocks.start_ns, kind="stable")[:_MAX_BLOCKS]
    return {
        "span_ns": blocks.last_ns - first_ns,
        "blocks_left_out": len(blocks.number) - len(chosen),
        "block": blocks.number[chosen].tolist(),
        "multiprocessor": blocks.multiprocessor[chosen].tolist(),
        "start_ns": (blocks.start_ns[chosen] - first_ns).tolist(),
        "duration_ns": (blocks.end_ns[chosen] - blocks.start_ns[chosen]).tolist(),
        **(_of_warps(own, passages, instrumented, plan, first_ns) if instrumented.frames else {}),
        **(_of_events(own, events, first_ns) if events else {}),
    }


def _of_warps(own: Warps, passages: Passages, instrumented: Instrumented, plan: Plan, first_ns: int) -> dict[str, Any]:
    """The first passages."""
    rows = np.unique(passages.warp)
    chosen = np.argsort(passages.start_ns, kind="stable")[:_MAX_PASSAGES]
    segments = [segment for frame in instrumented.frames for segment in frame.segments]
    names, name_of = _names(segments, passages.segment[chosen], passages.value[chosen])
    index_of = np.zeros(len(own.slot), np.int64)
    index_of[rows] = np.arange(len(rows))
    return {
        "warps": np.stack([own.block[rows], own.slot[rows] % plan.warps, own.multiprocessor[rows]], axis=1).tolist(),
        "names": names,
        "warp": index_of[passages.warp[chosen]].tolist(),
        "segment": name_of,
        "passage_start_ns": (passages.start_ns[chosen] - first_ns).tolist(),
        "passage_ns": (passages.end_ns[chosen] - passages.start_ns[chosen]).tolist(),
        "passages_left_out": len(passages.warp) - len(chosen),
    }


def _of_events(own: Warps, events: Sequence[Intervals], first_ns: int) -> dict[str, Any]:
    """The first events."""
    names = [_event_name(event, value) for event in events for value in event.value.tolist()]
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    of = np.array([known[name] for name in names], np.int64)
    start_ns, end_ns = (np.concatenate([getattr(each, name) for each in events]) for name in ("start_ns", "end_ns"))
    row = np.concatenate([each.warp for each in events])
    chosen = np.argsort(start_ns, kind="stable")[:_MAX_PASSAGES]
    return {
        "event_names": [list(name) for name in known],
        "event": of[chosen].tolist(),
        "event_block": own.block[row[chosen]].tolist(),
        "event_multiprocessor": own.multiprocessor[row[chosen]].tolist(),
        "event_start_ns": (start_ns[chosen] - first_ns).tolist(),
        "event_ns": (end_ns[chosen] - start_ns[chosen]).tolist(),
        "events_left_out": len(of) - len(chosen),
    }


def _event_name(event: Intervals, value: float) -> tuple[Any, ...]:
    place = event.begins.place[-1] if event.begins.place else None
    return event.begins.name + _given(value), place.file if place else "", place.line if place else 0


def _given(value: float) -> str:
    return "" if math.isnan(value) else f" = {value:.9g}"  # the digits of 32 bits


def _names(
    segments: Sequence[Segment], segment: NDArray[np.int64], value: NDArray[np.float64]
) -> tuple[list[list[Any]], list[int]]:
    """What happens in segments, with what scopes were given, and the user's line; and which each passage is of."""
    kinds, of = np.unique(np.stack([segment, value.view(np.int64)], axis=1), axis=0, return_inverse=True)
    if len(kinds) > _MAX_NAMES:
        kinds, of = np.stack([np.arange(len(segments)), np.full(len(segments), np.nan).view(np.int64)], axis=1), segment
    values = np.ascontiguousarray(kinds[:, 1]).view(np.float64).tolist()
    named = zip((segments[each] for each in kinds[:, 0].tolist()), values, strict=True)
    return [_name(each, given) for each, given in named], of.reshape(-1).tolist()


def _name(segment: Segment, value: float) -> list[Any]:
    place = segment.place[-1] if segment.place else None
    return [segment.does + _given(value), place.file if place else "", place.line if place else 0]
