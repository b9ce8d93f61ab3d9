"""The time of each module of a PyTorch model: forward, backward and optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bragg.errors import UsageError
from bragg.grouping.regions import ACCUMULATION, BACKWARD, BACKWARD_REGION, OPTIMIZER
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray, Int64Array
from bragg.model.transform import innermost, with_descendants
from bragg.model.tree import CallTree, FrameKind

PHASES = ("forward", "backward", "optimizer")

_FORWARD, _BACKWARD, _OPTIMIZER = range(3)
# The state of what activation checkpoints run again.
_RECOMPUTATION = "[recompute]"


def group_by_module(profile: Profile, metric: str) -> Profile:
    """The profile over its modules alone, and optimizers beside them.

    What ran in a module is split into metrics of its phases: `forward`, `backward` and `optimizer`. `host_count` has
    the calls of the modules themselves. Modules are named by path and class.

    Args:
        profile: A recording with modules.
        metric: Name of the metric to split, one that adds up.

    Raises:
        UsageError: No module was recorded, or the metric does not add up.
    """
    tree = profile.tree
    classes = _module_classes(profile)
    if not any(classes):
        raise UsageError("no module of PyTorch was recorded", hint="Record with: bragg run --modules")
    split = profile.metrics.get(metric)
    if split is None or split.kind is not MetricKind.INCLUSIVE:
        hint = f"Name one first that does, such as {profile.main_metric}"
        raise UsageError(f"{metric!r} is not a metric of this profile that adds up", hint=hint)
    begun = _phase_begun(profile, classes)[tree.frame]
    # Modules that are computed again in a backward pass are part of it.
    in_backward = with_descendants(tree, begun == _BACKWARD)
    phase = innermost(tree, np.where(in_backward & (begun == _FORWARD), -1, begun))
    if metric == "host_time" and profile.measured("gpu_time"):
        split = _once(split, tree, phase == _BACKWARD)
    phases = {name: _part(split, name, phase == number) for number, name in enumerate(PHASES)}
    is_row = np.isin(begun, (_FORWARD, _OPTIMIZER))
    calls = {name: _part(profile.metrics[name], name, is_row) for name in ("host_count",) if name in profile.metrics}
    with_phases = replace(profile, metrics={**profile.metrics, metric: split, **calls, **phases})
    grouped = regroup(_with_recomputation_in_place(tree, is_row), folded=~is_row).apply(with_phases)
    shown = {name: _shown_name(name, kind) for name, kind in zip(tree.frames.name, classes, strict=True)}
    renamed = grouped.tree.frames.replace(name=[shown[name] for name in grouped.tree.frames.name])
    return replace(grouped, tree=CallTree(grouped.tree.parent, grouped.tree.frame, renamed))


def _module_classes(profile: Profile) -> list[str]:
    """The class of each frame that is a module; empty of all others: [n_frames]."""
    described, frames = profile.run.attributes, profile.tree.frames
    return [
        str(described.get(name, {}).get("module", "")) if kind == FrameKind.SCOPE else ""
        for kind, name in zip(frames.kind.tolist(), frames.name, strict=True)
    ]


def _phase_begun(profile: Profile, classes: Sequence[str]) -> Int64Array:
    """The phase that each frame begins, as an index of `PHASES`; -1: none: [n_frames]."""
    described, names = profile.run.attributes, profile.tree.frames.name
    begun = np.full(len(names), -1)
    begun[[name.startswith(OPTIMIZER) or "updates" in described.get(name, {}) for name in names]] = _OPTIMIZER
    begun[[name.startswith((BACKWARD, ACCUMULATION, BACKWARD_REGION)) for name in names]] = _BACKWARD
    begun[[bool(module_class) for module_class in classes]] = _FORWARD
    return begun


def _once(metric: Metric, tree: CallTree, is_backward: BoolArray) -> Metric:
    """Host time in which the thread that called `backward` has not just waited for that which ran the operators.

    Args:
        metric: The host time.
        tree: The call tree.
        is_backward: bool [n_nodes]: what ran in backward passes.
    """
    waits = np.array([name == BACKWARD_REGION for name in tree.frames.name], np.bool_)[tree.frame]
    waited, ran = float(metric.own[waits].sum()), float(metric.own[is_backward & ~waits].sum())
    left = max(1 - ran / waited, 0.0) if waited else 0.0
    return replace(metric, own=np.where(waits, np.rint(metric.own * left).astype(metric.own.dtype), metric.own))


def _with_recomputation_in_place(tree: CallTree, is_row: BoolArray) -> CallTree:
    """The tree with what checkpoints call again where it was called first, not in the module that needed it.

    Args:
        tree: The call tree.
        is_row: bool [n_nodes]: modules and optimizers.
    """
    row = innermost(tree, np.where(is_row, np.arange(len(tree)), -1))
    row_above = np.where(tree.parent < 0, -1, row[tree.parent])
    is_recompute = np.array([name == _RECOMPUTATION for name in tree.frames.name], np.bool_)[tree.frame]
    again = is_row & with_descendants(tree, is_recompute)
    first = np.flatnonzero(is_row & ~again)
    frame = tree.frame.tolist()
    above_first = zip(first.tolist(), row_above[first].tolist(), strict=True)
    calls = {(frame[above] if above >= 0 else -1, frame[node]) for node, above in above_first}
    parent = tree.parent.copy()
    for node in np.flatnonzero(again).tolist():
        above = int(row_above[node])
        while above >= 0 and frame[above] != frame[node] and (frame[above], frame[node]) not in calls:
            above = int(row_above[above])
        if above >= 0 and frame[above] == frame[node]:
            above = int(row_above[above])
        elif above < 0 and (-1, frame[node]) not in calls:
            continue
        row_above[node] = above
        parent[node] = max(above, 0)
    return CallTree(parent, tree.frame, tree.frames)


def _shown_name(name: str, module_class: str) -> str:
    """A module with its class, unless it is named by it; an optimizer without PyTorch's word for the range."""
    if module_class:
        return name if name == module_class else f"{name} ({module_class})"
    return name.partition("#")[2] if name.startswith(OPTIMIZER) else name


def _part(metric: Metric, name: str, mask: BoolArray) -> Metric:
    own = np.where(mask, metric.own, 0)
    return Metric(name, metric.unit, metric.kind, own, metric.combine, counted=mask & metric.has_value)
