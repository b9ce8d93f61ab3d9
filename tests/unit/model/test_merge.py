from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.model import Finding, Metric, MetricKind, Profile, Severity, SliceTable
from bragg.model.merge import merge, merge_with_parts
from bragg.model.trace import TrackTable
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
    two = replace(two, carried=[Finding("slow", Severity.WARNING, "k is slow", node=2)])
    both = merge([one, two])
    assert [both.tree.label(above) for above in both.tree.path(both.carried[0].node or 0)] == ["root", "b", "k"]


def test_merging_nothing_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no profile to merge"):
        merge([])


def rank_of(rank: int, host: str, text: str) -> Profile:
    """One rank of a job whose processes have the same id on every host."""
    one = np.ones(1)
    tracks = TrackTable(one, one * 7, -one, one, one, ["main"], rank=one * rank, host=[host])  # type: ignore[arg-type]
    return replace(profile_from_text(text), meta={"rank": rank, "host": host}, tracks=tracks)


def test_processes_of_one_id_on_several_hosts_stay_apart() -> None:
    ranks = [rank_of(rank, f"node{rank}", "root\n  k 2us") for rank in range(3)]
    tracks = merge(ranks).tracks
    assert tracks.process.tolist() == [7, 7, 7]
    assert tracks.unique_process.tolist() == [7, 8, 9]
    assert [tracks.process_label(track) for track in range(3)] == [f"process 7 on node{rank}" for rank in range(3)]
    assert ranks[0].tracks.process_label(0) == "process 7"


def test_values_of_each_rank_are_known_after_merging() -> None:
    texts = ["root\n  a\n    k 2us", "root\n  b\n    k 3us\n  a\n    k 5us", "root\n  a 7us"]
    merged = merge_with_parts([rank_of(rank, "node", text) for rank, text in enumerate(texts)])
    assert merged.ranks == [0, 1, 2]
    own = [merged.metric("gpu_time", part).own for part in range(3)]
    assert [int(values.sum()) for values in own] == [2_000, 8_000, 7_000]
    assert np.array_equal(np.sum(own, axis=0), merged.profile.own("gpu_time"))


def test_merging_many_profiles_copies_no_slice_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(SliceTable, "take", lambda self, rows: taken.append(len(rows)))
    ranks = [rank_of(rank, "node", "root\n  k 2us") for rank in range(64)]
    slices = SliceTable([1, 2], [1, 1], [1, 1], [0, 0], [1, 2])  # type: ignore[arg-type]
    together = merge([replace(rank, slices=slices) for rank in ranks])
    assert (len(together.slices), taken) == (128, [])
    assert len(np.unique(together.slices.correlation)) == 128
