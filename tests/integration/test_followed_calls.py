"""Calls of objects that implement the vectorcall protocol, as JAX's jitted functions do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import bragg._core as core
from tests.support.runs import Recorder, entered

PROGRAM = """
    import functools, threading
    import bragg._core as core

    def zero(*numbers):
        return sum(numbers)

    def fail():
        raise KeyError("mine")

    core.record_followed_calls(True)
    outer, inner, failing = (functools.partial(f) for f in (lambda *a, **k: (inner(), a, k), zero, fail))
    for function, name in ((outer, "jit(outer)"), (inner, "jit(inner)"), (failing, "jit(fail)"), (inner, "again")):
        assert core.follow_calls(function, name)
    assert outer(1, 2, three=3) == (0, (1, 2), {"three": 3})
    assert inner(7) == 7
    for _ in range(2):
        try:
            failing()
        except KeyError as error:
            assert error.args == ("mine",)
    thread = threading.Thread(target=outer)
    thread.start()
    thread.join()
    for _ in range(100):
        short_lived = functools.partial(zero)
        core.follow_calls(short_lived, "jit(short)")
        short_lived()
        del short_lived
    functools.partial(zero)()
    assert core.enter_call("jit(python)")
    assert not core.enter_call("jit(within)")
    inner()
    assert core.enter_callback()
    assert not core.enter_callback()
    inner()
    assert core.enter_call("jit(called back)")
    inner()
    core.exit_call()
    core.exit_callback()
    inner()
    core.exit_call()
    assert not core.enter_callback()
    core.record_followed_calls(False)
    outer()
    assert not core.enter_call("jit(off)")
"""


def test_outermost_calls_are_operators_however_they_end(tmp_path: Path) -> None:
    run = Recorder(tmp_path).program(PROGRAM, context="shadow", sample_interval_us=0)
    assert run.result.exit_code == 0
    expected = {
        "jit(outer)": 2,
        "jit(inner)": 2,
        "jit(fail)": 2,
        "jit(short)": 100,
        "jit(python)": 1,
        "jit(called back)": 1,
        "jit(within)": 0,
        "jit(off)": 0,
        "again": 0,
    }
    assert {name: entered(run.main, name) for name in expected} == expected


def test_arguments_are_shown_until_nobody_wants_them(tmp_path: Path) -> None:
    program = """
        import functools
        import bragg._core as core

        core.record_followed_calls(True)
        watched, failing = (functools.partial(f) for f in (lambda a, **b: (a, b), lambda a: a))
        seen = []

        def watch(*arguments, **options):
            seen.append((arguments, options))
            return len(seen) < 3

        def fail(*arguments):
            seen.append(arguments)
            raise KeyError("the watch's")

        assert not core.watch_arguments(watched, watch)
        for function, show in ((watched, watch), (failing, fail)):
            assert core.follow_calls(function, "jit(f)")
            assert core.watch_arguments(function, show)
        for _ in range(5):
            assert watched(1, b=3) == (1, {"b": 3})
        assert seen == [((1,), {"b": 3})] * 3
        assert failing(7) == failing(7) == 7
        assert seen[3:] == [(7,)]
    """
    assert Recorder(tmp_path).program(program, context="shadow", sample_interval_us=0).result.exit_code == 0


def test_calls_work_while_nothing_records() -> None:
    function = partial(divmod, 7)
    assert core.follow_calls(function, "divmod")
    assert function(2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        function(0)


@pytest.mark.parametrize("other", [object(), 3, partial(int)])
def test_objects_that_are_called_otherwise_are_left_alone(other: object) -> None:
    assert not core.follow_calls(other, "other")


def test_calls_are_counted_as_steps_while_that_is_wanted(tmp_path: Path) -> None:
    program = """
        import functools, sys, time
        import bragg._core as core

        def fail():
            time.sleep(0.002)
            raise KeyError("mine")

        core.record_followed_calls(True)
        core.count_call_steps(True)
        failing, inner = functools.partial(fail), functools.partial(sum)
        core.follow_calls(failing, "jit(fail)")
        core.follow_calls(inner, "jit(inner)")
        of_library = functools.partial(sum)
        core.follow_calls(of_library, "jit(add)", are_steps=False)
        for _ in range(4):
            of_library([])
        began_ns = time.time_ns()
        for _ in range(3):
            try:
                failing()
            except KeyError:
                pass
            else:
                raise SystemExit("its exception is lost")
        for _ in range(2):
            core.enter_call("jit(python)")
            inner([])
            core.exit_call()
        inner([])
        core.count_call_steps(False)
        inner([])
        steps = core.read_call_steps()
        assert sorted(steps) == ["jit(fail)", "jit(python)"], steps
        failed = steps["jit(fail)"]
        assert failed["count"] == sum(failed["buckets"].values()) == 3
        assert 6_000_000 <= failed["total_ns"] == failed["in_steps_ns"]
        assert 4_000_000 <= failed["called_ns"] < failed["total_ns"]
        first = failed["first_calls"]
        assert len(first["ends_after_ns"]) == 3
        assert first["began_ns"] + first["ends_after_ns"][-1] == first["last_ns"]
        assert abs(first["began_ns"] - began_ns) < 3600e9
    """
    run = Recorder(tmp_path).program(program, context="shadow", sample_interval_us=0)
    assert run.result.exit_code == 0
    assert (entered(run.main, "jit(inner)"), entered(run.main, "jit(add)")) == (2, 4)
