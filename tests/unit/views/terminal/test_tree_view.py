from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bragg.errors import NothingRecorded, UsageError
from bragg.model import Combine, Metric, MetricKind, Profile
from bragg.views.terminal.tree_text import tree_lines
from bragg.views.terminal.tree_view import tree_view
from bragg.views.terminal.view_options import ViewOptions
from bragg.views.text.style import PLAIN, Style
from tests.support.profiles import profile_from_text
from tests.support.random_profiles import profiles
from tests.support.sampled_kernels import sampled_profile

TORCH = "/opt/lib/python3.11/site-packages/torch/nn/module.py"
TRAINING = f"""
root
  train.py:50@<module>
    train.py:40@main
      backward
        k3 12us x2
        k2 1ms x2
      forward
        {TORCH}:12@__call__
          {TORCH}:13@_call_impl
            model.py:7@forward
              aten::linear #operator
                relu_kernel 3ms x3
                matmul_kernel 12ms x3
"""


def text(profile: Profile, style: Style = PLAIN, **options: object) -> str:
    return "\n".join(line.rstrip() for line in tree_lines(tree_view(profile, ViewOptions(**options)), style))


def labels(profile: Profile, **options: object) -> list[str]:
    """The rows without their numbers and tree lines."""
    lines = text(profile, Style(unicode=False), **options).splitlines()
    return [line.split("  ")[-1].lstrip("|-`# ") for line in lines[1:]]


@pytest.fixture
def training() -> Profile:
    return profile_from_text(TRAINING)


def test_tree_shows_the_hottest_path_first(training: Profile) -> None:
    assert (
        text(training)
        == """\
gpu_time ms    share            gpu_count  call path
      16.01  100.0 %  ████████         10  total
      16.01  100.0 %  ████████         10  └─ <module> train.py:50 → main train.py:40
      15.00   93.7 %  ███████▌          6     ├─ forward
      15.00   93.7 %  ███████▌          6     │  └─ [torch: 2 frames] → forward model.py:7
      15.00   93.7 %  ███████▌          6     │     └─ aten::linear
      12.00   74.9 %  ██████            3     │        ├─ matmul_kernel
       3.00   18.7 %  █▌                3     │        └─ relu_kernel
       1.01    6.3 %  ▌                 4     └─ backward
       1.00    6.2 %  ▌                 2        ├─ k2
       0.01    0.1 %                    2        └─ k3
[library: name] stands for frames of a library; --no-fold shows them"""
    )


def test_rows_beyond_the_limit_are_counted_where_they_would_stand(training: Profile) -> None:
    assert (
        text(training, max_lines=7)
        == """\
gpu_time ms    share            gpu_count  call path
      16.01  100.0 %  ████████         10  total
      16.01  100.0 %  ████████         10  └─ <module> train.py:50 → main train.py:40
      15.00   93.7 %  ███████▌          6     ├─ forward
      15.00   93.7 %  ███████▌          6     │  └─ [torch: 2 frames] → forward model.py:7
      15.00   93.7 %  ███████▌          6     │     └─ aten::linear  … 2 more
       1.01    6.3 %  ▌                 4     └─ backward  … 2 more
4 call paths not shown; --lines 0 shows all
[library: name] stands for frames of a library; --no-fold shows them"""
    )


def test_text_without_unicode_is_ascii(training: Profile) -> None:
    assert text(training, Style(unicode=False), max_lines=7).isascii()


def test_colour_changes_no_letter(training: Profile) -> None:
    assert re.sub(r"\x1b\[\d+m", "", text(training, Style(colour=True))) == text(training)


def test_unfolded_tree_has_a_row_for_every_frame(training: Profile) -> None:
    rows = labels(training, fold=False)
    assert rows.index("_call_impl module.py:13") == rows.index("__call__ module.py:12") + 1
    assert len(rows) == len(training.tree)


def test_a_single_library_frame_keeps_its_name() -> None:
    profile = profile_from_text(f"root\n  {TORCH}:12@__call__\n    forward\n      k 1us")
    assert "__call__ module.py:12" in labels(profile)


def test_library_frames_merge_the_paths_through_them() -> None:
    profile = profile_from_text(
        f"root\n  {TORCH}:12@_a\n    {TORCH}:13@b\n      k 1us x1\n    {TORCH}:14@c\n      k 2us x1\n"
    )
    assert text(profile).splitlines()[2:4] == [
        "       3.00  100.0 %  ████████          2  └─ [torch: 2 frames]",
        "       3.00  100.0 %  ████████          2     └─ k",
    ]


def test_caller_with_time_of_its_own_is_not_put_on_its_callee_s_line() -> None:
    profile = profile_from_text("root\n  a.py:1@a host=1ms\n    a.py:2@b host=1ms")
    assert labels(profile) == ["total", "a a.py:1", "b a.py:2"]


def test_long_chain_of_callers_keeps_its_ends() -> None:
    chain = "".join(f"{'  ' * depth}f.py:{depth}@f{depth}\n" for depth in range(1, 7))
    assert labels(profile_from_text(f"root\n{chain}{'  ' * 7}k 1us"))[1] == (
        "f1 f.py:1 -> ... 4 callers ... -> f6 f.py:6"
    )


def test_line_is_cut_to_the_width_of_the_terminal(training: Profile) -> None:
    lines = text(training, Style(width=66)).splitlines()
    assert max(map(len, lines)) == 66
    assert lines[-2:] == ["[library: name] stands for frames of a library; --no-fold shows", "  them"]
    assert lines[4].endswith("    │ └ [torch: 2 frames]…odel.py:7")


def test_narrow_terminal_has_no_bars_and_two_columns_a_level(training: Profile) -> None:
    assert text(training, Style(width=99)).splitlines()[:6] == [
        "gpu_time ms    share  gpu_count  call path",
        "      16.01  100.0 %         10  total",
        "      16.01  100.0 %         10  └ <module> train.py:50 → main train.py:40",
        "      15.00   93.7 %          6    ├ forward",
        "      15.00   93.7 %          6    │ └ [torch: 2 frames] → forward model.py:7",
        "      15.00   93.7 %          6    │   └ aten::linear",
    ]
    assert text(training, Style(width=100)).splitlines()[4].startswith("      15.00   93.7 %  ███████▌          6")


def test_full_names_are_never_cut(training: Profile) -> None:
    assert "forward model.py:7" in text(training, Style(width=70), full_names=True)


def test_depth_limits_the_levels(training: Profile) -> None:
    assert labels(training, max_depth=1)[:2] == ["total", "... 2 more"]
    hidden = "9 call paths not shown, whose time rows above them include; a larger --depth shows more"
    assert hidden in text(training, max_depth=1).splitlines()
    assert "--depth" not in text(training, max_depth=9)


def test_threshold_leaves_out_what_is_small(training: Profile) -> None:
    assert "backward" not in text(training, threshold=0.1)
    assert "3 call paths not shown, 6.3 % of gpu_time\n" in text(training, threshold=0.1)


def test_include_keeps_the_paths_to_matches_and_states_their_amount(training: Profile) -> None:
    shown = text(training, include="matmul")
    assert "relu" not in shown
    assert "backward" not in shown
    assert shown.splitlines()[1].split()[:2] == ["12.00", "100.0"]
    assert "only call paths through /matmul/: 12.0 ms of 16.0 ms gpu_time (74.9 %)" in shown


def test_excluded_time_is_neither_in_a_total_nor_unsaid(training: Profile) -> None:
    shown = text(training, exclude="^forward")
    assert shown.splitlines()[1].split()[:2] == ["1.01", "100.0"]
    assert "without call paths through /^forward/: 15.0 ms of 16.0 ms gpu_time (93.7 %) left out" in shown


@pytest.mark.parametrize("pattern", [r"FillFunctor<int>", r"elementwise\[Fill", "_ZN2at6native29vectorized"])
def test_filter_matches_raw_demangled_and_shown_names(pattern: str) -> None:
    symbol = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIiEESt5arrayIPcLm1EEEEviT0_T1_"
    assert "elementwise[Fill<int>]" in labels(profile_from_text(f"root\n  {symbol} 1us\n  k 1us"), include=pattern)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": "nothing_like_it"}, "nothing matches --include 'nothing_like_it'"),
        ({"exclude": "nothing_like_it"}, "nothing matches --exclude 'nothing_like_it'"),
        ({"exclude": "<module>"}, "--exclude '<module>' leaves nothing to show"),
    ],
)
def test_filter_that_leaves_nothing_says_so(training: Profile, options: dict[str, str], message: str) -> None:
    with pytest.raises(NothingRecorded) as error:
        tree_view(training, ViewOptions(**options))
    assert error.value.message == message


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("Matmul", "Case matters; --include '(?i)Matmul' finds matmul_kernel"),
        ("matmull_kernel", "Nearest: matmul_kernel, relu_kernel; bragg view --flat lists the names"),
        ("nothing_like_it", "bragg view --flat lists the names"),
    ],
)
def test_filter_that_finds_nothing_names_what_was_meant(training: Profile, pattern: str, hint: str) -> None:
    with pytest.raises(NothingRecorded) as error:
        tree_view(training, ViewOptions(include=pattern))
    assert error.value.hint == hint


def test_malformed_expression_is_a_usage_error(training: Profile) -> None:
    with pytest.raises(UsageError, match=r"--include: bad regular expression '\('"):
        tree_view(training, ViewOptions(include="("))


@pytest.mark.parametrize("name", ["gpu_time", "GPU_Time", "time"])
def test_metric_is_found_in_any_case_and_by_its_short_name(training: Profile, name: str) -> None:
    assert [column.name for column in tree_view(training, ViewOptions(metrics=(name,))).columns] == ["gpu_time"]


def test_unknown_metric_lists_those_that_are_there(training: Profile) -> None:
    with pytest.raises(UsageError) as error:
        tree_view(training, ViewOptions(metrics=("gpu_tmie",)))
    assert error.value.hint == "Nearest: gpu_time, gpu_time_avg, gpu_count; bragg view --list shows all"


@pytest.mark.parametrize(
    ("name", "said", "meant"),
    [
        ("gpu_time", "this profile has no GPU times", ""),
        ("gpu_time_avg", "this profile has no GPU times", ""),
        ("gpu_tim", "this profile has no metric 'gpu_tim', nor GPU times", "Did you mean gpu_time? "),
        (
            "gpu_time_vag",
            "this profile has no metric 'gpu_time_vag', nor GPU times",
            "Did you mean gpu_time_avg? ",
        ),
    ],
)
def test_metric_of_a_gpu_that_was_not_measured_leads_to_why(name: str, said: str, meant: str) -> None:
    with pytest.raises(UsageError) as error:
        tree_view(profile_from_text("root\n  forward host=3ms"), ViewOptions(metrics=(name,)))
    assert error.value.message == said
    assert error.value.hint == f"{meant}Why it has none: bragg doctor; time of the host: -m host_time"


def test_hint_to_metrics_that_are_not_alike_is_short(training: Profile) -> None:
    zeros = np.zeros(len(training.tree))
    many = {f"item_{number}": Metric(f"item_{number}", "1", MetricKind.EXCLUSIVE, zeros) for number in range(20)}
    with pytest.raises(UsageError) as error:
        tree_view(replace(training, metrics=many), ViewOptions(metrics=("xyz",)))
    assert error.value.hint == f"It has: {', '.join(list(many)[:8])}, …; bragg view --list shows all"


def test_average_is_time_by_count(training: Profile) -> None:
    view = tree_view(training, ViewOptions(metrics=("gpu_time", "avg")))
    assert view.columns[1].values[0] == pytest.approx(16_012_000 / 10)


def test_host_metrics_are_the_default_without_gpu_time() -> None:
    profile = profile_from_text("root\n  forward host=3ms hostx4")
    assert [column.name for column in tree_view(profile, ViewOptions()).columns] == ["host_time", "host_count"]


def test_metric_that_does_not_add_up_has_no_share() -> None:
    profile = profile_from_text("root\n  forward\n    a 1us\n    b 4us")
    longest = Metric("gpu_time_max", "ns", MetricKind.PROPERTY, np.array([np.nan, np.nan, 1e3, 4e3]), Combine.MAX)
    profile = replace(profile, metrics={**profile.metrics, "gpu_time_max": longest})
    assert (
        text(profile, metrics=("max",))
        == """\
gpu_time_max us  call path
                 total
                 └─ forward
           4.00     ├─ b
           1.00     └─ a"""
    )


def test_longest_pause_of_a_path_is_the_longest_of_what_it_calls() -> None:
    profile = profile_from_text("root\n  step\n    load 1us\n    launch 4us")
    longest = Metric("gpu_idle_longest", "ns", MetricKind.PROPERTY, np.array([np.nan, 2e3, 5e3, np.nan]), Combine.MAX)
    profile = replace(profile, metrics={**profile.metrics, "gpu_idle_longest": longest})
    view = tree_view(profile, ViewOptions(metrics=("gpu_time", "gpu_idle_longest")))
    assert [view.columns[1].text(node) for node in range(4)] == ["5.00", "5.00", "5.00", ""]


def test_no_value_is_blank_and_a_value_of_zero_is_zero() -> None:
    profile = profile_from_text("root\n  a 1us\n    b 1us\n  c 2us\n  d 3us")
    items = Metric("items", "1", MetricKind.INCLUSIVE, np.array([0, 0, 7, 0, 0]), counted=np.array([0, 0, 1, 1, 0]) > 0)
    profile = replace(profile, metrics={**profile.metrics, "items": items})
    assert (
        text(profile, metrics=("items", "gpu_time"), sort="gpu_time")
        == """\
items    share            gpu_time us  call path
    7  100.0 %  ████████         7.00  total
                                 3.00  ├─ d
    7  100.0 %  ████████         2.00  ├─ a
    7  100.0 %  ████████         1.00  │  └─ b
    0    0.0 %                   2.00  └─ c"""
    )


def test_metric_that_is_zero_everywhere_is_said(training: Profile) -> None:
    zero = Metric("host_time", "ns", MetricKind.INCLUSIVE, np.zeros(len(training.tree), np.int64))
    profile = replace(training, metrics={**training.metrics, "host_time": zero})
    with pytest.raises(NothingRecorded, match="host_time is zero everywhere"):
        tree_view(profile, ViewOptions(metrics=("host_time",)))


def test_profile_without_metrics_is_said() -> None:
    with pytest.raises(NothingRecorded, match="no metric"):
        tree_view(profile_from_text("root\n  forward"), ViewOptions())


def test_instantiations_of_a_kernel_are_one_row_unless_full_names_are_wanted() -> None:
    profile = profile_from_text("root\n  a::fill_kernel<4,int> 1us x2\n  a::fill_kernel<8,int> 3us x1")
    assert text(profile).splitlines()[2:] == ["       4.00  100.0 %  ████████          3  └─ fill<int>"]
    assert labels(profile, full_names=True)[1:] == ["a::fill_kernel<8,int>", "a::fill_kernel<4,int>"]


def test_rows_can_be_sorted_by_name(training: Profile) -> None:
    rows = labels(training, sort="name")
    assert rows.index("backward") < rows.index("forward")


def test_rows_can_be_sorted_by_another_metric() -> None:
    profile = profile_from_text("root\n  slow 9us x1\n  frequent 1us x50")
    assert labels(profile, sort="count") == ["total", "frequent", "slow"]


def test_device_is_named_where_there_are_several() -> None:
    profile = profile_from_text("root\n  k 2us @0\n  k 1us @1")
    assert labels(profile) == ["total", "k @gpu0", "k @gpu1"]


def test_json_rows_follow_their_parents_and_carry_raw_values(training: Profile) -> None:
    values = tree_view(training, ViewOptions()).to_json()
    ids = [row["id"] for row in values["rows"]]
    assert values["rows"][0]["parent"] is None
    assert all(row["parent"] in ids[:place] for place, row in enumerate(values["rows"]) if place)
    (matmul,) = [row for row in values["rows"] if row["name"] == "matmul_kernel"]
    assert (matmul["kind"], matmul["file"]) == ("kernel", None)
    assert matmul["values"] == {"gpu_time": 12_000_000, "gpu_count": 3}
    assert values["metrics"][0] == {"name": "gpu_time", "unit": "ns", "total": 16_012_000}


@given(profiles(), st.integers(1, 30))
def test_any_profile_is_shown_within_its_limit_of_lines(profile: Profile, max_lines: int) -> None:
    metric = next((name for name in profile.metrics if np.nan_to_num(profile.inclusive(name))[0]), None)
    if metric is None:
        return
    view = tree_view(profile, ViewOptions(metrics=(metric,), max_lines=max_lines))
    assert len([line for line in tree_lines(view, PLAIN)[1:] if "not shown" not in line]) <= max_lines


def test_samples_lead_from_the_kernel_over_lines_to_instructions() -> None:
    options = ViewOptions(metrics=("num_samples", "num_stalled_samples"), include="softmax.py:[39]", threshold=0.2)
    view = tree_view(sampled_profile(), options)
    assert tree_lines(view, PLAIN) == [
        "num_samples    share            num_stalled_samples  call path",
        "         30  100.0 %  ████████                   20  total",
        "         30  100.0 %  ████████                   20  └─ forward",
        "         30  100.0 %  ████████                   20     └─ softmax<BLOCK=1024 w4 s3>",
        "         30  100.0 %  ████████                   20        └─ softmax softmax.py:9",
        "         30  100.0 %  ████████                   20           └─ scale softmax.py:3",
        "         30  100.0 %  ████████                   20              └─ +0x10",
        "only call paths through /softmax.py:[39]/: 30 of 100 num_samples (30.0 %)",
    ]


def test_lines_of_kernels_take_no_time_from_them() -> None:
    lines = tree_lines(tree_view(sampled_profile(), ViewOptions(metrics=("time",))), PLAIN)
    assert [line.split("  ")[-1].strip(" └─├│") for line in lines[1:]] == [
        *("total", "forward", "softmax<BLOCK=1024 w4 s3>", "other<BLOCK=1 w4 s3>", "softmax<BLOCK=64 w4 s3>")
    ]


def test_code_outside_of_all_paths_is_said_to_be_there() -> None:
    assert "60.0 % of host_time is code between these paths, outside of any scope" in text(
        profile_from_text("root host=3ms\n  main host=2ms")
    )
    assert "outside of any scope" not in text(profile_from_text("root host=40us\n  main host=2ms"))
