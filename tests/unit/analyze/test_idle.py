from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.idle import Idle, idle_times
from bragg.analyze.idle_paths import with_idle_paths
from tests.support.profiles import profile_from_text
from tests.support.traces import trace_from_text


def test_pauses_are_late_launches_or_waits_after_them() -> None:
    trace = trace_from_text("""
        thread 1
          0-5 launch ->1
          40-60 launch ->2
          62-64 launch ->3
        stream 7
          10-20 first <-1
          70-80 second <-2
          100-110 third <-3
          130-140 fourth""")
    # 20 to 70: launched at 60, so 40 late and 10 queued; 80 to 100: all queued; 110 to 130: not known.
    assert idle_times(trace) == (Idle(0, 130, 90, 3, late_launch_ns=40, queued_ns=30, waited_ns=0, full_queue_ns=0),)


def test_launched_work_starts_or_comes_from_a_full_queue_or_waits() -> None:
    trace = trace_from_text("""
        thread 1
          0-1000 launch ->1
          1000-2000 launch ->2
          2000-3000 launch ->3
          3000-4000 launch ->4
          70000-71000 launch ->5
        stream 7
          20000-30000 first <-1
          34000-40000 second <-2
          54000-60000 third <-3
        stream 8
          64000-70000 fourth <-4
        stream 9
          90000-91000 fifth <-5""")
    # 4 us from one to the next of stream 7; 14 us, of which 4 for something else; 4 for another stream; launched at 71,
    # where a start takes at most 10 us.
    assert idle_times(trace) == (
        Idle(0, 71000, 42000, 4, late_launch_ns=1000, queued_ns=41000, waited_ns=17000, full_queue_ns=14000),
    )
    waits = with_idle_paths(trace)
    (node,) = np.flatnonzero([waits.tree.label(each).startswith("<waited") for each in range(len(waits.tree))])
    assert waits.tree.label(int(waits.tree.parent[node])) == "launch"
    assert waits.own("gpu_idle_time")[node] == 17000


def test_work_of_any_stream_keeps_a_device_busy() -> None:
    trace = trace_from_text("stream 1\n  0-10 a\n  50-60 b\nstream 2\n  5-55 c")
    assert idle_times(trace)[0].idle_ns == 0


def test_processes_have_devices_and_launches_of_their_own() -> None:
    trace = trace_from_text("""
        thread 1
          0-5 launch ->1
          20-30 launch ->2
        stream 7
          10-20 a <-1
          40-50 b <-2
        stream 8
          0-50 c""")
    process = np.array([42, 42, 43], np.int32)
    assert idle_times(replace(trace, tracks=trace.tracks.replace(process=process))) == (
        Idle(0, 40, 20, 1, late_launch_ns=10, queued_ns=10, waited_ns=0, full_queue_ns=0, process=42),
        Idle(0, 50, 0, 0, late_launch_ns=0, queued_ns=0, waited_ns=0, full_queue_ns=0, process=43),
    )


def test_without_a_timeline_the_recorded_sums_answer() -> None:
    meta = {"gpu_first_ns": 100, "gpu_last_ns": 1100, "gpu_busy_ns": {"0": 300, "1": 2000}}
    profile = replace(profile_from_text("root\n  a 1us"), meta=meta)
    assert idle_times(profile) == (Idle(0, 1000, 700), Idle(1, 1000, 0))


def test_nothing_is_said_of_a_run_without_a_gpu() -> None:
    assert idle_times(profile_from_text("root\n  a host=1us")) == ()
