"""The host's samples tell how long Python functions ran, whatever they do with the GIL."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bragg import formats
from bragg.model import Profile, TrackKind
from bragg.model.sample_stacks import with_sample_stacks
from bragg.model.transform import outermost
from tests.support.runs import Recorder


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def time_in(profile: Profile, function: str) -> float:
    """Host time in a function and all that it calls, ns."""
    tree = profile.tree
    is_called = np.array([name == function for name in tree.frames.name])[tree.frame]
    return float(profile.inclusive("host_time")[outermost(tree, is_called)].sum())


def test_code_that_keeps_the_gil_is_seen_beside_code_that_releases_it(
    recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    run = recorder.program(
        """
        import hashlib, time

        data = bytes(100_000)
        ran = {"keeps": 0.0, "releases": 0.0}
        passed = dict(ran)

        def keeps():
            total = 0
            for number in range(3000):
                total += number * number % 7

        def releases():
            hashlib.sha256(data)

        # Each runs as long as the other: bursts far shorter than the 5 ms after which a thread gives the GIL away.
        while min(ran.values()) < 1.5:  # 300 samples: 100 on a busy machine told 0.27 for 0.49
            function = keeps if ran["keeps"] < ran["releases"] else releases
            began, came = time.thread_time(), time.perf_counter()
            function()
            ran[function.__name__] += time.thread_time() - began
            passed[function.__name__] += time.perf_counter() - came
        print(*passed.values())
        """
    )
    passed = [float(seconds) * 1e9 for seconds in capfd.readouterr().out.split()]
    times = [time_in(run.main, name) for name in ("keeps", "releases")]
    # A busy machine puts one aside more often than the other.
    assert times[0] / sum(times) == pytest.approx(passed[0] / sum(passed), abs=0.2), (times, passed)
    assert sum(times) > 0.7 * 2 * 1.5e9


def test_an_operation_at_the_end_of_a_scope_counts_once(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import bragg

        large = 3 ** 400_000

        def inner():
            with bragg.scope("outer"):
                with bragg.scope("work"):
                    product = large * large  # no call after which Python could look up

        for _ in range(12):
            inner()
        """
    )
    profile, work_ns = run.main, time_in(run.main, "work")
    assert work_ns > 50e6
    assert time_in(profile, "inner") < 1.2 * work_ns
    is_inner, is_work = (
        np.array([name == wanted for name in profile.tree.frames.name])[profile.tree.frame]
        for wanted in ("inner", "work")
    )
    of_line = is_inner & is_work[profile.tree.parent]
    assert float(profile.inclusive("host_time")[of_line].sum()) > 0.5 * work_ns


@pytest.mark.skipif(importlib.util.find_spec("nvtx") is None, reason="nvtx is not installed")
def test_an_operation_at_the_end_of_a_range_counts_once(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import nvtx

        domain = nvtx.get_domain("mine")
        attributes = domain.get_event_attributes(message="work")
        large = 3 ** 400_000

        def inner():
            domain.push_range(attributes)
            product = large * large
            domain.pop_range()  # C code: no call after which Python could look up

        for _ in range(12):
            inner()
        """
    )
    work_ns = time_in(run.main, "mine: work")
    assert work_ns > 50e6
    assert time_in(run.main, "inner") < 1.2 * work_ns


def test_every_fork_is_sampled(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import os, time

        def work():
            end = time.thread_time() + 0.03
            while time.thread_time() < end:
                sum(range(100))

        work()
        for _ in range(12):
            if (child := os.fork()) == 0:
                work()
                os._exit(0)
            os.waitpid(child, 0)
        """
    )
    children = list(run.profiles.values())[1:]
    assert len(children) == 12
    assert all(profile.total("host_time") > 20e6 for profile in children)
    cost = [profile.meta["overhead"]["recorder_cpu_ns"] for profile in children]
    assert all(0 <= cost_ns < 1e9 for cost_ns in cost), cost


def test_time_without_a_core_before_the_work_is_none_of_the_work(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import os, signal, time
        import bragg

        def burn(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                sum(range(100))

        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        if (rival := os.fork()) == 0:
            while True:
                sum(range(100))
        burn(0.6)
        os.kill(rival, signal.SIGKILL)
        os.waitpid(rival, 0)
        for _ in range(10):
            with bragg.scope("work"):
                burn(0.01)
        """
    )
    waited_ns = run.main.meta["scheduled"][1] - run.main.meta["scheduled_before"][1]
    overhead = run.main.meta["overhead"]
    assert overhead["work_ns"] > 90e6
    assert 0 <= overhead["work_ready_ns"] < waited_ns - 0.3e9


def test_a_timeline_keeps_when_each_function_ran(recorder: Recorder, tmp_path: Path) -> None:
    recorder.program(
        """
        import time

        def load():
            end = time.thread_time() + 0.06
            while time.thread_time() < end:
                sum(range(100))

        def train():
            load()

        load()
        train()
        """,
        data="trace",
        sample_interval_us=1000,
    )
    whole = formats.load(tmp_path / "program.bragg")
    profile = with_sample_stacks(whole)
    of_samples = whole.slices.take((whole.tracks.kind == TrackKind.SAMPLES)[whole.slices.track])
    assert of_samples.duration_ns.sum() == pytest.approx(whole.total("host_time"), rel=0.02)
    assert (of_samples.start_ns[1:] >= of_samples.start_ns[:-1] + of_samples.duration_ns[:-1]).all()
    slices, frames = profile.slices, profile.tree.frames
    name = np.array([frames.name[row] for row in profile.tree.frame[slices.node].tolist()])
    begins_ns = slices.start_ns[name == "train"].min()
    first, second = (
        slices.take((name == "load") & side) for side in (slices.start_ns < begins_ns, slices.start_ns >= begins_ns)
    )
    assert min(first.duration_ns.sum(), second.duration_ns.sum()) > 40e6


def test_an_operation_of_an_extension_counts_for_its_function_and_not_for_the_one_called_next(
    recorder: Recorder,
) -> None:
    # A busy machine lets the sampler look too late; then it is as if it had not looked.
    shares = (_share_of_what_is_called_next(recorder) for _ in range(5))
    assert any(share < 0.5 for share in shares)


def _share_of_what_is_called_next(recorder: Recorder) -> float:
    run = recorder.program(
        """
        import time
        import numpy as np

        def look():
            return time.thread_time()

        def multiply(a):
            spent = 0.0
            while spent < 0.3:
                began = look()
                product = a @ a
                spent += look() - began

        multiply(np.ones((300, 300)))
        """
    )
    whole = time_in(run.main, "multiply")
    assert whole > 0.27e9
    return time_in(run.main, "look") / whole


def test_a_function_that_returns_right_after_its_operation_has_the_time_of_it(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import time
        import numpy as np

        def square(a):
            return a @ a

        def made_anew():
            made = {}
            exec("def briefly(a):\\n    return a @ a", made)
            return made["briefly"]

        def work(a):
            ends = time.thread_time() + 0.4
            while time.thread_time() < ends:
                square(a)
                made_anew()(a)

        work(np.ones((300, 300)))
        """
    )
    # A busy machine lets the sampler look too late; code that has died since it looked is its caller's.
    assert time_in(run.main, "square") > 0.1e9
    assert time_in(run.main, "work") > 0.35e9


def test_threads_are_sampled_whose_frames_come_and_go_while_they_are_looked_at(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import time

        def numbers(n):
            yield from (n * k for k in range(3))

        def work():
            end = time.thread_time() + 0.4
            while time.thread_time() < end:
                "".join(str(n) for n in numbers(7))
                eval(compile("sum(i for i in (1, 2))", "made", "eval"))

        work()
        """,
        sample_interval_us=50,
    )
    assert time_in(run.main, "work") > 0.3e9


def test_what_a_scope_ends_with_counts_once(recorder: Recorder) -> None:
    run = recorder.program(
        """
        import time
        import bragg
        import numpy as np

        def last(a):
            with bragg.scope("block"):
                a @ a

        @bragg.scope("function")
        def returns(a):
            return a @ a

        def stores(a):
            with bragg.scope("before a store"):
                product = a @ a
                stored = 1

        def multiply(a, seconds):
            for call in (last, returns, stores):
                ends = time.perf_counter() + seconds
                while time.perf_counter() < ends:
                    call(a)

        multiply(np.ones((1000, 1000)), 0.3)
        """
    )
    scopes = [time_in(run.main, name) for name in ("block", "function", "before a store")]
    assert min(scopes) > 0.2e9
    assert time_in(run.main, "returns") > 0.1e9  # in the scope around it
    assert sum(scopes) <= time_in(run.main, "multiply") < 1.3 * sum(scopes)


def test_arguments_of_a_scoped_function_are_not_its_time(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    run = recorder.program(
        """
        import time
        import bragg
        import numpy as np

        spent = {"arguments": 0.0, "scope": 0.0}

        @bragg.scope("scope")
        def scoped(a, began):
            entered = time.perf_counter()
            spent["arguments"] += entered - began
            product = a @ a
            spent["scope"] += time.perf_counter() - entered

        def multiply(a, seconds):
            ends = time.perf_counter() + seconds
            while time.perf_counter() < ends:
                began = time.perf_counter()
                scoped(a @ a, began)

        multiply(np.ones((700, 700)), 0.6)
        print(*spent.values())
        """
    )
    of_arguments, of_scope = (float(seconds) * 1e9 for seconds in capfd.readouterr().out.split())
    assert of_arguments + of_scope > 0.5e9
    # Where other programs run, the thread may lose its core between both readings of the clock.
    assert 0.9 * of_scope < time_in(run.main, "scope") < of_scope + 0.3 * of_arguments
    assert time_in(run.main, "multiply") - time_in(run.main, "scope") > 0.7 * of_arguments
