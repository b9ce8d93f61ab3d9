"""Two profiles over one call tree, so that their numbers can be compared node by node."""

from __future__ import annotations

import numpy as np

from bragg.errors import UsageError
from bragg.model.merge import merge
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile

__all__ = ["aligned"]


def aligned(before: Profile, after: Profile) -> tuple[Profile, Profile]:
    """Call tree, metrics and meta data of both profiles, over the call paths of either.

    A metric that only one profile has is there in the other too: zero, or without a value.

    Where they disagree on how a metric behaves along call paths, `after` decides.

    Raises:
        UsageError: They give one metric different units.
    """
    together = merge([_marked(before, "before"), _marked(after, "after")])
    sides = [
        {name.partition(":")[2]: metric for name, metric in together.metrics.items() if name.startswith(side)}
        for side in ("before:", "after:")
    ]
    for name in sides[0].keys() & sides[1].keys():
        sides[0][name] = _like(sides[1][name], sides[0][name])
    return (
        Profile(before.meta, together.tree, _completed(sides[0], sides[1])),
        Profile(after.meta, together.tree, _completed(sides[1], sides[0])),
    )


def _marked(profile: Profile, side: str) -> Profile:
    """A tree whose metrics carry the name of their side."""
    metrics = {f"{side}:{name}": metric for name, metric in profile.metrics.items()}
    return Profile({}, profile.tree, metrics)


def _like(model: Metric, metric: Metric) -> Metric:
    """The numbers of a metric as values of another one."""
    if metric.unit != model.unit:
        raise UsageError(
            f"metric {model.name!r} is in {metric.unit or 'no unit'} before, in {model.unit or 'no unit'} after",
            hint="Compare recordings that measure it alike",
        )
    if metric.kind is model.kind:
        return metric
    is_property = model.kind is MetricKind.PROPERTY
    return model.with_own(np.where(metric.has_value, metric.own, np.nan) if is_property else np.nan_to_num(metric.own))


def _completed(own: dict[str, Metric], other: dict[str, Metric]) -> dict[str, Metric]:
    """The metrics of one side, and empty ones for what only the other side has."""
    return {name: own.get(name) or _empty(other[name]) for name in dict.fromkeys([*own, *other])}


def _empty(metric: Metric) -> Metric:
    return metric.with_own(np.full_like(metric.own, np.nan if metric.kind is MetricKind.PROPERTY else 0))
