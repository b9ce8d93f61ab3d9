"""Laws of derived metrics, on random trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.analyze.derived import evaluate, with_roof_time
from bragg.model import Metric, MetricKind, Profile
from tests.support.random_profiles import trees
from tests.support.work import B200, H200


@st.composite
def working_profiles(draw: st.DrawFn) -> Profile:
    """A tree whose nodes, kernels or not, have any time, flops and bytes."""
    tree = draw(trees())

    def own(most: int) -> Metric:
        values = draw(st.lists(st.integers(0, most), min_size=len(tree), max_size=len(tree)))
        return Metric("", "", MetricKind.INCLUSIVE, np.array(values))

    most = {"gpu_time": 10**6, "flops8": 10**12, "flops": 10**12, "bytes": 10**9}
    metrics = {name: replace(own(limit), name=name) for name, limit in most.items()}
    return Profile({"devices": [H200, draw(st.sampled_from([H200, B200]))]}, tree, metrics)


@given(working_profiles())
def test_util_is_absent_with_a_reason_or_at_least_zero_and_finite(profile: Profile) -> None:
    util = evaluate(profile, "util")
    absent = np.isnan(util.values)
    assert (util.values[~absent] >= 0).all()
    assert np.isfinite(util.values[~absent]).all()
    assert [bool(util.why_absent(node)) for node in range(len(absent))] == absent.tolist()


@given(working_profiles())
def test_the_roof_time_of_a_parent_is_its_own_plus_that_of_its_children(profile: Profile) -> None:
    profile = with_roof_time(profile)
    total, own = profile.inclusive("roof_time"), profile.own("roof_time")
    for node in range(len(profile.tree)):
        children = profile.tree.children(node)
        assert total[node] == pytest.approx(own[node] + total[children].sum())


@given(working_profiles(), st.sampled_from(["time", "avg_time"]))
def test_units_of_time_differ_by_their_size(profile: Profile, name: str) -> None:
    counted = replace(profile, metrics={**profile.metrics, "gpu_count": profile.metrics["gpu_time"]})
    in_ns = evaluate(counted, f"{name}/ns").values
    for unit, size in (("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        np.testing.assert_allclose(evaluate(counted, f"{name}/{unit}").values * size, in_ns, rtol=1e-12)


@given(working_profiles(), st.sampled_from(["flop", "flop8", "byte"]))
def test_a_rate_times_the_time_is_the_amount(profile: Profile, amount: str) -> None:
    rate, giga, tera = (evaluate(profile, f"{prefix}{amount}/s").values for prefix in ("", "g", "t"))
    np.testing.assert_allclose(giga * 1e9, rate, rtol=1e-12)
    np.testing.assert_allclose(tera * 1e12, rate, rtol=1e-12)
    if amount != "flop":
        total = profile.inclusive("bytes" if amount == "byte" else "flops8")
        known = ~np.isnan(rate)
        seconds = profile.inclusive("gpu_time") / 1e9
        np.testing.assert_allclose((rate * seconds)[known], total[known], rtol=1e-9)
