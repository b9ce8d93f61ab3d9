"""Python of threads beside the main one is sampled, by the clocks of the processor that the threads have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bragg.analyze.causes.bounds import bounds_of
from bragg.analyze.causes.evidence import Evidence
from bragg.model import FrameKind, Profile
from bragg.model.host_time import THREAD_TIME
from bragg.model.transform import outermost
from bragg.views.text.bounds_text import bounds_sentence
from tests.support.runs import Recorder

COMPUTE = """
import hashlib, os, queue, random, threading, time
def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
"""

# Runs 2 s, three tenths of them in `light` and the others in `heavy`.
SHARES = """
def light(): give(0.03)
def heavy(): give(0.07)
def serve():
    while time.thread_time() < 2.0: light(); heavy()
    print(time.thread_time())
thread = threading.Thread(target=serve, name="server")
thread.start()
thread.join()
"""
HASHES = f"""
import hashlib, sys, threading, time
DATA = bytes(5_000)
def give(seconds):  # the lock away for 10 us after every 1.5 ms
    end = time.thread_time() + seconds
    while (now := time.thread_time()) < end:
        while time.thread_time() < now + 0.0015: pass
        hashlib.sha256(DATA)
sys.setswitchinterval(0.004)
{SHARES}
began = time.monotonic()
while sys.getswitchinterval() != 0.004 and time.monotonic() < began + 20: time.sleep(0.01)
print(sys.getswitchinterval())
"""
OPERATORS = f"""
import threading, time, torch
torch.set_num_threads(1)
ONES = torch.ones(16)
def give(seconds):  # the lock away in each operator
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(20): ONES + ONES
{SHARES}
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def seconds(profile: Profile, function: str, metric: str = THREAD_TIME) -> float:
    """In a function and all that it calls."""
    tree = profile.tree
    is_called = np.array([name.endswith(function) for name in tree.frames.name])[tree.frame]
    return float(profile.inclusive(metric)[outermost(tree, is_called)].sum()) / 1e9


def test_a_thread_has_its_time_and_the_main_thread_that_polls_has_waited(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    profile = recorder.program(f"""{COMPUTE}
def poll(thread):
    while thread.is_alive(): time.sleep(0.001)
writer = threading.Thread(target=compute, args=[1.0], name="writer")
writer.start()
began = time.thread_time()
poll(writer)
print(time.thread_time() - began)
""").main
    main_ran = float(capfd.readouterr().out)
    assert seconds(profile, "compute") == pytest.approx(1.0, abs=0.1)
    worked = seconds(profile, "poll", "host_time") - seconds(profile, "poll", "wait_time")
    assert worked <= main_ran + 0.1 * seconds(profile, "poll", "host_time")
    assert seconds(profile, "poll") == 0
    assert profile.run.threads_ns == {"writer": profile.total(THREAD_TIME)}


def test_what_bounds_a_program_says_what_threads_compute_while_the_main_one_waits(recorder: Recorder) -> None:
    profile = recorder.program(f"""{COMPUTE}
threads = [threading.Thread(target=compute, args=[0.4], name=name) for name in ("first", "second", "third")]
for thread in threads: thread.start()
for thread in threads: thread.join()
""").main
    bounds = bounds_of(Evidence(profile))
    assert bounds.parts[0].name == "waiting"
    assert bounds.parts[0].share > 0.7
    assert bounds.host_ns <= profile.run.duration_ns
    assert bounds.threads is not None
    assert bounds.threads.time_ns == pytest.approx(1.2e9, rel=0.15)
    assert set(bounds.threads.names) == {"first", "second", "third"}
    assert bounds.threads.at.endswith(".py:6")
    assert " Meanwhile threads " in bounds_sentence(bounds)
    assert " and 1 more ran Python for 1." in bounds_sentence(bounds)


def test_work_between_waits_counts_where_it_was_done(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    profile = recorder.program(f"""{COMPUTE}
jobs = queue.Queue()
def postprocess(job):
    began = time.thread_time()
    sorted(job)
    return time.thread_time() - began
def infer():
    took = 0.0
    while (job := jobs.get()) is not None: took += postprocess(job)
    print(took, time.thread_time())
thread = threading.Thread(target=infer, name="infer")
thread.start()
job = [random.random() for _ in range(20_000)]
for _ in range(120):
    jobs.put(job)
    time.sleep(0.004)
jobs.put(None)
thread.join()
""").main
    of_postprocess, of_thread = map(float, capfd.readouterr().out.split())
    assert seconds(profile, "infer") == pytest.approx(of_thread, rel=0.3)
    assert seconds(profile, "postprocess") > 0.5 * of_postprocess


def test_work_that_has_returned_before_the_lock_is_given_away_counts_where_it_was_done(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    profile = recorder.program(f"""{COMPUTE}
def number(word): return sum(hash(word) % n for n in range(1, 40))
def tokenize(words): return [number(word) for word in words]
def handle(words):
    tokenize(words)
    time.sleep(0.001)  # gives the lock away
def serve():
    for _ in range(200): handle(words)
    print(time.thread_time())
words = ["lorem"] * 800
thread = threading.Thread(target=serve)
thread.start()
thread.join()
""").main
    of_serve, of_thread = seconds(profile, "serve"), float(capfd.readouterr().out)
    assert 0 < of_serve < 1.1 * of_thread  # less, where the thread was not looked at
    assert seconds(profile, "tokenize") > 0.5 * of_serve  # all but 2 % of it computes there
    assert seconds(profile, "number") > 0.3 * of_serve


def test_code_that_releases_the_gil_is_seen_while_the_main_thread_computes(recorder: Recorder) -> None:
    profile = recorder.program(f"""{COMPUTE}
def digest():
    end, data = time.thread_time() + 0.6, bytes(10_000_000)
    while time.thread_time() < end: hashlib.sha256(data)
thread = threading.Thread(target=digest)
thread.start()
compute(0.6)
thread.join()
""").main
    assert seconds(profile, "digest") == pytest.approx(0.6, rel=0.2)
    assert seconds(profile, "compute") == 0
    assert seconds(profile, "compute", "host_time") >= 0.5


def test_what_a_thread_does_in_a_scope_stands_below_it(recorder: Recorder) -> None:
    profile = recorder.program(f"""{COMPUTE}
import bragg
def serve():
    with bragg.scope("request"): compute(0.6)
thread = threading.Thread(target=serve)
thread.start()
thread.join()
""").main
    tree = profile.tree
    (scope,) = np.flatnonzero(tree.kind == FrameKind.SCOPE)
    assert profile.inclusive(THREAD_TIME)[scope] == pytest.approx(0.6e9, rel=0.2)
    callers = [tree.frames.name[tree.frame_of(node)] for node in tree.path(scope)]
    assert callers[-2].endswith("serve")
    assert seconds(profile, "compute") == pytest.approx(0.6, rel=0.2)
    assert seconds(profile, "serve") == pytest.approx(0.6, rel=0.2)


def test_a_thread_that_runs_beside_hundreds_that_wait_has_its_time_where_it_ran(recorder: Recorder) -> None:
    profile = recorder.program(f"""{COMPUTE}
jobs = queue.Queue()
pool = [threading.Thread(target=jobs.get) for _ in range(300)]
for thread in pool: thread.start()
time.sleep(0.2)
worker = threading.Thread(target=compute, args=[0.6], name="worker")
worker.start()
worker.join()
for thread in pool: jobs.put(None)
for thread in pool: thread.join()
""").main
    assert seconds(profile, "compute") == pytest.approx(0.6, abs=0.1)
    assert profile.run.threads_ns["worker"] == pytest.approx(0.6e9, abs=0.1e9)


def test_a_thread_that_gives_the_lock_away_for_microseconds_has_its_time_where_it_ran(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    profile = recorder.program(HASHES).main
    of_thread, switch_interval = map(float, capfd.readouterr().out.split())
    assert seconds(profile, "serve") == pytest.approx(of_thread, rel=0.1)
    assert seconds(profile, "light") == pytest.approx(0.3 * of_thread, abs=0.15 * of_thread)
    assert switch_interval == 0.004


def test_a_thread_of_small_operators_has_its_time_where_it_ran(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    run = recorder.program(OPERATORS)
    assert run.result.exit_code == 0
    of_thread = float(capfd.readouterr().out)
    assert run.main.run.threads_ns["server"] / 1e9 == pytest.approx(of_thread, rel=0.1)
    light, heavy = seconds(run.main, "light"), seconds(run.main, "heavy")
    assert light == pytest.approx(0.3 * (light + heavy), abs=0.15 * (light + heavy))


def test_a_program_of_one_thread_has_no_time_of_threads(recorder: Recorder) -> None:
    profile = recorder.program(f"{COMPUTE}\ncompute(0.2)").main
    assert THREAD_TIME not in profile.metrics
    assert profile.run.threads_ns == {}


def test_threads_that_come_and_go_and_fork_are_sampled_and_harm_nothing(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    run = recorder.program(f"""{COMPUTE}
def child():
    if os.fork() == 0:
        late = threading.Thread(target=compute, args=[0.2])
        late.start()
        late.join()
        os._exit(0)
    os.wait()
def short(): compute(0.003)
forking = threading.Thread(target=child)
forking.start()
for _ in range(100):
    threads = [threading.Thread(target=short) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
forking.join()
print("ended")
threading.Thread(target=compute, args=[5.0], daemon=True).start()  # that runs when the interpreter ends
""")
    assert capfd.readouterr().out == "ended\n"
    # Most of them end before the next look.
    assert seconds(run.main, "short") + seconds(run.main, "[ended threads]") <= 1.2
