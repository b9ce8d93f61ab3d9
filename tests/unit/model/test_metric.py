from __future__ import annotations

import numpy as np
import pytest

from bragg.model import Combine, Metric, MetricKind


def test_gather_adds_what_becomes_one_node_and_drops_the_rest() -> None:
    metric = Metric("gpu_time", "ns", MetricKind.INCLUSIVE, np.array([1, 2, 4, 8]))
    moved = metric.gather(np.array([0, 1, 1, -1]), 3)
    assert moved.own.tolist() == [1, 6, 0]
    assert moved.own.dtype == np.int64


def test_gather_of_a_property_ignores_nodes_without_a_value() -> None:
    metric = Metric("gpu_time_min", "ns", MetricKind.PROPERTY, np.array([np.nan, 5, 3, np.nan]), Combine.MIN)
    moved = metric.gather(np.array([0, 1, 1, 1]), 2)
    assert np.isnan(moved.own[0])
    assert moved.own[1] == 3
    assert moved.has_value.tolist() == [False, True]


@pytest.mark.parametrize(("kind", "combine"), [(MetricKind.PROPERTY, Combine.SUM), (MetricKind.INCLUSIVE, Combine.MAX)])
def test_properties_cannot_be_added_and_sums_cannot_be_extremes(kind: MetricKind, combine: Combine) -> None:
    with pytest.raises(ValueError, match=f"{kind.value} metric cannot combine by {combine.value}"):
        Metric("x", "1", kind, np.array([1]), combine)


def test_whole_numbers_above_2_to_53_stay_exact() -> None:
    metric = Metric("gpu_time", "ns", MetricKind.INCLUSIVE, np.array([2**53, 1]))
    assert metric.gather(np.array([0, 0]), 1).own.tolist() == [2**53 + 1]
