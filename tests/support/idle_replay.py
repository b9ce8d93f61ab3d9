"""A timeline replayed through the recorder's own fold of idle time: the same run as a recording without a timeline."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bragg.model import FrameKind, IdleTable, Profile, SliceTable, TrackKind

__all__ = ["replayed"]

_RECORD = np.dtype(
    [
        *((name, np.int64) for name in ("start_ns", "end_ns", "arrives_ns", "launched_ns")),
        *((name, np.uint32) for name in ("node", "thread", "kind", "device", "context", "stream")),
    ],
    align=True,
)
_ROW = np.dtype(
    [
        *((name, np.uint32) for name in ("device", "kind", "node", "unused")),
        ("start_ns", np.int64),
        *((name, np.uint64) for name in ("bin_ns", "count", "idle_ns", "longest_ns")),
    ]
)
_MAX_ROWS, _MAX_TEXT = 1 << 15, 1 << 22
_BUFFER, _LATEST_NS = 2048, 900_000_000  # records of a buffer, which comes up to so much later than its work ended


def replayed(profile: Profile, fakes_directory: Path) -> Profile:
    """The profile with what the native fold made of its timeline, and without that timeline.

    Host spans come as they end. Records of devices come in buffers, up to 0.9 s late and so out of order.
    """
    records = _records(profile)
    tree = profile.tree
    parent, kind = np.maximum(tree.parent, 0).astype(np.uint32), tree.kind.astype(np.uint32)
    rows, text = np.zeros(_MAX_ROWS, _ROW), ctypes.create_string_buffer(_MAX_TEXT)
    library = ctypes.CDLL(str(fakes_directory / "libidle_replay.so"))
    library.idle_replay.restype = ctypes.c_int64
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (parent, kind, records, rows))
    parents, kinds, taken, found = pointers
    n_rows = library.idle_replay(
        *(ctypes.c_size_t(len(tree)), parents, kinds),
        *(ctypes.c_size_t(len(records)), taken),
        *(ctypes.c_size_t(_MAX_ROWS), found, ctypes.c_size_t(_MAX_TEXT), text),
    )
    assert n_rows >= 0
    columns = {name: rows[name][:n_rows] for name in _ROW.names or () if name != "unused"}
    idle = IdleTable(process=np.zeros(n_rows, np.int32), **columns)
    meta = {**profile.meta, "gpu_activity": json.loads(text.value)}
    return replace(profile, slices=SliceTable.empty(), idle=idle, meta=meta)


def _records(profile: Profile) -> NDArray[np.void]:
    tracks, slices, tree = profile.tracks, profile.slices, profile.tree
    kind = tracks.kind[slices.track]
    host, work = (np.flatnonzero(kind == which) for which in (TrackKind.HOST_THREAD, TrackKind.GPU_STREAM))
    ends_ns = slices.start_ns + slices.duration_ns
    is_launch = (tree.kind[slices.node] == FrameKind.GPU_API) & (slices.correlation != 0)
    node = np.where(is_launch, np.maximum(tree.parent[slices.node], 0), slices.node)  # the recorder's is the caller's
    launch_of = dict(zip(slices.correlation[host].tolist(), host.tolist(), strict=True))
    launch = np.array([launch_of.get(each, -1) for each in slices.correlation[work].tolist()], np.int64)
    launch[slices.correlation[work] == 0] = -1

    found = np.zeros(len(host) + len(work), _RECORD)
    of_host, of_work = found[: len(host)], found[len(host) :]
    for part, chosen in ((of_host, host), (of_work, work)):
        part["start_ns"], part["end_ns"] = slices.start_ns[chosen], ends_ns[chosen]
        part["arrives_ns"] = ends_ns[chosen]
    of_host["node"], of_host["thread"] = node[host], slices.track[host]
    of_host["kind"] = np.where(is_launch[host], 3, 0)
    known = launch >= 0
    of_work["launched_ns"] = np.where(known, ends_ns[launch], 0)
    of_work["node"], of_work["thread"] = np.where(known, node[launch], 0), slices.track[launch]
    is_copy = np.array([name.startswith("copy") for name in tree.frames.name])[tree.frame[slices.node[work]]]
    of_work["kind"] = np.where(is_copy, 2, 1)
    for name in ("device", "context", "stream"):
        of_work[name] = getattr(tracks, name)[slices.track[work]]
    by_end = np.argsort(of_work["end_ns"], kind="stable")
    lateness = np.random.default_rng(7).integers(0, _LATEST_NS, len(work) // _BUFFER + 1)
    of_work["arrives_ns"][by_end] += lateness[np.arange(len(work)) // _BUFFER]
    ordered: NDArray[np.void] = found[np.argsort(found["arrives_ns"], kind="stable")]
    return ordered
