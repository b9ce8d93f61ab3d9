"""Traces of the size that training runs give: threads that launch, streams that compute, copy and wait."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bragg.model import CallTree, FrameKind, FrameTable, Metric, MetricKind, Profile, SliceTable, TrackKind, TrackTable

_PATH = ("training", "step", "layer", "operator", "cuLaunchKernel")
_KINDS = (FrameKind.SCOPE, FrameKind.SCOPE, FrameKind.SCOPE, FrameKind.OPERATOR, FrameKind.GPU_API)
_LAUNCHES_A_LAYER, _LAYERS_A_STEP = 12, 24
_N_KERNELS = 40
_STREAMS = 3


def training_trace(n_slices: int, *, n_ranks: int = 2) -> Profile:
    """About `n_slices` slices of several processes with a GPU each; one thread launches to three streams."""
    names, kinds = _frames()
    kind = np.array(kinds, np.uint8)
    n_frames = len(names)
    device = np.where((kind == FrameKind.KERNEL) | (kind == FrameKind.MEMORY), 0, -1).astype(np.int32)
    frames = FrameTable(kind, names, [""] * n_frames, np.zeros(n_frames, np.int32), device)
    tree = CallTree(np.array(_parents(), np.int32), np.arange(n_frames, dtype=np.int32), frames)
    tables = [_rank(rank, n_slices // n_ranks) for rank in range(n_ranks)]
    slices = SliceTable.concatenate(tables).sorted()
    own = np.zeros(n_frames, np.int64)
    np.add.at(own, slices.node, np.where(device[slices.node] >= 0, slices.duration_ns, 0))
    metrics = {"gpu_time": Metric("gpu_time", "ns", MetricKind.INCLUSIVE, own)}
    profile = Profile({"data": "trace"}, tree, metrics, _tracks(n_ranks), slices)
    profile.check()
    return profile


def _frames() -> tuple[list[str], list[FrameKind]]:
    kernels = [f"void library::kernel_{row}<float, 128>(float*, int)" for row in range(_N_KERNELS - 1)]
    names = ["root", *_PATH, *kernels, "Memcpy HtoD"]
    return names, [FrameKind.ROOT, *_KINDS, *[FrameKind.KERNEL] * (_N_KERNELS - 1), FrameKind.MEMORY]


def _parents() -> list[int]:
    return [-1, *range(len(_PATH)), *[len(_PATH)] * _N_KERNELS]


def _tracks(n_ranks: int) -> TrackTable:
    rows = n_ranks * (1 + _STREAMS)
    is_thread = np.arange(rows) % (1 + _STREAMS) == 0
    return TrackTable(
        kind=np.where(is_thread, TrackKind.HOST_THREAD, TrackKind.GPU_STREAM).astype(np.uint8),
        process=np.repeat(np.arange(n_ranks) + 4000, 1 + _STREAMS).astype(np.int32),
        device=np.where(is_thread, -1, np.repeat(np.arange(n_ranks), 1 + _STREAMS)).astype(np.int32),
        context=np.zeros(rows, np.int64),
        stream=(np.arange(rows) % (1 + _STREAMS) + 6).astype(np.int64),
        name=[""] * rows,
    )


def _rank(rank: int, n_slices: int) -> SliceTable:
    """Each launch is an operator, a call and a kernel; layers and steps lie around them."""
    random = np.random.default_rng(rank)
    n_launches = n_slices // 3
    gap_ns = random.integers(500, 4000, n_launches)
    gap_ns[:: _LAUNCHES_A_LAYER * _LAYERS_A_STEP] += 400_000
    start = np.cumsum(gap_ns + 5000)
    kernel_ns = random.lognormal(8.3, 0.7, n_launches).astype(np.int64)
    stream = np.where(random.random(n_launches) < 0.8, 0, random.integers(1, _STREAMS, n_launches))
    begins = _after_each_other(start + random.integers(4000, 9000, n_launches), kernel_ns, stream)
    kernel = len(_PATH) + 1 + np.minimum(random.zipf(1.6, n_launches) - 1, _N_KERNELS - 1)
    thread = rank * (1 + _STREAMS)
    ids = np.arange(1, n_launches + 1) + rank * n_launches
    none = np.zeros(n_launches, np.int64)
    parts = [
        _column(start, np.full(n_launches, 4800), 4, thread, none),
        _column(start + 800, np.full(n_launches, 3000), 5, thread, ids),
        _column(begins, kernel_ns, kernel, thread + 1 + stream, ids),
        *(_around(start, size, node, thread) for node, size in ((3, _LAUNCHES_A_LAYER), (2, 288), (1, n_launches))),
    ]
    return SliceTable.concatenate(parts)


def _after_each_other(
    wanted: NDArray[np.int64], length: NDArray[np.int64], stream: NDArray[np.int64]
) -> NDArray[np.int64]:
    """When each kernel begins if its stream runs one at a time."""
    begins: NDArray[np.int64] = wanted.copy()
    for number in range(_STREAMS):
        rows = np.flatnonzero(stream == number)
        before = np.concatenate([[0], np.cumsum(length[rows])[:-1]])
        begins[rows] = before + np.maximum.accumulate(wanted[rows] - before)
    return begins


def _around(start: NDArray[np.int64], size: int, node: int, track: int) -> SliceTable:
    """A slice around each group of launches."""
    first = start[::size]
    last = start[np.minimum(np.arange(len(first)) * size + size - 1, len(start) - 1)]
    return _column(first - 100 * (5 - node), last + 4800 + 200 * (5 - node) - first, node, track, np.zeros(len(first)))


def _column(
    start: NDArray[np.int64], duration: NDArray[np.int64], node: object, track: object, ids: object
) -> SliceTable:
    shape = len(start)
    return SliceTable(
        start_ns=start + 1_700_000_000_000_000_000,
        duration_ns=duration,
        node=np.broadcast_to(np.asarray(node), shape),
        track=np.broadcast_to(np.asarray(track), shape),
        correlation=np.broadcast_to(np.asarray(ids), shape),
    )
