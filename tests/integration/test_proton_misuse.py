"""What programs do wrong with bragg.proton: each is said, and what was recorded survives."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bragg.proton as proton
from bragg.proton.errors import InvalidMetric
from tests.support.proton_runs import start, tree

pytestmark = pytest.mark.usefixtures("finalized")


def test_metric_of_another_type_is_an_error_and_its_scope_is_closed() -> None:
    session = start()
    with proton.scope("a", {"m": 1.0}):
        pass
    with pytest.raises(ValueError, match=r"type mismatch for valueId 0 \(m\): current=double, new=u?int64_t"):
        proton.enter_scope("a", metrics={"m": 1})
    assert proton.context.depth(session) == 0
    with proton.scope("a", {"m": 2.0}):
        pass
    proton.finalize()
    assert tree() == ["ROOT m=0", "  a m=3.0"]


def test_type_of_a_metric_is_that_of_the_session() -> None:
    for name, value in (("x", 1.0), ("y", 1)):
        start(name)
        with proton.scope("a", {"typed": value}):
            pass
        proton.finalize()
    assert (tree("x.hatchet")[1], tree("y.hatchet")[1]) == ("  a typed=1.0", "  a typed=1")


@pytest.mark.parametrize("value", [None, object(), {"a": 1}, b"bytes", [], [None]])
def test_value_that_is_no_number_is_an_error(value: object) -> None:
    start()
    with pytest.raises(TypeError, match="metric 'm' has the value"), proton.scope("a", {"m": value}):
        pass
    proton.finalize()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({1: 2}, "metric 1 has a name of type int"),
        ({"": 1}, "a metric needs a name"),
        ({"(pty)": 1}, "a metric needs a name"),
        ({"m": 1 << 2000}, "metric 'm' has a value that no 64 bits hold"),
        ({"bytes": float("nan")}, "metric 'bytes' has the value nan"),
        ({"flops": "many"}, "metric 'flops' has the value 'many'"),
    ],
)
def test_metric_that_cannot_be_recorded_is_an_error(metrics: Any, message: str) -> None:
    start()
    with pytest.raises(InvalidMetric, match=message), proton.scope("a", metrics):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  a"]


def test_what_has_the_wrong_type_is_said(here: Path) -> None:
    for argument in ("name", "context", "data", "backend"):
        with pytest.raises(TypeError, match=f"{argument} is a text, not"):
            proton.start(**{"name": "x", "backend": "cpu", argument: b"x"})  # type: ignore[arg-type]
    start()
    with pytest.raises(TypeError, match="metrics have names: 5 has none"), proton.scope("refused", 5):  # type: ignore[arg-type]
        pass
    with pytest.raises(TypeError, match="a state's name is a string, not 5"):
        proton.enter_state(5)  # type: ignore[arg-type]
    with proton.scope("later"):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  refused", "  later"]


def test_scopes_of_coroutines_that_run_by_turns_are_beside_each_other(recwarn: pytest.WarningsRecorder) -> None:
    async def work(name: str) -> None:
        with proton.scope(name), proton.scope("inner"):
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(work("first"), work("second"))

    session = start()
    asyncio.run(both())
    assert [str(one.message) for one in recwarn] == []
    assert proton.context.depth(session) == 0
    proton.finalize()
    assert tree() == ["ROOT", "  first", "    inner", "  second", "    inner"]


def test_scopes_of_generators_that_run_by_turns_close_each_other() -> None:
    def work(name: str) -> Iterator[None]:
        with proton.scope(name):
            yield

    session = start()
    first, second = work("outer"), work("left")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for generator in (first, second):
            next(generator)
        for generator in (first, second):
            assert list(generator) == []
    assert [str(one.message).partition(",")[0] for one in told] == [
        "scope 'left' was left open inside 'outer'",
        "scope 'left' was ended before",
    ]
    assert proton.context.depth(session) == 0
    proton.finalize()
    assert tree() == ["ROOT", "  outer", "    left"]


def test_exit_without_enter_is_an_error() -> None:
    start()
    with pytest.raises(RuntimeError, match="no scope is open on this thread"):
        proton.exit_scope()
    with proton.scope("a"), pytest.raises(RuntimeError, match="scope 'a' is open inside"):
        proton.exit_scope()
    proton.finalize()
    assert tree() == ["ROOT", "  a"]


def test_wrong_name_is_an_error_and_the_scope_stays_open() -> None:
    start()
    proton.enter_scope("a")
    with pytest.raises(ValueError, match="Scope name mismatch: b != a"):
        proton.exit_scope("b")
    proton.exit_scope("a")
    proton.finalize()
    assert tree() == ["ROOT", "  a"]


def test_scope_that_was_left_open_ends_with_the_one_around_it() -> None:
    start()
    with pytest.warns(RuntimeWarning, match="scope 'within' was left open inside 'around'"), proton.scope("around"):
        proton.enter_scope("within")
    with proton.scope("after"):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  around", "    within", "  after"]


@pytest.mark.parametrize("call", [proton.activate, proton.deactivate, proton.finalize, proton.data.get])
def test_unknown_session_is_an_error(call: Any) -> None:
    start()
    with pytest.raises(IndexError, match="Session has not been initialized: 999"):
        call(999)


def test_second_finalize_warns() -> None:
    session = start()
    proton.finalize(session)
    with pytest.warns(RuntimeWarning, match=f"session {session} was finalized before"):
        proton.finalize(session)
    with pytest.warns(RuntimeWarning, match="no session is running"):
        proton.finalize()


@pytest.mark.parametrize(
    ("wanted", "message"), [("pdf", "Unknown output format: pdf"), ("chrome_trace", "not supported")]
)
def test_format_that_does_not_fit_leaves_the_session_running(wanted: str, message: str) -> None:
    start()
    with pytest.raises(ValueError, match=message):
        proton.finalize(output_format=wanted)
    with proton.scope("later"):
        pass
    proton.finalize()
    assert tree() == ["ROOT", "  later"]


def test_missing_directory_is_made(here: Path) -> None:
    start(str(here / "new" / "dir" / "x"))
    proton.finalize()
    assert tree("new/dir/x.hatchet") == ["ROOT"]


def test_file_that_cannot_be_written_leaves_what_was_recorded(here: Path) -> None:
    (here / "x.hatchet").mkdir()
    start()
    with proton.scope("kept"):
        pass
    with pytest.raises(Exception, match="the profile was not written"):
        proton.finalize()
    (here / "x.hatchet").rmdir()
    proton.finalize()
    assert tree() == ["ROOT", "  kept"]


def test_unknown_hook_is_an_error_and_starts_nothing(here: Path) -> None:
    with pytest.raises(ValueError, match="Unsupported hook: 'launch'"):
        start(hook="launch")
    assert not proton.flags.flags.profiling_on
    assert not list(here.iterdir())
