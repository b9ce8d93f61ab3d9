"""GPU time that a program waits for, on timelines of a few slices."""

from __future__ import annotations

from bragg.analyze.causes.waits import critical_ns
from tests.support.traces import trace_from_text


def test_work_after_which_the_gpu_waits_for_the_host_is_hidden() -> None:
    # The host launches one kernel each 100 ns, which takes 10 ns: the program waits for the last one alone.
    profile = trace_from_text("""
    thread 1
      0-5 launch ->1
      100-105 launch ->2
    stream 7
      10-20 first <-1
      110-120 second <-2""")
    assert critical_ns(profile).sum() == 10


def test_work_that_was_queued_is_waited_for() -> None:
    profile = trace_from_text("""
    thread 1
      0-5 launch ->1
      6-11 launch ->2
    stream 7
      10-60 first <-1
      62-112 second <-2""")
    assert critical_ns(profile).sum() == 100


def test_work_that_the_host_waits_for_is_not_hidden() -> None:
    profile = trace_from_text("""
    thread 1
      0-5 launch ->1
      6-65 aten::_local_scalar_dense
      100-105 launch ->2
    stream 7
      10-60 first <-1
      110-120 second <-2""")
    assert critical_ns(profile).sum() == 60


def test_streams_side_by_side_count_once() -> None:
    profile = trace_from_text("""
    thread 1
      0-5 launch ->1
      6-8 launch ->2
    stream 7
      10-60 first <-1
    stream 8
      40-80 second <-2""")
    assert critical_ns(profile).sum() == 70


def test_a_wait_that_was_not_recorded_shows_by_the_silence_before_it() -> None:
    profile = trace_from_text("""
    thread 1
      0-5000 launch ->1
      100000-105000 launch ->2
    stream 7
      8000-98000 first <-1
      110000-120000 second <-2""")
    assert critical_ns(profile).sum() == 100_000
