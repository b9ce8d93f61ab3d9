"""Recordings of real programs on an H100, and what their timelines say, computed the slow and plain way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bragg import formats
from bragg.analyze.causes.evidence import Evidence
from bragg.analyze.idle_paths import with_idle_paths
from bragg.data import sample as packed_sample
from bragg.model import IdleKind, IdleTable, Profile, SliceTable, TrackKind

__all__ = ["RECORDINGS", "SAMPLE", "busy_ns", "curve", "gpu_work", "without_timeline"]

_ROOT = Path(__file__).parents[2]
RECORDINGS = sorted((_ROOT / "tests/golden/recordings").glob("*.bragg"))
DEFAULT_RECORDINGS = sorted((_ROOT / "tests/golden/recordings/default").glob("*.bragg"))
_UNPACKED = TemporaryDirectory()
SAMPLE = Path(_UNPACKED.name, packed_sample.SAMPLE)
formats.export(packed_sample.sample(), "bragg", SAMPLE)


def gpu_work(profile: Profile) -> list[tuple[int, int]]:
    """Start and end of all that ran on the GPU, ordered."""
    slices = profile.slices.take((profile.tracks.kind == TrackKind.GPU_STREAM)[profile.slices.track])
    return sorted(zip(slices.start_ns.tolist(), (slices.start_ns + slices.duration_ns).tolist(), strict=True))


def busy_ns(profile: Profile, start_ns: int, end_ns: int) -> int:
    """How long anything ran between two times."""
    total, until = 0, start_ns
    for begins, ends in gpu_work(profile):
        total += max(min(ends, end_ns) - max(begins, until), 0)
        until = max(until, min(ends, end_ns))
    return total


def curve(profile: Profile, max_bins: int = 4096) -> dict[str, Any]:
    """What the recorder keeps of the work of one GPU where it keeps no timeline."""
    work = np.array(gpu_work(profile))
    start, last = int(work[0, 0]), int(work[:, 1].max())
    bin_ns = 1 << 17
    while (last - start) // bin_ns >= max_bins:
        bin_ns *= 2
    edges: NDArray[np.int64] = np.arange(start, last + bin_ns, bin_ns)
    begun = np.histogram(work[:, 0], edges)[0]
    busy = np.zeros(len(edges) - 1, np.int64)
    until = start
    for begins, ends in work.tolist():
        begins = max(begins, until)
        while begins < ends:
            at = (begins - start) // bin_ns
            stops = min(ends, start + (at + 1) * bin_ns)
            busy[at] += stops - begins
            begins = stops
        until = max(until, ends)
    return {"0": {"start_ns": start, "bin_ns": bin_ns, "busy_ns": busy.tolist(), "launches": begun.tolist()}}


def without_timeline(profile: Profile) -> Profile:
    """As a recording by default: idle time of the steady state by node in one bin, and no slices."""
    evidence = Evidence(profile)
    assert evidence.idle_ns is not None
    assert evidence.steady is not None
    queued, _ = evidence.idle_elsewhere_ns
    nodes = np.flatnonzero(evidence.idle_ns)
    n_rows = len(nodes) + 1
    idle_ns = np.append(evidence.idle_ns[nodes], queued).astype(np.int64)
    begins_ns, ends_ns = evidence.steady.begins_ns, evidence.steady.ends_ns
    zeros = np.zeros(n_rows, np.int64)
    found = with_idle_paths(profile, steady=evidence.steady)
    longest_ns = np.nan_to_num(found.metrics["gpu_idle_longest"].own[nodes]).astype(np.int64)
    table = IdleTable(
        process=zeros.astype(np.int32),
        device=zeros.astype(np.int32),
        kind=np.append(np.full(len(nodes), IdleKind.LATE), IdleKind.QUEUED).astype(np.int32),
        node=np.append(nodes, 0).astype(np.int32),
        start_ns=zeros + begins_ns,
        bin_ns=zeros + (ends_ns - begins_ns),
        count=np.append(found.own("gpu_idle_count")[nodes], 1).astype(np.int64),
        idle_ns=idle_ns,
        longest_ns=np.append(longest_ns, 0),
    )
    meta = {**profile.meta, "gpu_activity": curve(profile)}
    return replace(profile, slices=SliceTable.empty(), idle=table, meta=meta)
