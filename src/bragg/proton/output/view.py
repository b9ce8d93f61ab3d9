"""A profile as Proton would have recorded it: less than bragg did."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bragg
from bragg.formats.hatchet import to_tree
from bragg.model import CallTree, DurationTable, FrameKind, FrameTable, KernelTable, Metric, MetricKind, Profile
from bragg.model.kernels.names import base_name
from bragg.model.regroup import Regrouping, regroup
from bragg.proton.output.instruction_samples import with_lines_below_kernels, with_proton_metrics
from bragg.proton.recording.metric_values import TEXT_UNIT, text_of
from bragg.proton.state import COMPUTE_METADATA_SCOPE_NAME, COMPUTE_METADATA_SCOPE_PREFIX
from bragg.proton.upstream import ONE_METADATA_STATE
from bragg.record.inside.metric_values import plain_name

__all__ = ["CAPTURED_BEFORE", "has_texts", "proton_tree", "proton_view"]

_PACKAGE = Path(bragg.__file__).parent
_OWN_CODE = tuple(f"{_PACKAGE / name}{os.sep}" for name in ("proton", "record"))
# The core's labels of kernels of graphs.
CAPTURED_AT, CAPTURED_BEFORE = "<captured_at>", "<captured before recording>"
_SHOWN_KINDS = (FrameKind.ROOT, FrameKind.SCOPE, FrameKind.STATE, FrameKind.PYTHON, FrameKind.KERNEL, FrameKind.LINE)
# Proton has nothing like them.
_DROPPED_KINDS = (FrameKind.MEMORY, FrameKind.MARKER)
_DROPPED_METRICS = (
    *("gpu_time_min", "gpu_time_max", "gpu_bytes"),
    *("host_time", "host_count", "sync_time", "wait_time", "samples", "marker_time", "marker_count"),
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
    profile = with_lines_below_kernels(replace(profile, kernels=KernelTable.empty(), durations=DurationTable.empty()))
    tree = _renamed(profile.tree)
    kind = tree.kind
    ours = np.array([_is_ours(tree.frames, frame) for frame in range(len(tree.frames))], np.bool_)[tree.frame]
    folded = ~np.isin(kind, (*_SHOWN_KINDS, *_DROPPED_KINDS)) | ours
    moved = regroup(tree, folded=folded, dropped=np.isin(kind, _DROPPED_KINDS))
    placed = _with_metadata_by_kernel(_with_states_innermost(moved.apply(replace(profile, tree=tree))))
    viewed = with_proton_metrics(placed)
    return replace(viewed, metrics=_metrics(viewed))


def _with_metadata_by_kernel(profile: Profile) -> Profile:
    """The state of a kernel's metadata as two frames: `__proton_launch_metadata`, and below it the kernel."""
    tree, prefix = profile.tree, COMPUTE_METADATA_SCOPE_PREFIX
    named = [name.startswith(prefix) for name in tree.frames.name] & (tree.frames.kind == FrameKind.STATE)
    is_split = named[tree.frame]
    if not is_split.any():
        return profile
    target = np.arange(len(tree)) + np.cumsum(is_split)
    outer = target[is_split] - 1  # The added nodes precede those that they are above of.
    parent, frame = np.empty((2, len(tree) + len(outer)), np.int32)
    parent[target] = np.where(is_split, target - 1, target[tree.parent])
    parent[outer] = target[tree.parent[is_split]]
    parent[0] = -1
    is_outer = np.array([name == COMPUTE_METADATA_SCOPE_NAME for name in tree.frames.name]) & (
        tree.frames.kind == FrameKind.STATE
    )
    frame[target], frame[outer] = tree.frame, np.append(np.flatnonzero(is_outer), len(tree.frames))[0]
    added = FrameTable(
        np.array([FrameKind.STATE]), [COMPUTE_METADATA_SCOPE_NAME], [""], np.zeros(1, np.int32), np.full(1, -1)
    )
    names = [name.removeprefix(prefix) if each else name for name, each in zip(tree.frames.name, named, strict=True)]
    frames = FrameTable.concatenate([tree.frames.replace(name=names), added])
    split = Regrouping(CallTree(parent, frame, frames), target.astype(np.int32)).apply(profile)
    return regroup(split.tree).apply(split)


def _with_states_innermost(profile: Profile) -> Profile:
    """A state goes below the Python functions that were called in it, as Proton has it."""
    tree = profile.tree
    is_label = np.array([name == CAPTURED_AT for name in tree.frames.name], np.bool_)[tree.frame]
    is_state = (tree.kind == FrameKind.STATE) & ~is_label
    is_called = tree.kind == FrameKind.PYTHON
    if not is_state[tree.parent[is_called]].any():
        return profile
    frame = tree.frame.tolist()
    parents, frames, children = [-1], [frame[0]], dict[tuple[int, int], int]()

    def child(node: int, frame: int) -> int:
        found = children.setdefault((node, frame), len(parents))
        if found == len(parents):
            parents.append(node)
            frames.append(frame)
        return found

    target, states = [0], [-1]  # by old node: where its data goes, and the state that is still to be placed below it
    for node, above in enumerate(tree.parent[1:].tolist(), 1):
        if is_state[node]:
            target.append(target[above])
            states.append(frame[node])
            continue
        outer = target[above] if is_called[node] or states[above] < 0 else child(target[above], states[above])
        target.append(child(outer, frame[node]))
        states.append(states[above] if is_called[node] else -1)
    for node in np.flatnonzero(is_state).tolist():
        target[node] = child(target[node], frame[node])
    rebuilt = CallTree(np.array(parents, np.int32), np.array(frames, np.int32), tree.frames)
    return Regrouping(rebuilt, np.array(target, np.int32)).apply(profile)


def _is_ours(frames: FrameTable, frame: int) -> bool:
    """Whether a frame is a label or a function of bragg's, which Proton has none of."""
    if frames.kind[frame] == FrameKind.PYTHON:
        return frames.file[frame].startswith(_OWN_CODE)
    return frames.kind[frame] == FrameKind.STATE and frames.name[frame] == CAPTURED_BEFORE


def _renamed(tree: CallTree) -> CallTree:
    """The tree with Proton's names: all specializations of a kernel have one, and share a frame."""
    frames = tree.frames
    names = [_proton_name(FrameKind(kind), name) for kind, name in zip(frames.kind.tolist(), frames.name, strict=True)]
    rows = zip(frames.kind.tolist(), names, frames.file, frames.line.tolist(), frames.device.tolist(), strict=True)
    first: dict[tuple[Any, ...], int] = {}
    representative = np.array([first.setdefault(row, number) for number, row in enumerate(rows)], np.int32)
    return CallTree(tree.parent, representative[tree.frame], frames.replace(name=names))


def _proton_name(kind: FrameKind, name: str) -> str:
    if kind is FrameKind.KERNEL:
        return base_name(name)
    if kind is FrameKind.PYTHON:
        return name.rpartition(".")[2]  # without its class, and what it is defined in
    if kind is FrameKind.STATE and ONE_METADATA_STATE and name.startswith(COMPUTE_METADATA_SCOPE_PREFIX):
        return COMPUTE_METADATA_SCOPE_NAME
    return name


def _metrics(profile: Profile) -> dict[str, Metric]:
    """Time and count of kernels, and what the program recorded."""
    found: dict[tuple[str, str], Metric] = {}
    for metric in profile.metrics.values():
        if metric.name in _DROPPED_METRICS or not metric.has_value.any():
            continue
        name = _GPU_COUNT if metric.name == _COUNT else plain_name(metric.name)
        key = name, metric.unit
        found[key] = replace(_joined(found[key], metric) if key in found else metric, name=name)
    return {f"{name} ({unit})": metric for (name, unit), metric in found.items()}


def _joined(first: Metric, second: Metric) -> Metric:
    """Two metrics of one name as one."""
    if first.kind is MetricKind.PROPERTY:
        return first.with_own(np.where(second.has_value, second.own, first.own))
    return first.with_own(first.own + np.nan_to_num(second.own), first.has_value | second.has_value)


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
