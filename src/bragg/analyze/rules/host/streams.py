"""Kernels on several streams that run in turns, although they would fit on the GPU side by side."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.causes.host_finding import Cause, counted, host_finding
from bragg.analyze.causes.needs import LAUNCHES, TIMELINE
from bragg.analyze.causes.paths import named
from bragg.analyze.causes.thresholds import EXPOSED, OFTEN
from bragg.analyze.engine import Rule
from bragg.analyze.pauses import START_NS, launches_of
from bragg.model import Confidence, Finding, FrameKind, Quantity, SliceTable
from bragg.model.table import BoolArray, FloatArray

# Of two kernels that wait for each other, one hides behind the other.
_SAVED = 0.5


def _find(evidence: Evidence) -> Iterator[Finding]:
    waited_ns: FloatArray = np.zeros(len(evidence.profile.tree))
    count = 0
    for owner, work in _work_of_devices(evidence):
        waits = _waits(evidence, work, owner)
        waited_ns += np.bincount(work.node, waits, len(waited_ns))
        count += int((waits > 0).sum())
    total_ns = float(waited_ns.sum()) / evidence.bounding.count
    if count < OFTEN.value or total_ns * _SAVED < EXPOSED.value * evidence.wall_ns:
        return
    cause = Cause(
        "streams-in-turns",
        f"kernels wait for a kernel of another stream, though the GPU has room for both: {counted(evidence, count)}",
        "unless it needs the result of the other: no wait_stream and no event between them, "
        "and no legacy default stream beside streams that wait for it",
        evidence.gain(total_ns * _SAVED),
        Confidence.HEURISTIC,
        (
            Quantity(f"kernels that wait {evidence.step_word}", evidence.per_step(count)),
            Quantity(f"waiting {evidence.step_word}", evidence.per_step(total_ns), "ns"),
        ),
    )
    yield host_finding(evidence, waited_ns > 0, waited_ns, cause)


def _work_of_devices(evidence: Evidence) -> Iterator[tuple[int, SliceTable]]:
    """Small kernels of each GPU of each process, which has a number in the track table, by start.

    Only of those that bound the program and have them on several streams.
    """
    tracks = evidence.profile.tracks
    is_meant = (
        evidence.on_gpu & (_is_small(evidence) & evidence.bounding.has(evidence.profile.tree))[evidence.slices.node]
    )
    work = evidence.slices.take(is_meant)
    owner, device = tracks.unique_process[work.track], tracks.device[work.track]
    for pair in sorted(set(zip(owner.tolist(), device.tolist(), strict=True))):
        own = work.take((owner == pair[0]) & (device == pair[1]))
        if len(np.unique(own.track)) > 1:
            yield pair[0], own.take(np.argsort(own.start_ns, kind="stable"))


def _is_small(evidence: Evidence) -> BoolArray:
    """Nodes of kernels whose every launch leaves at least half of the multiprocessors free, [n_nodes].

    Communication waits for other GPUs, whatever its size, and kernels of a graph for what the graph says.
    """
    profile, table = evidence.profile, evidence.profile.kernels
    frames = profile.tree.frames
    blocks, sms = np.zeros(len(frames), np.int64), np.zeros(len(frames), np.int64)
    np.maximum.at(blocks, table.frame, table.grid_x * table.grid_y * table.grid_z)
    for ordinal in np.unique(frames.device[table.frame]).tolist():
        told = next(iter(profile.run.records_of_device(ordinal)), {}).get("num_sms")
        sms[frames.device == ordinal] = told if isinstance(told, int) else 0
    is_small = (frames.kind == FrameKind.KERNEL) & (blocks > 0) & (blocks * 2 <= sms)
    is_message = named(profile, lambda name: "nccl" in name.lower())
    found: BoolArray = is_small[profile.tree.frame] & ~is_message & ~evidence.in_graph
    return found


def _waits(evidence: Evidence, work: SliceTable, owner: int) -> FloatArray:
    """How long each kernel could have run beside the one before it on another stream: ns [n_slices].

    It could from when it was launched, its own stream was free and the other had begun. What began while the other
    still ran, or later than a kernel begins that was launched in time, did not wait for it.

    Args:
        evidence: Of the profile.
        work: Small kernels of one GPU, by start.
        owner: Their process in the track table.
    """
    launch, slices = launches_of(evidence.profile, owner, work.correlation), evidence.profile.slices
    made = (slices.start_ns + slices.duration_ns)[launch]
    launched = np.where(launch >= 0, made, np.iinfo(np.int64).max).tolist()
    starts, tracks = work.start_ns.tolist(), work.track.tolist()
    ends = (work.start_ns + work.duration_ns).tolist()
    waits: FloatArray = np.zeros(len(work))
    own_end: dict[int, int] = {}
    before = 0
    for row in range(len(work)):
        if tracks[before] != tracks[row] and 0 <= starts[row] - ends[before] <= START_NS:
            ready = max(launched[row], own_end.get(tracks[row], 0), starts[before])
            waits[row] = min(max(ends[before] - ready, 0), ends[row] - starts[row])
        own_end[tracks[row]] = ends[row]
        before = row if ends[row] >= ends[before] else before
    return waits


RULE = Rule(
    _find,
    "small kernels that wait for those of another stream",
    (TIMELINE, LAUNCHES),
    (OFTEN, EXPOSED),
    "no event and no legacy default stream between what does not need each other",
)
