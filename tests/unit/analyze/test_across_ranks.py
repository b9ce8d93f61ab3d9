from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.across_ranks import imbalance_of, on_one_device, spread_of, with_rank_values
from bragg.errors import UsageError
from bragg.model import Metric, MetricKind, Profile
from bragg.model.merge import merge_with_parts
from bragg.model.regroup import regroup
from tests.support.profiles import profile_from_text

RANKS = (
    "root\n  step\n    a 10us\n    b 10us",
    "root\n  step\n    a 40us\n    b 10us",
    "root\n  step\n    b 10us\n  only 1us",
)


def job() -> Profile:
    return with_rank_values(merge_with_parts([profile_from_text(text) for text in RANKS]), [4, 5, 9], "gpu_time")


def node_of(profile: Profile, name: str) -> int:
    return next(node for node in range(len(profile.tree)) if profile.tree.label(node) == name)


def test_each_row_has_mean_extremes_and_imbalance() -> None:
    profile = job()
    spread = spread_of(profile, "gpu_time")
    node = node_of(profile, "step")
    assert profile.inclusive("gpu_time_mean")[node] == pytest.approx(80_000 / 3)
    assert profile.inclusive("gpu_count_mean")[node] == pytest.approx(5 / 3)
    assert (spread.mean[node], spread.largest[node], spread.smallest[node]) == (
        pytest.approx(80_000 / 3),
        50_000,
        10_000,
    )
    assert (spread.worst[node], spread.best[node]) == (5, 9)
    assert spread.imbalance[node] == pytest.approx(50 * 3 / 80 - 1)
    only = node_of(profile, "only")
    assert (spread.worst[only], spread.smallest[only], spread.imbalance[only]) == (9, 0, pytest.approx(2))


def test_extremes_of_folded_nodes_are_those_of_their_sums() -> None:
    """Each of `a` and `b` may be worst elsewhere than both together."""
    texts = ("root\n  a 30us\n  b 10us", "root\n  a 10us\n  b 20us")
    profile = with_rank_values(merge_with_parts([profile_from_text(text) for text in texts]), [0, 1], "gpu_time")
    folded = np.zeros(len(profile.tree), np.bool_)
    folded[1:] = True
    whole = regroup(profile.tree, folded=folded).apply(profile)
    spread = spread_of(whole, "gpu_time")
    assert (spread.largest[0], spread.worst[0], spread.smallest[0]) == (40_000, 0, 30_000)


def test_rank_without_the_metric_counts_as_zero() -> None:
    profiles = [profile_from_text("root\n  a 10us"), profile_from_text("root\n  a host=1us")]
    spread = spread_of(with_rank_values(merge_with_parts(profiles), [0, 1], "gpu_time"), "gpu_time")
    assert (spread.mean[0], spread.smallest[0], spread.best[0]) == (5_000, 0, 1)


def test_balanced_and_empty_rows() -> None:
    assert imbalance_of(np.array([[2.0, 0.0, 1.0], [2.0, 0.0, 3.0]])).tolist() == [
        0.0,
        pytest.approx(np.nan, nan_ok=True),
        0.5,
    ]


def test_metric_that_does_not_add_up_is_refused() -> None:
    merged = merge_with_parts([profile_from_text("root\n  a 10us")])
    merged.profile.metrics["p"] = Metric("p", "1", MetricKind.EXCLUSIVE, np.zeros(len(merged.profile.tree), np.int64))
    with_rank_values(merged, [0], "p")
    with pytest.raises(UsageError, match="no values of ranks"):
        spread_of(merged.profile, "gpu_time")


def test_kernels_of_ranks_with_a_gpu_each_are_the_same_row() -> None:
    ranks = [on_one_device(profile_from_text(f"root\n  a 10us @{device}")) for device in (0, 3)]
    assert len(merge_with_parts(ranks).profile.tree) == 2
    both = profile_from_text("root\n  a 10us @2\n  b 10us @3")
    assert on_one_device(both) is both
