"""Profiles over one call tree, so that their numbers can be compared node by node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bragg.errors import UsageError
from bragg.model.merge import merge
from bragg.model.metric import Metric, MetricKind
from bragg.model.profile import Profile


def aligned(before: Profile, after: Profile) -> tuple[Profile, Profile]:
    """Call tree, metrics and meta data of both profiles, over the call paths of either.

    A metric that only one profile has is there in the other too: zero, or without a value.

    Where they disagree on how a metric behaves along call paths, `after` decides.

    Raises:
        UsageError: They give one metric different units.
    """
    one, other = aligned_all([before, after])
    return one, other


def aligned_all(profiles: Sequence[Profile]) -> list[Profile]:
    """As `aligned`, for any number of profiles; the last one that has a metric decides how it behaves.

    Raises:
        UsageError: They give one metric different units.
    """
    together = merge([_marked(profile, number) for number, profile in enumerate(profiles)])
    sides: list[dict[str, Metric]] = [{} for _ in profiles]
    for marked, metric in together.metrics.items():
        number, _, name = marked.partition(":")
        sides[int(number)][name] = metric
    models = {name: metric for side in sides for name, metric in side.items()}
    return [
        Profile(
            profile.meta,
            together.tree,
            {name: _like(model, side[name]) if name in side else _empty(model) for name, model in models.items()},
        )
        for profile, side in zip(profiles, sides, strict=True)
    ]


def _marked(profile: Profile, number: int) -> Profile:
    """A tree whose metrics carry the number of their profile."""
    metrics = {f"{number}:{name}": metric for name, metric in profile.metrics.items()}
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


def _empty(metric: Metric) -> Metric:
    return metric.with_own(np.full_like(metric.own, np.nan if metric.kind is MetricKind.PROPERTY else 0))
