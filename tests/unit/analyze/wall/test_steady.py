from __future__ import annotations

import numpy as np

from bragg.analyze.idle import Idle, idle_times
from bragg.analyze.idle_paths import with_idle_paths
from bragg.analyze.wall.region_shares import median_shares
from bragg.analyze.wall.steady import own_times, steady_profile
from bragg.analyze.wall.wall_time import Steady
from bragg.model import Profile
from tests.support.traces import trace_from_text

STEADY = Steady(begins_ns=100, ends_ns=200, busy={0: 0.35})
TRACE = """
    thread 1
      0-150 step
      110-140 inner
      120-130 launch ->1
      160-170 step
      180-190 launch ->2
    stream 7
      90-105 early
      135-155 first <-1
      190-210 second <-2"""


def own(profile: Profile, metric: str) -> dict[str, float]:
    values = profile.own(metric).tolist()
    return {profile.tree.label(node): value for node, value in enumerate(values) if value}


def steady_part() -> Profile:
    part = steady_profile(trace_from_text(TRACE), STEADY)
    assert part is not None
    return part


def test_gpu_time_is_what_lies_in_the_steady_state_and_counts_are_of_what_begins_there() -> None:
    assert own(steady_part(), "gpu_time") == {"early": 5, "first": 20, "second": 10}
    assert own(steady_part(), "gpu_count") == {"first": 1, "second": 1}


def test_host_time_is_that_of_the_innermost_and_the_rest_is_the_root_s() -> None:
    # step: 100 to 150 without 110 to 140, and 160 to 170; nothing is known of 150 to 160, 170 to 180 and 190 to 200.
    assert own(steady_part(), "host_time") == {"root": 30, "step": 20 + 10, "inner": 20, "launch": 10 + 10}
    assert steady_part().total("host_time") == STEADY.duration_ns


def test_medians_and_extremes_are_of_what_began_in_the_steady_state_however_long_it_lasted() -> None:
    part = steady_part()
    assert part.durations.count.sum() == 2
    together = part.durations.replace(frame=np.zeros_like(part.durations.frame))
    assert together.quantiles(0.1, 1) == [20]
    for name in ("gpu_time_min", "gpu_time_max"):
        assert part.own(name)[part.own("gpu_count") > 0].tolist() == [20, 20]


def test_a_profile_without_timeline_has_no_part() -> None:
    assert steady_profile(Profile({}, trace_from_text(TRACE).tree), STEADY) is None


def test_own_times_are_without_what_is_inside() -> None:
    slices = trace_from_text("thread 1\n  0-100 a\n  10-20 b\n  12-14 c\n  20-30 b\n  100-110 a").slices
    assert own_times(slices).tolist() == [80, 8, 2, 10, 10]


def test_idle_time_is_cut_at_the_steady_state() -> None:
    trace = trace_from_text(TRACE)
    # 105 to 135: launched at 130; 155 to 190: launched at 190.
    assert idle_times(trace, STEADY) == (
        Idle(0, 100, 65, n_gaps=2, late_launch_ns=60, queued_ns=5, waited_ns=0, full_queue_ns=0, is_steady=True),
    )
    assert with_idle_paths(trace, 0, STEADY).total("gpu_idle_time") == 65


def test_without_a_timeline_the_curve_tells_how_long_a_gpu_idled() -> None:
    bare = Profile({}, trace_from_text(TRACE).tree)
    assert idle_times(bare, STEADY) == (Idle(0, span_ns=100, idle_ns=65, is_steady=True),)


def test_medians_of_regions_are_no_averages() -> None:
    buckets = {"count": 10, "total_ns": 5000, "in_steps_ns": 5000, "buckets": {"10": 9, "200": 1}}
    forward = {"count": 10, "total_ns": 4500, "in_steps_ns": 4500, "buckets": {"4": 9, "200": 1}}
    found = median_shares(Profile({"regions": {"step": buckets, "forward": forward}}, trace_from_text(TRACE).tree))
    assert found == (10.0, {"forward": 0.4, "other": 0.6})


def test_the_median_of_calls_tells_nothing_of_several_in_a_step() -> None:
    step = {"count": 10, "total_ns": 1000, "in_steps_ns": 1000, "buckets": {"100": 10}}
    forward = {"count": 20, "total_ns": 900, "in_steps_ns": 900, "buckets": {"10": 11, "90": 9}}
    found = median_shares(Profile({"regions": {"step": step, "forward": forward}}, trace_from_text(TRACE).tree))
    assert found is not None
    assert found[1] == {}
