"""When the blocks of a launch ran, and what some of their warps did, as a JSON object."""

from __future__ import annotations

import numpy as np

from bragg.code.instrument.passages import Passages
from bragg.code.instrument.readings import Warps
from bragg.code.instrument.segments import Segment
from bragg.record.instrument.placing import Blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bragg.code.instrument.rewriting import Instrumented
    from bragg.record.instrument.buffers import Plan

__all__ = ["timeline_of"]

# 20,000 rows of JSON take 0.5 MB of the capture, and go when it is read.
_MAX_BLOCKS = 20_000
_MAX_PASSAGES = 20_000


def timeline_of(
    blocks: Blocks, own: Warps, passages: Passages, instrumented: Instrumented, plan: Plan
) -> dict[str, Any]:
    """The blocks that began first, and the passages of their first warps.

    Args:
        blocks: All of the launch.
        own: Those that have frames.
        passages: Of some of these.
        instrumented: The kernel.
        plan: Which blocks write.
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
    }


def _of_warps(own: Warps, passages: Passages, instrumented: Instrumented, plan: Plan, first_ns: int) -> dict[str, Any]:
    """The first passages."""
    rows = np.unique(passages.warp)
    chosen = np.argsort(passages.start_ns, kind="stable")[:_MAX_PASSAGES]
    segments = [segment for frame in instrumented.frames for segment in frame.segments]
    index_of = np.zeros(len(own.slot), np.int64)
    index_of[rows] = np.arange(len(rows))
    return {
        "warps": np.stack([own.block[rows], own.slot[rows] % plan.warps, own.multiprocessor[rows]], axis=1).tolist(),
        "names": [_name(segment) for segment in segments],
        "warp": index_of[passages.warp[chosen]].tolist(),
        "segment": passages.segment[chosen].tolist(),
        "passage_start_ns": (passages.start_ns[chosen] - first_ns).tolist(),
        "passage_ns": (passages.end_ns[chosen] - passages.start_ns[chosen]).tolist(),
        "passages_left_out": len(passages.warp) - len(chosen),
    }


def _name(segment: Segment) -> list[Any]:
    """What it does, and the user's line."""
    place = segment.place[-1] if segment.place else None
    return [segment.does, place.file if place else "", place.line if place else 0]
