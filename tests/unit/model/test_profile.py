from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.errors import UsageError
from bragg.model import Finding, KernelTable, Metric, MetricKind, Severity, SliceTable, TrackTable
from tests.support.profiles import profile_from_text

PROFILE = profile_from_text("root\n  forward\n    matmul 12us x3\n  host host=5us hostx2")


def test_an_unknown_metric_is_a_usage_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no metric 'gpu_tim'") as error:
        PROFILE.own("gpu_tim")
    assert error.value.hint == "It has: gpu_count, gpu_time, host_count, host_time"


def test_metrics_that_do_not_add_up_are_shown_by_their_own_values() -> None:
    assert PROFILE.inclusive("host_count").tolist() == PROFILE.own("host_count").tolist() == [0, 0, 0, 2]


def test_a_console_shows_a_profile_in_one_line() -> None:
    assert repr(PROFILE) == "<Profile: 4 call paths, 0 slices, metrics gpu_time, gpu_count, host_time, host_count>"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_sums_leave_out_what_is_no_finite_number(odd: float) -> None:
    metric = Metric("bytes", "B", MetricKind.INCLUSIVE, np.array([0, odd, 3, 4.0]))
    profile = replace(PROFILE, metrics={"bytes": metric})
    assert profile.inclusive("bytes").tolist() == [7, 3, 3, 4]


def test_the_main_metric_is_gpu_time_if_there_is_any() -> None:
    assert PROFILE.main_metric == "gpu_time"
    assert profile_from_text("root\n  host host=5us").main_metric == "host_time"
    with pytest.raises(UsageError, match="holds no time"):
        _ = profile_from_text("root").main_metric


SLICE = SliceTable(np.array([5]), np.array([2]), np.array([1]), np.array([0]), np.array([0]))
TRACK = TrackTable(np.array([1]), np.array([7]), np.array([-1]), np.array([0]), np.array([70]), ["main"])


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"metrics": {"x": Metric("x", "1", MetricKind.INCLUSIVE, np.zeros(3))}}, "metric x has a value for each node"),
        ({"slices": SLICE}, "every track of SliceTable exists"),
        ({"slices": SLICE.replace(node=np.array([4])), "tracks": TRACK}, "every node of SliceTable exists"),
        ({"slices": SLICE.replace(duration_ns=np.array([-1])), "tracks": TRACK}, "no slice ends before it starts"),
        ({"slices": SLICE.replace(start_ns=np.array([2**63 - 1])), "tracks": TRACK}, "ends within int64"),
        ({"tracks": TRACK.replace(kind=np.array([9]))}, "every track is of a known kind"),
        ({"kernels": KernelTable(**{name: np.array([99]) for name in KernelTable.columns()})}, "every frame of Kernel"),
        ({"carried": [Finding("rule", Severity.NOTE, "text", node=4)]}, "every node of a finding exists"),
    ],
)
def test_check_names_the_law_that_is_broken(changes: dict[str, object], law: str) -> None:
    with pytest.raises(ValueError, match=law):
        replace(PROFILE, **changes).check()  # type: ignore[arg-type]


def test_equal_launch_configurations_become_one_row() -> None:
    columns = {name: np.array([1, 1, 1]) for name in KernelTable.columns()}
    kernels = KernelTable(**{**columns, "grid_x": np.array([8, 4, 8]), "count": np.array([2, 3, 5])}).combined()
    assert kernels.grid_x.tolist() == [4, 8]
    assert kernels.count.tolist() == [3, 7]
