"""The time of each module of a PyTorch model: forward, backward and optimizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bragg.errors import UsageError
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile
from bragg.model.regions import ACCUMULATION, BACKWARD, OPTIMIZER
from bragg.model.regroup import regroup
from bragg.model.table import BoolArray
from bragg.model.transform import innermost, with_descendants
from bragg.model.tree import CallTree, FrameKind

__all__ = ["PHASES", "group_by_module"]

PHASES = ("forward", "backward", "optimizer")

_MODULE, _OPTIMIZER = range(2)


def group_by_module(profile: Profile, metric: str) -> Profile:
    """The profile over its modules alone, and optimizers beside them.

    What ran in a module is split into metrics of its phases: `forward`, `backward` and `optimizer`. Modules are named
    by path and class.

    Args:
        profile: A recording with modules.
        metric: Name of the metric to split, one that adds up.

    Raises:
        UsageError: No module was recorded, or the metric does not add up.
    """
    tree = profile.tree
    described = profile.meta.get("attributes", {})
    frames = tree.frames
    classes = [
        str(described.get(name, {}).get("module", "")) if kind == FrameKind.SCOPE else ""
        for kind, name in zip(frames.kind.tolist(), frames.name, strict=True)
    ]
    if not any(classes):
        raise UsageError("no module of PyTorch was recorded", hint="Record with: bragg run --modules")
    split = profile.metrics.get(metric)
    if split is None or split.kind is not MetricKind.INCLUSIVE:
        raise UsageError(f"{metric!r} is no metric of this profile that adds up", hint="Try: bragg view --list")
    updates = ["updates" in described.get(name, {}) for name in frames.name]
    marks = [_mark(*frame) for frame in zip(classes, updates, frames.name, strict=True)]
    mark = np.array(marks, np.int64)[tree.frame]
    nearest = innermost(tree, mark)
    # What is computed again in a backward pass is part of it.
    backward = with_descendants(tree, _named(tree, lambda name: name.startswith((BACKWARD, ACCUMULATION))))
    masks = ((nearest == _MODULE) & ~backward, backward, (nearest == _OPTIMIZER) & ~backward)
    phases = {phase: _part(split, phase, mask) for phase, mask in zip(PHASES, masks, strict=True)}
    with_phases = replace(profile, metrics={**profile.metrics, **phases})
    grouped = regroup(tree, folded=mark < 0).apply(with_phases)
    shown = {name: _shown_name(name, kind) for name, kind in zip(frames.name, classes, strict=True)}
    renamed = grouped.tree.frames.replace(name=[shown[name] for name in grouped.tree.frames.name])
    return replace(grouped, tree=CallTree(grouped.tree.parent, grouped.tree.frame, renamed))


def _mark(module_class: str, is_update: bool, name: str) -> int:
    """What a frame is: `_MODULE`, `_OPTIMIZER`, or -1."""
    if module_class:
        return _MODULE
    return _OPTIMIZER if is_update or name.startswith(OPTIMIZER) else -1


def _shown_name(name: str, module_class: str) -> str:
    """A module with its class, unless it is named by it; an optimizer without PyTorch's word for the range."""
    if module_class:
        return name if name == module_class else f"{name} ({module_class})"
    return name.partition("#")[2] if name.startswith(OPTIMIZER) else name


def _named(tree: CallTree, holds: Callable[[str], bool]) -> BoolArray:
    """Nodes whose name fulfils a condition: [n_nodes]."""
    return np.array([holds(name) for name in tree.frames.name], np.bool_)[tree.frame]


def _part(metric: Metric, name: str, mask: BoolArray) -> Metric:
    own = np.where(mask, metric.own, 0)
    return Metric(name, metric.unit, metric.kind, own, metric.combine)
