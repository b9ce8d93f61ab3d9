from __future__ import annotations

from dataclasses import replace

import numpy as np

from bragg.analyze.causes.other_threads import OtherThreads, other_threads
from bragg.model import Metric, MetricKind, Profile
from bragg.model.host_time import THREAD_TIME
from tests.support.profiles import profile_from_text

KERNEL = "  /lib/python3.12/site-packages/ipykernel/heartbeat.py:124@Heartbeat.run host=3us"
GARBAGE = "  /lib/python3.12/site-packages/zmq/utils/garbage.py:56@GarbageCollectorThread.run host=2us"
SUBSHELL = "  /lib/python3.12/site-packages/ipykernel/thread.py:48@BaseThread.run\n    cell.py:2@<module> host=4us"
INFER = "  serve.py:4@infer host=5us"


def of_threads(*texts: str) -> Profile:
    """One of which the host's time is that of threads beside the main one."""
    profile = profile_from_text("\n".join(["root", *texts]))
    own = profile.own("host_time").astype(np.int64)
    times = Metric(THREAD_TIME, "ns", MetricKind.INCLUSIVE, own)
    threads = {"threads_before": {}, "threads": {"infer": 5_000, "Heartbeat": 3_000}}
    return replace(profile, metrics={**profile.metrics, THREAD_TIME: times}, meta={**profile.meta, **threads})


def test_threads_of_a_notebooks_kernel_are_not_those_of_the_program() -> None:
    assert other_threads(of_threads(KERNEL, GARBAGE)) is None
    assert other_threads(of_threads(KERNEL, INFER)) == OtherThreads((), 5_000, "serve.py:4")


def test_without_a_kernel_threads_have_their_names() -> None:
    assert other_threads(of_threads(INFER)) == OtherThreads(("infer", "Heartbeat"), 5_000, "serve.py:4")


def test_cells_that_a_thread_of_the_kernel_runs_are_the_programs() -> None:
    assert other_threads(of_threads(SUBSHELL)) == OtherThreads((), 4_000, "cell.py:2")
