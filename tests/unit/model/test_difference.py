from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.model import Combine, Metric, MetricKind, Profile
from bragg.model.difference import aligned
from tests.support.profiles import profile_from_text, tree_to_text

BEFORE = "root\n  a\n    k 5ns\n  gone\n    k 1ns"
AFTER = "root\n  new\n    k 2ns\n  a\n    k 9ns bytes=4"


def with_metric(text: str, unit: str, kind: MetricKind, *values: float) -> Profile:
    profile = profile_from_text(text)
    combine = Combine.MAX if kind is MetricKind.PROPERTY else Combine.SUM
    return replace(profile, metrics={"m": Metric("m", unit, kind, np.array(values), combine)})


def test_both_profiles_have_the_call_paths_of_either() -> None:
    one, other = aligned(profile_from_text(BEFORE), profile_from_text(AFTER))
    assert one.tree is other.tree
    assert tree_to_text(one) == "root\n  a\n    k 5ns\n  gone\n    k 1ns\n  new\n    k"
    assert tree_to_text(other) == "root\n  a\n    k 9ns bytes=4\n  gone\n    k\n  new\n    k 2ns"
    one.check()
    other.check()


def test_metric_that_one_lacks_is_zero_there() -> None:
    one, other = aligned(profile_from_text(BEFORE), profile_from_text(AFTER))
    assert (one.total("gpu_bytes"), other.total("gpu_bytes")) == (0, 4)
    assert one.metrics["gpu_bytes"].name == "gpu_bytes"


def test_property_that_one_lacks_has_no_value_there() -> None:
    one, other = aligned(
        profile_from_text("root\n  a 1ns"), with_metric("root\n  a 1ns", "", MetricKind.PROPERTY, np.nan, 7)
    )
    assert np.isnan(one.own("m")).all()
    assert other.own("m")[1] == 7


def test_later_profile_decides_how_a_metric_behaves() -> None:
    before = with_metric("root\n  a 1ns", "us", MetricKind.EXCLUSIVE, 0, 3)
    after = with_metric("root\n  a 1ns", "us", MetricKind.PROPERTY, np.nan, 4)
    one, other = aligned(before, after)
    assert one.metrics["m"].kind is MetricKind.PROPERTY
    assert np.array_equal(one.own("m"), [np.nan, 3], equal_nan=True)
    one, other = aligned(after, before)
    assert other.metrics["m"].kind is MetricKind.EXCLUSIVE
    assert one.own("m").tolist() == [0, 4]


def test_different_units_are_said() -> None:
    sides = [with_metric("root\n  a 1ns", unit, MetricKind.EXCLUSIVE, 0, 3) for unit in ("us", "ms")]
    with pytest.raises(UsageError, match="metric 'm' is in us before, in ms after"):
        aligned(*sides)
