from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bragg
from bragg.analyze.idle import idle_times
from bragg.analyze.idle_paths import IDLE_METRICS, with_idle_paths
from bragg.analyze.wall.parts import wall_parts
from bragg.errors import UsageError
from bragg.model import FrameKind, Profile
from tests.support.profiles import profile_from_text
from tests.support.recordings import DEFAULT_RECORDINGS
from tests.support.traces import trace_from_text

TRACE = """
    thread 1
      0-100 step
      0-5 launch ->1
      22-28 load
      40-60 launch ->2
      62-64 launch ->3
    thread 2
      20-70 other
    stream 7
      10-20 first <-1
      70-80 second <-2
      100-110 third <-3
      130-140 fourth"""


def idle(profile: Profile, least_ns: int = 0) -> dict[str, tuple[int, int, float]]:
    """Time, pauses and longest part of each node that has any, without what is below it; pauses add up to all."""
    found = with_idle_paths(profile, least_ns)
    found.check()
    assert found.total("gpu_idle_count") == sum(pauses.n_gaps or 0 for pauses in idle_times(profile))
    time, count, longest = (found.own(name) for name in IDLE_METRICS)
    return {found.tree.label(node): (time[node], count[node], longest[node]) for node in np.flatnonzero(time).tolist()}


def test_a_pause_is_divided_among_the_innermost_slices_of_the_thread_that_launches_next() -> None:
    # 20 to 70: launched at 60, load from 22 to 28, launch from 40. 80 to 100: launched at 64. 110 to 130: by nobody.
    assert idle(trace_from_text(TRACE)) == {
        "step": (14, 0, 14),
        "load": (6, 0, 6),
        "launch": (20, 1, 20),
        "<launched and not begun>": (30, 1, 20),
        "<launch not known>": (20, 1, 20),
    }


def test_short_pauses_are_one_sum() -> None:
    assert idle(trace_from_text(TRACE), least_ns=21) == {
        "step": (14, 0, 14),
        "load": (6, 0, 6),
        "launch": (20, 1, 20),
        "<launched and not begun>": (10, 0, 10),
        "<short pauses>": (40, 2, 20),
    }


def test_time_without_a_slice_belongs_to_the_code_that_launches_next() -> None:
    trace = trace_from_text("thread 1\n  0-5 a ->1\n  40-60 b ->2\nstream 7\n  10-20 first <-1\n  70-80 second <-2")
    assert idle(trace) == {"b": (40, 1, 40), "<launched and not begun>": (10, 0, 10)}


def test_the_caller_of_a_launch_has_the_time_before_it() -> None:
    trace = trace_from_text("thread 1\n  0-5 api ->1\n  40-60 api ->2\nstream 7\n  10-20 k <-1\n  70-80 k <-2")
    kind = trace.tree.frames.kind.copy()
    kind[1] = FrameKind.GPU_API
    tree = replace(trace.tree, frames=trace.tree.frames.replace(kind=kind))
    assert idle(replace(trace, tree=tree)) == {
        "root": (20, 1, 20),
        "api": (20, 0, 20),
        "<launched and not begun>": (10, 0, 10),
    }


def test_slices_that_overlap_without_nesting_are_told_by_the_later_one() -> None:
    trace = trace_from_text("""
        thread 1
          0-5 launch ->1
          20-30 early
          25-40 late
          45-50 launch ->2
        stream 7
          10-20 k <-1
          50-60 k <-2""")
    assert idle(trace) == {"early": (5, 0, 5), "late": (15, 1, 15), "launch": (10, 0, 10)}


def test_other_metrics_keep_their_values() -> None:
    trace = trace_from_text(TRACE)
    assert with_idle_paths(trace).total("gpu_time") == trace.total("gpu_time")


def test_a_profile_without_a_timeline_has_no_idle_paths() -> None:
    with pytest.raises(UsageError, match="no timeline of a GPU"):
        with_idle_paths(replace(profile_from_text("root\n  a 1us"), meta={"backend": "cuda"}))


def test_pauses_that_a_recorder_has_added_up_are_as_many_at_call_paths_as_in_the_sentence() -> None:
    profile = bragg.load(next(file for file in DEFAULT_RECORDINGS if file.stem == "h100-trainer_gpt2"))
    parts = wall_parts(profile)
    assert parts is not None
    (told,) = idle_times(profile, parts.steady)
    assert with_idle_paths(profile, steady=parts.steady).total("gpu_idle_count") == told.n_gaps
