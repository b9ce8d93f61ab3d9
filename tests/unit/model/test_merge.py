from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.model import Finding, Metric, MetricKind, Severity
from bragg.model.merge import merge
from tests.support.profiles import profile_from_text, tree_to_text


def test_equal_call_paths_become_one_node() -> None:
    one = profile_from_text("root\n  forward\n    matmul 12us x3")
    two = profile_from_text("root\n  backward\n    matmul 5us\n  forward\n    matmul 1us\n    relu 2us")
    both = merge([one, two])
    both.check()
    assert tree_to_text(both) == ("root\n  forward\n    matmul 13us x4\n    relu 2us\n  backward\n    matmul 5us")


def test_a_metric_that_only_one_profile_has_is_kept() -> None:
    both = merge([profile_from_text("root\n  a host=3us"), profile_from_text("root\n  k 2us")])
    assert both.total("host_time") == 3_000
    assert both.total("gpu_time") == 2_000


def test_metrics_of_one_name_and_different_units_are_refused() -> None:
    one = profile_from_text("root\n  k 2us")
    metric = Metric("gpu_time", "s", MetricKind.INCLUSIVE, np.zeros(2))
    with pytest.raises(UsageError, match="disagree on the unit or the kind of metric 'gpu_time'"):
        merge([one, replace(one, metrics={"gpu_time": metric})])


def test_meta_keeps_what_all_agree_on_and_lists_every_recording() -> None:
    ranks = [replace(profile_from_text("root\n  k 2us"), meta={"rank": rank, "host": "node"}) for rank in range(3)]
    meta = merge(ranks).meta
    assert meta == {"host": "node", "merged": [{"rank": rank, "host": "node"} for rank in range(3)]}


def test_findings_follow_their_nodes() -> None:
    one = profile_from_text("root\n  a\n    k 2us")
    two = profile_from_text("root\n  b\n    k 2us")
    two = replace(two, findings=[Finding("slow", Severity.WARNING, "k is slow", node=2)])
    both = merge([one, two])
    assert [both.tree.label(above) for above in both.tree.path(both.findings[0].node or 0)] == ["root", "b", "k"]


def test_merging_nothing_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no profile to merge"):
        merge([])
