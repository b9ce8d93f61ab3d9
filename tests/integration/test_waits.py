"""What the main thread waits for is told apart from what it does, by its own clocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bragg.model import FrameKind, Profile
from bragg.model.host_time import own_work
from tests.support.runs import Recorder

PROGRAM = """
import queue, selectors, subprocess, threading, time
def compute():
    end = time.thread_time() + 0.4
    while time.thread_time() < end: sum(range(100))
def for_event(): threading.Event().wait(0.3)
def for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=0.3)
def for_process(): subprocess.run(["sleep", "0.6"])  # on a busy machine it sleeps before it is waited for
def for_queue():
    try: queue.Queue().get(timeout=0.3)
    except queue.Empty: pass
def for_selector(): selectors.DefaultSelector().select(0.3)
def asleep(): time.sleep(0.3)
compute()
for wait in (for_event, for_lock, for_process, for_queue, for_selector, asleep): wait()
"""
WAITS = ("for_event", "for_lock", "for_process", "for_queue", "for_selector", "asleep")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return Recorder(tmp_path_factory.mktemp("waits")).program(PROGRAM).main


def seconds(profile: Profile, function: str, metric: str) -> float:
    """Of all calls of a function."""
    tree = profile.tree
    nodes = [node for node in range(len(tree)) if tree.frames.name[tree.frame[node]] == function]
    return float(profile.inclusive(metric)[nodes].sum()) / 1e9


@pytest.mark.parametrize("function", WAITS)
def test_calls_that_wait_have_wait_time(profile: Profile, function: str) -> None:
    assert seconds(profile, function, "wait_time") >= 0.25
    assert seconds(profile, function, "host_time") >= seconds(profile, function, "wait_time")


def test_the_hottest_place_is_one_that_works(profile: Profile) -> None:
    work = own_work(profile, "host_time")
    frame = profile.tree.frame[int(np.argmax(work))]
    assert profile.tree.frames.name[frame] == "compute"
    assert seconds(profile, "compute", "host_time") - seconds(profile, "compute", "wait_time") >= 0.35


def test_sums_and_counts_of_samples_stay_what_they_are(profile: Profile) -> None:
    own = profile.own("host_time")
    assert (profile.own("wait_time") <= own).all()
    assert profile.total("samples") == profile.meta["statistics"]["samples"]


def test_a_thread_that_polls_waits_although_others_have_the_core_when_it_is_ready(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Recorder(tmp_path).program("""
import os, subprocess, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of the others, too: one core for all
def poll():
    end = time.perf_counter() + 1.5
    while time.perf_counter() < end: time.sleep(0.001)
others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
began = time.thread_time()
poll()
print(time.thread_time() - began)
for other in others: other.kill()
""")
    ran = float(capfd.readouterr().out)
    waited = seconds(run.main, "poll", "wait_time")
    assert seconds(run.main, "poll", "host_time") - waited <= ran + 0.15, (waited, ran)
    assert waited >= 1.2


def test_a_kernel_that_the_host_executes_is_a_leaf_even_while_it_waits(tmp_path: Path) -> None:
    run = Recorder(tmp_path).program("""
import time
from bragg.core import core
core.enter_host_kernel("k")
for _ in range(30): time.sleep(0.01)
core.exit_host_kernel()
""")
    tree = run.main.tree
    (kernel,) = np.flatnonzero(tree.kind == FrameKind.KERNEL)
    assert kernel not in tree.parent
    assert seconds(run.main, "k", "host_time") >= 0.25
