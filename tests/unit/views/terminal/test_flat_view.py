from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.errors import NothingRecorded
from bragg.model import Combine, Metric, MetricKind, Profile
from bragg.views.terminal.flat_view import flat_lines, flat_view
from bragg.views.terminal.style import PLAIN
from bragg.views.terminal.view_options import ViewOptions
from tests.support.profiles import profile_from_text


def with_extremes(profile: Profile) -> Profile:
    """Shortest and longest run of each kernel: a tenth and all of its time."""
    own = np.where(profile.own("gpu_time") > 0, profile.own("gpu_time"), np.nan)
    extremes = [
        Metric("gpu_time_min", "ns", MetricKind.PROPERTY, own / 10, Combine.MIN),
        Metric("gpu_time_max", "ns", MetricKind.PROPERTY, own, Combine.MAX),
    ]
    return replace(profile, metrics={**profile.metrics, **{metric.name: metric for metric in extremes}})


@pytest.fixture
def kernels() -> Profile:
    return with_extremes(
        profile_from_text(
            "root\n  forward\n    matmul 6ms x3\n    relu 1ms x1\n  backward\n    matmul 2ms x1\n    add 1ms"
        )
    )


def test_kernel_has_one_row_wherever_it_was_launched(kernels: Profile) -> None:
    assert flat_lines(flat_view(kernels, ViewOptions()), PLAIN) == [
        "gpu_time ms    share            gpu_count  gpu_time_avg ms  gpu_time_min us  gpu_time_max ms  name",
        "       8.00   80.0 %  ██████▍           4             2.00           200.00             6.00  matmul",
        "       1.00   10.0 %  ▊                 1             1.00           100.00             1.00  relu",
        "       1.00   10.0 %  ▊                 1             1.00           100.00             1.00  add",
    ]


def test_rows_beyond_the_limit_are_counted(kernels: Profile) -> None:
    lines = flat_lines(flat_view(kernels, ViewOptions(max_lines=1)), PLAIN)
    assert lines[2:] == ["2 rows not shown, 20.0 % of gpu_time; --lines 0 shows all"]


def test_small_rows_are_left_out(kernels: Profile) -> None:
    assert len(flat_view(kernels, ViewOptions(threshold=0.5)).shown) == 1


def test_rows_can_be_sorted_by_name(kernels: Profile) -> None:
    names = [row["name"] for row in flat_view(kernels, ViewOptions(sort="name")).to_json()["rows"]]
    assert names == ["add", "matmul", "relu"]


def test_instantiations_of_a_kernel_are_one_row_unless_full_names_are_wanted() -> None:
    profile = profile_from_text("root\n  a::fill_kernel<4,int> 1us x2\n  a::fill_kernel<8,int> 3us x1")
    assert [row["name"] for row in flat_view(profile, ViewOptions()).to_json()["rows"]] == ["fill<int>"]
    assert len(flat_view(profile, ViewOptions(full_names=True)).shown) == 2


def test_functions_of_two_files_are_two_rows() -> None:
    profile = profile_from_text("root\n  a.py:1@step host=1ms\n  b.py:1@step host=2ms\n  a.py:9@step host=4ms")
    rows = flat_view(profile, ViewOptions()).to_json()["rows"]
    assert [(row["file"], row["values"]["host_time"]) for row in rows] == [("a.py", 5_000_000), ("b.py", 2_000_000)]


def test_filter_applies_to_the_whole_call_path(kernels: Profile) -> None:
    view = flat_view(kernels, ViewOptions(include="backward"))
    assert [row["values"]["gpu_time"] for row in view.to_json()["rows"]] == [2_000_000, 1_000_000]
    assert view.notes == ["only call paths through /backward/: 3.00 ms of 10.0 ms gpu_time (30.0 %)"]


def test_metric_that_is_zero_everywhere_is_said() -> None:
    profile = profile_from_text("root\n  a 1us\n  b bytes=0")
    with pytest.raises(NothingRecorded, match="gpu_bytes is zero everywhere"):
        flat_view(profile, ViewOptions(metrics=("gpu_bytes",)))
