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
from bragg.model.transform import with_descendants
from bragg.model.tree import CallTree, FrameKind

__all__ = ["PHASES", "group_by_module"]

PHASES = ("forward", "backward", "optimizer")


def group_by_module(profile: Profile, metric: str) -> Profile:
    """The profile over its modules alone, and optimizers beside them.

    What ran in a module is split into metrics of its phases: `forward`, `backward` and `optimizer`.

    Args:
        profile: A recording with modules.
        metric: Name of the metric to split, one that adds up.

    Raises:
        UsageError: No module was recorded, or the metric does not add up.
    """
    tree = profile.tree
    described = profile.meta.get("attributes", {})
    is_module = (tree.kind == FrameKind.SCOPE) & _named(tree, lambda name: "module" in described.get(name, {}))
    if not is_module.any():
        raise UsageError("no module of PyTorch was recorded", hint="Record with: bragg run --modules")
    split = profile.metrics.get(metric)
    if split is None or split.kind is not MetricKind.INCLUSIVE:
        raise UsageError(f"{metric!r} is no metric of this profile that adds up", hint="Try: bragg view --list")
    optimizer = _named(tree, lambda name: name.startswith(OPTIMIZER))
    backward = with_descendants(tree, _named(tree, lambda name: name.startswith((BACKWARD, ACCUMULATION))))
    in_optimizer = with_descendants(tree, optimizer) & ~backward
    masks = (with_descendants(tree, is_module) & ~backward & ~in_optimizer, backward, in_optimizer)
    phases = {phase: _part(split, phase, mask) for phase, mask in zip(PHASES, masks, strict=True)}
    with_phases = replace(profile, metrics={**profile.metrics, **phases})
    return regroup(tree, folded=~(is_module | optimizer)).apply(with_phases)


def _named(tree: CallTree, holds: Callable[[str], bool]) -> BoolArray:
    """Nodes whose name fulfils a condition: [n_nodes]."""
    return np.array([holds(name) for name in tree.frames.name], np.bool_)[tree.frame]


def _part(metric: Metric, name: str, mask: BoolArray) -> Metric:
    own = np.where(mask, metric.own, 0)
    return Metric(name, metric.unit, metric.kind, own, metric.combine)
