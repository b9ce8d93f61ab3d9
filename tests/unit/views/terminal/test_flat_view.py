from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bragg.errors import NothingRecorded
from bragg.model import Combine, DurationTable, Metric, MetricKind, Profile
from bragg.model.durations import buckets_of
from bragg.views.terminal.derived_metrics import DERIVED
from bragg.views.terminal.flat_view import flat_lines, flat_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.style import PLAIN
from tests.support.profiles import profile_from_text
from tests.support.sampled_kernels import sampled_profile


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
    options = ViewOptions(metrics=("time", "count", "avg", "min", "max"))
    assert flat_lines(flat_view(kernels, options), PLAIN) == [
        "gpu_time ms    share            gpu_count    avg us  min us    max us  name",
        "       8.00   80.0 %  ██████▍           4  2,000.00  200.00  6,000.00  matmul",
        "       1.00   10.0 %  ▊                 1  1,000.00  100.00  1,000.00  relu",
        "       1.00   10.0 %  ▊                 1  1,000.00  100.00  1,000.00  add",
    ]


def test_what_ran_outside_of_everything_is_no_total() -> None:
    view = flat_view(profile_from_text("root host=2ms\n  load host=1ms"), ViewOptions(metrics=("host_time",)))
    assert flat_lines(view, PLAIN)[1].endswith("  code outside of any scope")


def test_a_unit_that_the_name_says_is_not_said_again(kernels: Profile) -> None:
    options = ViewOptions(metrics=("gpu_time/%", "gpu_count"), formulas=DERIVED)
    assert flat_lines(flat_view(kernels, options), PLAIN)[0].split() == ["gpu_time/%", "share", "gpu_count", "name"]


def test_of_copies_no_percentile_is_known_and_the_reason_is_theirs() -> None:
    profile = with_durations(profile_from_text("root\n  matmul 5us\n  copy HtoD 2us #memory"), {"matmul": [(1, 5000)]})
    matmul, copy = flat_view(profile, ViewOptions(metrics=("time", "p50"))).to_json()["rows"]
    assert "why_absent" not in matmul
    assert copy["why_absent"]["gpu_time_p50"].startswith("of copies and sets only")


def with_durations(profile: Profile, launches: dict[str, list[tuple[int, int]]]) -> Profile:
    """Begin and length of each launch, ns, by kernel."""
    rows = [
        (profile.tree.frames.name.index(name), buckets_of(np.array([length]))[0], 1, begin)
        for name, times in launches.items()
        for begin, length in times
    ]
    return replace(profile, durations=DurationTable(*np.array(rows).T).combined())


def test_percentiles_and_first_launch_of_a_kernel_are_those_of_its_launches() -> None:
    profile = profile_from_text("root\n  a\n    matmul 5000ns x5\n  b\n    matmul 5095ns x5\n    relu 7ns")
    lengths = [(100 + 10 * i, 1000 + 5 * i) for i in range(9)] + [(90, 10_000)]
    timed = with_durations(profile, {"matmul": lengths, "relu": [(50, 7)]})
    rows = flat_view(timed, ViewOptions(metrics=("time", "p50", "p95", "first"))).to_json()["rows"]
    matmul, relu = (row["values"] for row in rows)
    assert matmul["gpu_time_p50"] == pytest.approx(1020, rel=0.032)
    assert matmul["gpu_time_p95"] == pytest.approx(10_000, rel=0.032)
    assert (relu["gpu_time_p50"], relu["gpu_time_p95"]) == (7, 7)
    assert (relu["gpu_time_first"], matmul["gpu_time_first"]) == (0, 40)


def test_first_launch_counts_from_the_start_of_the_recording() -> None:
    profile = with_durations(profile_from_text("root\n  matmul 5ns"), {"matmul": [(1_000, 5)]})
    profile = replace(profile, meta={"started_ns": 400})
    row = flat_view(profile, ViewOptions()).to_json()["rows"][0]
    assert row["values"]["gpu_time_first"] == 600


def test_percentiles_of_some_call_paths_of_a_kernel_are_not_known() -> None:
    profile = profile_from_text("root\n  a\n    matmul 5ns\n  b\n    matmul 5ns")
    timed = with_durations(profile, {"matmul": [(1, 5), (9, 5)]})
    row = flat_view(timed, ViewOptions(include="^a$")).to_json()["rows"][0]
    assert row["values"]["gpu_time_p50"] is None
    assert row["why_absent"]["gpu_time_p50"] == "single launches are known by kernel, not by call path"


def test_percentiles_that_were_not_recorded_are_said_to_be_missing(kernels: Profile) -> None:
    lines = flat_lines(flat_view(kernels, ViewOptions(metrics=("time", "p95"))), PLAIN)
    assert lines[1].split()[-2:] == ["n/a", "matmul"]
    assert lines[-1] == "gpu_time_p95 n/a: how long single launches took was not recorded"


def test_kernel_of_two_devices_is_one_row_without_a_device() -> None:
    rows = flat_view(profile_from_text("root\n  k 1us @0\n  k 2us @1"), ViewOptions()).to_json()["rows"]
    assert [(row["name"], row["values"]["gpu_time"]) for row in rows] == [("k", 3000)]


def test_rows_beyond_the_limit_are_counted(kernels: Profile) -> None:
    lines = flat_lines(flat_view(kernels, ViewOptions(metrics=("time",), max_lines=1)), PLAIN)
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


def test_samples_are_listed_by_line_and_times_by_kernel() -> None:
    options = ViewOptions(metrics=("num_samples", "num_stalled_samples"))
    assert flat_lines(flat_view(sampled_profile(), options), PLAIN) == [
        "num_samples    share            num_stalled_samples  name",
        "         60   60.0 %  ████▊                      55  softmax softmax.py:8",
        "         30   30.0 %  ██▍                        20  scale softmax.py:3",
        "         10   10.0 %  ▊                           0  softmax softmax.py:10",
    ]
    by_time = flat_view(sampled_profile(), ViewOptions(metrics=("time", "num_samples"))).to_json()
    assert [(row["name"], row["values"]["gpu_time"], row["values"]["num_samples"]) for row in by_time["rows"]] == [
        ("softmax<BLOCK=1024 w4 s3>", 9000, 100),
        ("other<BLOCK=1 w4 s3>", 5000, 0),
        ("softmax<BLOCK=64 w4 s3>", 3000, 0),
    ]


def test_what_is_waited_is_no_row_but_a_note() -> None:
    profile = profile_from_text("root\n  a.py:1@f host=1ms\n    [waiting] #state host=3ms wait=3ms")
    view = flat_view(profile, ViewOptions())
    assert [row["name"] for row in view.to_json()["rows"]] == ["f"]
    assert view.notes == ["3.00 ms, 75.0 % of host_time, was waiting and has no row; where: --metric wait_time"]


def test_waiting_is_a_row_where_there_is_nothing_else() -> None:
    view = flat_view(profile_from_text("root\n  a.py:1@f\n    [waiting] #state host=3ms wait=3ms"), ViewOptions())
    assert [row["name"] for row in view.to_json()["rows"]] == ["[waiting]"]


def test_a_function_stands_at_its_hottest_line() -> None:
    profile = profile_from_text(
        "root\n  a.py:21@f host=2ms\n  main\n    a.py:24@f host=7ms\n  b.py:5@g host=1ms\n  c host=1ms"
    )
    lines = flat_lines(flat_view(profile, ViewOptions(metrics=("host_time",))), PLAIN)
    assert [line.split("  ")[-1].strip() for line in lines[1:3]] == ["f a.py:24", "g b.py:5"]
    assert lines[1].split()[0] == "9.00"
