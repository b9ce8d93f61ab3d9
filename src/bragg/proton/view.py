"""A profile as Proton would have recorded it: less than bragg did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bragg.formats.hatchet import to_tree
from bragg.model import CallTree, DurationTable, FrameKind, KernelTable, Metric, MetricKind, Profile
from bragg.model.kernel_name import base_name
from bragg.model.regroup import regroup
from bragg.proton.metric_values import TEXT_UNIT, text_of, written_name

__all__ = ["CAPTURED_BEFORE", "has_texts", "proton_tree", "proton_view"]

CAPTURED_BEFORE = "<captured before recording>"
_SHOWN_KINDS = (FrameKind.ROOT, FrameKind.SCOPE, FrameKind.STATE, FrameKind.PYTHON, FrameKind.KERNEL)
# Proton has nothing like them.
_DROPPED_KINDS = (FrameKind.MEMORY, FrameKind.MARKER)
_DROPPED_METRICS = (
    *("gpu_time_min", "gpu_time_max", "gpu_bytes"),
    *("host_time", "host_count", "samples", "marker_time", "marker_count"),
)
_COUNT, _GPU_COUNT = "count", "gpu_count"


def proton_tree(profile: Profile | None) -> list[Any]:
    """The call tree and the devices, as JSON values in Proton's structure.

    Args:
        profile: As it was recorded; None: nothing was.
    """
    if profile is None:
        return [{"frame": {"name": "ROOT", "type": "function"}, "metrics": {}, "children": []}, {}]
    tree = to_tree(proton_view(profile))
    if has_texts(profile):
        _insert_texts(tree[0])
    return tree


def has_texts(profile: Profile) -> bool:
    """Whether values of metrics are texts, which a profile cannot hold."""
    return any(metric.unit == TEXT_UNIT for metric in profile.metrics.values())


def proton_view(profile: Profile) -> Profile:
    """The profile with the frames and metrics that Proton knows.

    Copies, operators and marks are left out; kernels go by their names without a specialization.
    """
    tree = _renamed(profile.tree)
    kind = tree.kind
    before = np.array([name == CAPTURED_BEFORE for name in tree.frames.name], np.bool_)[tree.frame]
    folded = ~np.isin(kind, (*_SHOWN_KINDS, *_DROPPED_KINDS)) | before
    moved = regroup(tree, folded=folded, dropped=np.isin(kind, _DROPPED_KINDS))
    renamed = replace(profile, tree=tree, kernels=KernelTable.empty(), durations=DurationTable.empty())
    viewed = moved.apply(renamed)
    return replace(viewed, metrics=_metrics(viewed))


def _renamed(tree: CallTree) -> CallTree:
    """The tree with each kernel under its base name; the specializations of one kernel share a frame."""
    frames = tree.frames
    is_kernel = (frames.kind == FrameKind.KERNEL).tolist()
    names = [base_name(name) if known else name for name, known in zip(frames.name, is_kernel, strict=True)]
    rows = zip(frames.kind.tolist(), names, frames.file, frames.line.tolist(), frames.device.tolist(), strict=True)
    first: dict[tuple[Any, ...], int] = {}
    representative = np.array([first.setdefault(row, number) for number, row in enumerate(rows)], np.int32)
    return CallTree(tree.parent, representative[tree.frame], frames.replace(name=names))


def _metrics(profile: Profile) -> dict[str, Metric]:
    """Time and count of kernels, and what the program recorded."""
    found: dict[tuple[str, str], Metric] = {}
    for metric in profile.metrics.values():
        if metric.name in _DROPPED_METRICS or not metric.has_value.any():
            continue
        name = _GPU_COUNT if metric.name == _COUNT else written_name(metric.name)
        key = name, metric.unit
        found[key] = replace(_joined(found[key], metric) if key in found else metric, name=name)
    return {f"{name} ({unit})": metric for (name, unit), metric in found.items()}


def _joined(first: Metric, second: Metric) -> Metric:
    """Two metrics of one name as one."""
    if first.kind is MetricKind.PROPERTY:
        return first.with_own(np.where(second.has_value, second.own, first.own))
    return first.with_own(first.own + np.nan_to_num(second.own))


def _insert_texts(root: dict[str, Any]) -> None:
    """Put texts in the place of the numbers that stand for them."""
    suffix = f" ({TEXT_UNIT})"
    pending = [root]
    while pending:
        node = pending.pop()
        metrics = node["metrics"]
        for key in [key for key in metrics if key.endswith(suffix)]:
            metrics[key.removesuffix(suffix)] = text_of(metrics.pop(key))
        pending.extend(node["children"])
