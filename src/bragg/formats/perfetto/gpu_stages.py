"""GPU work as Perfetto's own packets for it, which fill the rows and tables of GPUs: one packet with a duration each.

They stand beside the slices of tracks, which have call paths and arrows. A kernel is a stage of a queue, and what
overlaps on a stream has a queue of its own: the reader drops what overlaps in one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.formats.encodings.protobuf import Messages, message, number, text
from bragg.formats.perfetto import fields
from bragg.formats.timelines.lanes import Lane
from bragg.model import FrameKind, Profile

_CONTEXT, _QUEUE = 1, 1  # each the first text of its kind in a sequence
_API_CUDA = 4
_COMPUTE, _OTHER = 2, 0


def stage_texts(profile: Profile, lane: Lane, process: int) -> list[bytes]:
    """What the events of a lane refer to by number: the process, the queue, then its kernels by their nodes.

    Args:
        profile: The profile.
        lane: A lane of a GPU's stream.
        process: Id of the process.
    """
    tree = profile.tree
    texts = [
        message(fields.CONTEXTS, number(1, _CONTEXT), number(2, process), number(3, _API_CUDA)),
        message(fields.SPECIFICATIONS, number(1, _QUEUE), text(2, lane.label(profile.tracks))),
    ]
    for iid, node in enumerate(np.unique(profile.slices.node[lane.rows]).tolist(), start=_QUEUE + 1):
        category = _COMPUTE if tree.kind[node] == FrameKind.KERNEL else _OTHER
        texts.append(message(fields.SPECIFICATIONS, number(1, iid), text(2, tree.label(node)), number(4, category)))
    return texts


def stage_events(profile: Profile, lane: Lane, rows_at_once: int) -> Iterator[tuple[np.ndarray, Messages]]:
    """The events of a lane by their start: time since the event before, int64 [rows at once], and the event.

    Args:
        profile: The profile.
        lane: A lane of a GPU's stream.
        rows_at_once: So many are made at a time.
    """
    slices, device = profile.slices, int(profile.tracks.device[lane.track])
    _, stage = np.unique(slices.node[lane.rows], return_inverse=True)
    start_ns = slices.start_ns[lane.rows]
    delta_ns = np.diff(start_ns, prepend=start_ns[:1])
    for begin in range(0, len(lane.rows), rows_at_once):
        rows = lane.rows[begin : begin + rows_at_once]
        n_rows = len(rows)
        event = Messages(n_rows).numbers(fields.STAGE_EVENT, rows + 1)
        event.numbers(fields.STAGE_DURATION, slices.duration_ns[rows])
        event.numbers(fields.STAGE_CONTEXT, np.full(n_rows, _CONTEXT))
        event.numbers(fields.STAGE_GPU, np.full(n_rows, max(device, 0)))
        event.numbers(fields.STAGE_QUEUE, np.full(n_rows, _QUEUE))
        event.numbers(fields.STAGE, stage.reshape(-1)[begin : begin + rows_at_once] + _QUEUE + 1)
        yield delta_ns[begin : begin + rows_at_once], event
