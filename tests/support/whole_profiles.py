"""A profile that has something for every view of the report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.model import CallTree, FrameKind, Metric, MetricKind, Profile, SliceTable, TrackKind, TrackTable
from tests.support.sampled_kernels import KEY, sampled_profile
from tests.support.work import H200

KERNEL = "softmax<BLOCK=1024 w4 s3>"


def whole_profile(kernel: str = KERNEL) -> Profile:
    """Samples and code of a kernel, work for the roofline, launches on a timeline.

    Args:
        kernel: What the hottest kernel is called.
    """
    profile = sampled_profile()
    frames = profile.tree.frames
    names = [kernel if name == KERNEL else name for name in frames.name]
    device = np.where(frames.kind == FrameKind.KERNEL, 0, -1).astype(np.int32)
    tree = CallTree(profile.tree.parent, profile.tree.frame, frames.replace(name=names, device=device))
    kernels = np.flatnonzero(tree.kind == FrameKind.KERNEL)
    work = {"flops16": 3e9, "bytes": 2e7}
    own = {name: np.where(tree.kind == FrameKind.KERNEL, amount, 0.0) for name, amount in work.items()}
    metrics = {name: Metric(name, "1", MetricKind.INCLUSIVE, values) for name, values in own.items()}
    return replace(
        profile,
        tree=tree,
        meta={"devices": [H200], "attributes": {kernel: {"code": KEY}}},
        metrics={**profile.metrics, **metrics},
        tracks=_tracks(),
        slices=_slices(kernels),
    )


def _tracks() -> TrackTable:
    return TrackTable(
        kind=np.array([TrackKind.HOST_THREAD, TrackKind.GPU_STREAM], np.uint8),
        process=np.full(2, 42, np.int32),
        device=np.array([-1, 0], np.int32),
        context=np.zeros(2, np.int64),
        stream=np.array([42, 7]),
        name=["", ""],
    )


def _slices(kernels: np.ndarray) -> SliceTable:
    """A launch every 10 us, and its kernel 4 us later."""
    start_ns = 10_000 * np.arange(len(kernels))
    return SliceTable(
        start_ns=np.concatenate([start_ns, start_ns + 4000]),
        duration_ns=np.concatenate([np.full(len(kernels), 2000), np.full(len(kernels), 5000)]),
        node=np.concatenate([np.ones(len(kernels)), kernels]).astype(np.int32),
        track=np.repeat([0, 1], len(kernels)).astype(np.int32),
        correlation=np.tile(np.arange(1, len(kernels) + 1), 2),
    ).sorted()
