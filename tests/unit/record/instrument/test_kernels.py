"""Which kernels get clocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar
from weakref import WeakSet

import pytest

from bragg.record import RecordConfig
from bragg.record.hooks.triton import kernel_names
from bragg.record.inside import metadata
from bragg.record.instrument import choice, chosen, kernels

triton = pytest.importorskip("triton")


Undo = Callable[[], None]


class Timed:
    """Stands for a kernel with clocks."""

    made: list[str]

    def __init__(self, kernel: Any, name: str, launch: Any, *_: Any) -> None:
        if name.startswith("odd"):
            raise ValueError("it calls functions that were not inlined")
        Timed.made.append(name)
        self.name, self.launch = name, launch

    def __call__(self, *arguments: Any) -> Any:
        return "timed", self.launch(*arguments)

    def result(self, wait_s: float, *, is_end: bool) -> dict[str, Any] | None:
        assert wait_s <= 5
        return {"kernel": self.name} if is_end else None


@pytest.fixture
def undo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Undo]:
    Timed.made = []
    monkeypatch.setattr(chosen, "TimedKernel", Timed)
    monkeypatch.setattr(metadata, "_asked", {})
    monkeypatch.setattr(kernel_names, "_followers", [])
    options = RecordConfig(instrument="mat|odd").options()
    given = kernels.instrument_triton(chosen.Chosen(options), triton)
    yield given
    given() if kernel_names._followers else None


def source() -> None: ...


def other_source() -> None: ...


def load(name: str, made_of: object = None) -> SimpleNamespace:
    """A kernel that was loaded, and that followers were told of."""
    text = ".version 8.0\n.target sm_90a\n"
    kernel = SimpleNamespace(
        _run=lambda *arguments: ("plain", *arguments), asm={"ptx": text}, src=SimpleNamespace(fn=made_of)
    )
    for follower in kernel_names._followers:
        follower(kernel, name)
    return kernel


def test_the_first_kernels_that_are_wanted_have_clocks(undo: Undo, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = [load(name) for name in ("mat1", "sum", "mat2", "odd", "mat3", "mat4", "mat5", "mat6")]
    assert Timed.made == []  # none was launched
    assert [kernel._run(1) for kernel in loaded] == [
        ("timed", ("plain", 1)),
        ("plain", 1),
        ("timed", ("plain", 1)),
        ("plain", 1),
        ("timed", ("plain", 1)),
        ("timed", ("plain", 1)),
        ("plain", 1),
        ("plain", 1),
    ]
    assert Timed.made == ["mat1", "mat2", "mat3", "mat4"]
    told = capsys.readouterr().err
    assert "odd has no clocks: it calls functions that were not inlined" in told
    assert told.count("fill the buffer") == 1
    assert [each["kernel"] for each in metadata.at_stop()["inside_kernels"]] == Timed.made
    undo()


def test_a_forked_child_says_nothing_of_the_kernels_of_its_parent(undo: Undo) -> None:
    load("mat1")._run(1)
    child = os.fork()
    if not child:
        os._exit(len(metadata.at_stop().get("inside_kernels", [])))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(metadata.at_stop()["inside_kernels"]) == 1
    undo()


def test_launches_that_compare_configurations_do_not_count(undo: Undo) -> None:
    first, best = load("mat1"), load("mat2")
    tuner = triton.runtime.autotuner.Autotuner
    bench = tuner._bench

    class Tuner:
        nargs: ClassVar[dict[str, Any]] = {}

        def do_bench(self, call: Callable[[], object], **_: Any) -> Any:
            return first._run(), best._run()

    config = SimpleNamespace(kwargs={}, all_kwargs=dict, pre_hook=None)
    assert bench(Tuner(), config=config) == (("plain",), ("plain",))
    assert Timed.made == []
    assert best._run() == ("timed", ("plain",))
    assert Timed.made == ["mat2"]
    undo()
    assert tuner._bench is not bench
    assert kernel_names._followers == []


def test_what_is_loaded_after_a_recording_stays_as_it_is(undo: Undo) -> None:
    undo()
    assert load("mat1")._run(2) == ("plain", 2)


def test_of_kernels_that_a_program_chose_only_these_have_clocks(undo: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_chosen", WeakSet())
    named, other = triton.jit(source), triton.jit(other_source)
    choice.instrument(named)
    loaded = [load("mat1", other), load("mat2", named), load("sum", named), load("mat3")]
    assert [kernel._run(1)[0] for kernel in loaded] == ["plain", "timed", "plain", "plain"]
    assert Timed.made == ["mat2"]
