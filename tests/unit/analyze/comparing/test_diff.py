from __future__ import annotations

import numpy as np
import pytest

from bragg.analyze.comparing.comparison import Comparison
from bragg.analyze.comparing.diff import By, compare
from bragg.analyze.comparing.gates import Limit, rows_verdict
from bragg.analyze.comparing.launches import unlike_launches
from bragg.errors import UsageError
from tests.support.profiles import profile_from_text

BEFORE = """root
  a.py:3@step
    forward
      matmul<BM=64 w4 s3> 100us x10 @0
      relu 10us x2 @0
  load 5us"""
AFTER = """root
  a.py:9@step
    forward
      matmul<BM=128 w8 s3> 130us x10 @1
      gelu 12us x2 @1
  load 4us"""


def rows(comparison: Comparison) -> list[tuple[str, float, float]]:
    return [
        (comparison.tree.frames.name[comparison.tree.frame[row]], comparison.before[row], comparison.after[row])
        for row in comparison.rows.tolist()
    ]


def compared(by: By, before: str = BEFORE, after: str = AFTER) -> Comparison:
    return compare(profile_from_text(before), profile_from_text(after), by)


def test_kernel_is_compared_whatever_its_specialization_device_and_caller() -> None:
    assert rows(compared(By.KERNEL)) == [
        ("matmul", 100_000, 130_000),
        ("gelu", 0, 12_000),
        ("relu", 10_000, 0),
        ("load", 5_000, 4_000),
    ]


def test_launches_of_the_main_kernel_that_are_not_as_many_are_told() -> None:
    more = AFTER.replace("130us x10", "40us x50")
    found = unlike_launches(compared(By.KERNEL, after=more))
    assert found is not None
    assert (found.before, found.after, found.mean_before_ns, found.mean_after_ns) == (10, 50, 10_000, 800)
    assert unlike_launches(compared(By.KERNEL)) is None
    assert unlike_launches(compared(By.KERNEL, after="root\n  other 100us x99")) is None


def test_specializations_are_compared_each_on_its_own() -> None:
    assert rows(compared(By.SPECIALIZATION))[:2] == [
        ("matmul<BM=128 w8 s3>", 0, 130_000),
        ("matmul<BM=64 w4 s3>", 100_000, 0),
    ]


def test_call_path_is_compared_although_its_lines_moved_and_callers_that_only_repeat_it_are_left_out() -> None:
    before = BEFORE.replace("<BM=64 w4 s3>", "")
    after = AFTER.replace("<BM=128 w8 s3>", "")
    assert rows(compared(By.PATH, before, after)) == [
        ("forward", 110_000, 142_000),
        ("matmul", 100_000, 130_000),
        ("gelu", 0, 12_000),
        ("relu", 10_000, 0),
        ("load", 5_000, 4_000),
    ]


def test_counts_stand_beside_the_times() -> None:
    comparison = compared(By.KERNEL)
    row = comparison.rows[1]
    assert (comparison.count_before[row], comparison.count_after[row]) == (0, 2)


def test_host_time_is_compared_where_no_gpu_worked() -> None:
    comparison = compared(By.KERNEL, "root\n  a host=1ms hostx2", "root\n  a host=3ms hostx2")
    assert comparison.metric == "host_time"
    assert rows(comparison) == [("a", 1_000_000, 3_000_000)]
    assert comparison.count_before[comparison.rows[0]] == 2


def test_profile_compared_with_itself_has_no_change() -> None:
    assert not compared(By.PATH, BEFORE, BEFORE).change.any()


@pytest.mark.parametrize(
    ("percent", "floor_ns", "count", "worst"),
    [
        (5, 0, 3, "matmul"),
        (5, 20_000, 2, "matmul"),
        (29.5, 0, 2, "matmul"),
        (30, 0, 1, "gelu"),
        (30, 12_000, 0, "root"),
    ],
)
def test_rows_beyond_share_and_floor_are_counted_and_the_worst_is_named(
    percent: float, floor_ns: float, count: int, worst: str
) -> None:
    comparison = compared(By.KERNEL)
    verdict = rows_verdict(comparison, Limit(percent, floor_ns), 1)
    assert verdict.n_exceeded == count
    assert comparison.tree.frames.name[comparison.tree.frame[verdict.worst]] == worst


def test_relative_change_of_what_is_new_is_infinite_and_of_what_is_gone_minus_one() -> None:
    comparison = compared(By.KERNEL)
    relative = [comparison.relative(row) for row in comparison.rows[1:3].tolist()]
    assert relative == [np.inf, -1.0]


def test_metric_that_one_profile_lacks_is_said() -> None:
    with pytest.raises(UsageError, match="no metric 'gpu_bytes'"):
        compare(profile_from_text(BEFORE), profile_from_text("root\n  a 1us bytes=4"), By.PATH, "gpu_bytes")
