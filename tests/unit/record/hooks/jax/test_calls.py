from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.jax import calls as jax_calls
from tests.support.fake_core import FakeCore


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore()
    monkeypatch.setattr(jax_calls, "core", fake)
    return fake


class PjitFunction:
    """By its name one of those that JAX makes."""

    def __init__(self, name: str = "step") -> None:
        self.__name__ = name


class PmapFunction(PjitFunction):
    """Likewise."""


def module(**names: Any) -> ModuleType:
    made = ModuleType("pjit")
    made.__spec__ = ModuleSpec("pjit", None)
    vars(made).update(names)
    return made


def undone(undo: Callable[[], None] | None) -> None:
    assert undo is not None
    undo()


def _line_of(function: Callable[..., None]) -> int:
    return function.__code__.co_firstlineno


def test_what_a_library_makes_is_of_the_line_that_calls_it_unless_it_is_imported(core: FakeCore) -> None:
    pjit = module(_cpp_pjit=lambda function: function)
    undo = jax_calls.record_calls(pjit)
    for file in ("<frozen importlib._bootstrap>", "/lib/python3.12/site-packages/flax/nnx.py"):
        exec(compile("make(1)", file, "exec"), {"make": pjit._cpp_pjit})
    undone(undo)
    line = _line_of(test_what_a_library_makes_is_of_the_line_that_calls_it_unless_it_is_imported) + 4
    described = [call[2] for call in core.calls if call[0] == "describe_operator"]
    assert described == [f"made at {__file__}:{line}"]


def test_new_functions_are_followed_by_their_names(core: FakeCore) -> None:
    pjit = module(_cpp_pjit=lambda function: function)
    undo = jax_calls.record_calls(pjit)
    step = PjitFunction()
    assert pjit._cpp_pjit(step) is step
    pjit._cpp_pjit(7)
    undone(undo)
    pjit._cpp_pjit(step)
    # Functions that exist, where another test has imported JAX, come before.
    line = _line_of(test_new_functions_are_followed_by_their_names)
    assert core.calls[core.calls.index(("record_followed_calls", True)) :] == [
        ("record_followed_calls", True),
        ("follow_calls", step, "jit(step)", True),
        ("describe_operator", "jit(step)", f"made at {__file__}:{line + 4}", "jit"),
        ("follow_calls", 7, "jit(function)", True),
        ("describe_operator", "jit(function)", f"made at {__file__}:{line + 5}", "jit"),
        ("record_followed_calls", False),
    ]


def test_calls_of_jax_s_own_functions_are_no_steps(core: FakeCore) -> None:
    pjit = module(_cpp_pjit=lambda function: function)
    jax_calls.record_calls(pjit)
    own = PjitFunction()
    own.__module__ = "jax._src.random"
    pjit._cpp_pjit(own)
    assert ("follow_calls", own, "jit(step)", False) in core.calls


def test_functions_that_exist_are_followed(core: FakeCore) -> None:
    jitted, mapped = PjitFunction(), PmapFunction()
    jax_calls.record_calls(module(_cpp_pjit=lambda function: function))
    assert ("follow_calls", jitted, "jit(step)", True) in core.calls
    assert ("follow_calls", mapped, "pmap(step)", True) in core.calls


def test_functions_that_pmap_makes_are_followed_in_all_places_of_its_name(
    core: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = module(pmap=lambda function, axis_name=None: PmapFunction(function.__name__))
    monkeypatch.setitem(sys.modules, "jax", module(pmap=api.pmap))
    undo = jax_calls.record_mapped_calls(api)
    for place in (api, sys.modules["jax"]):
        mapped = place.pmap(module, axis_name="i")
        assert core.calls.pop() == ("follow_calls", mapped, "pmap(module)", True)
    undone(undo)
    api.pmap(module)
    assert core.calls == []
    assert jax_calls.record_mapped_calls(module()) is None


class MeshExecutable:
    """What XLA compiled."""

    def __init__(self, call: PjitFunction | None = None) -> None:
        self.unsafe_call = SimpleNamespace(name="jit(loss)")
        self._made = call

    def create_cpp_call(self, *_: object) -> PjitFunction | None:
        return self._made


class Compiled:
    """What a compilation ahead of time returned, after its first call."""

    def __init__(self, executable: object, call: object) -> None:
        self._executable, self._call = executable, call

    @staticmethod
    def call(parameters: SimpleNamespace, number: int, *, divisor: int) -> int:
        return number // divisor


def test_what_is_compiled_ahead_of_time_is_followed(core: FakeCore) -> None:
    existing, new = PjitFunction(), PjitFunction()
    compiled = [Compiled(MeshExecutable(), call) for call in (existing, None, len)]
    pxla = module(MeshExecutable=MeshExecutable)
    undo = jax_calls.record_compiled_calls(pxla)
    assert MeshExecutable(new).create_cpp_call("parameters") is new
    assert MeshExecutable().create_cpp_call("parameters") is None
    undone(undo)
    assert MeshExecutable(new).create_cpp_call("parameters") is new
    assert core.calls == [("follow_calls", existing, "jit(loss)", True), ("follow_calls", new, "jit(loss)", True)]
    del compiled


def test_calls_of_python_are_operators_however_they_end(core: FakeCore) -> None:
    core.answers["enter_call"] = True
    pjit = module(jit_p=SimpleNamespace(impl=lambda *numbers, name: (numbers, name)))
    mapping = module(pmap=lambda function: lambda *numbers: function(*numbers))
    undo_all = [
        jax_calls.record_transposed_calls(pjit),
        jax_calls.record_slow_compiled_calls(module(Compiled=Compiled)),
        jax_calls.record_mapped_calls(mapping),
    ]
    assert pjit.jit_p.impl(1, 2, name="loss") == ((1, 2), "loss")
    known, unknown = (SimpleNamespace(executable=executable) for executable in (MeshExecutable(), None))
    with pytest.raises(ZeroDivisionError):
        Compiled.call(known, 3, divisor=0)
    assert Compiled.call(unknown, 7, divisor=2) == 3
    assert mapping.pmap(divmod)(7, 2) == (3, 1)
    names = ["jit(loss)", "jit(loss)", "a compiled function", "pmap(<lambda>)"]
    assert core.calls == [call for name in names for call in (("enter_call", name), ("exit_call",))]
    for undo in undo_all:
        undone(undo)
    assert Compiled(known, None).call(known, 7, divisor=2) == mapping.pmap(divmod)(7, 2)[0] == 3
    assert len(core.calls) == 2 * len(names)


@pytest.mark.parametrize("is_within_call", [True, False])
def test_what_programs_call_back_is_a_scope_with_calls_of_its_own(core: FakeCore, is_within_call: bool) -> None:
    class FlatCallback:
        callback_func = staticmethod(divmod)

        def __call__(self, *numbers: int) -> tuple[int, int]:
            return self.callback_func(*numbers)

    core.answers["enter_callback"] = is_within_call
    callback = module(_FlatCallback=FlatCallback)
    undo = jax_calls.record_callbacks(callback)
    assert FlatCallback()(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        FlatCallback()(7, 0)
    undone(undo)
    FlatCallback()(7, 2)
    nested = [("enter_callback",), *([("exit_callback",)] if is_within_call else [])]
    assert core.calls == ["[callback] divmod", "enter", *nested, "exit"] * 2


def test_what_is_only_traced_is_no_call(core: FakeCore) -> None:
    core.answers["enter_call"] = True
    pjit = module(jit_trace=lambda function, number: number, jit_eval_shape=lambda function: function)
    undo = jax_calls.record_traces(pjit)
    assert pjit.jit_trace(PjitFunction("loss"), 7) == 7
    undone(undo)
    pjit.jit_eval_shape(PjitFunction())
    assert core.calls == [("enter_call", "[trace] jit(loss)"), ("exit_call",)]


def test_calls_are_counted_as_steps_until_the_recording_ends(core: FakeCore) -> None:
    jax_calls.record_steps(module())()
    assert core.calls == [("count_call_steps", True), ("count_call_steps", False)]


def test_a_call_that_another_one_makes_is_a_part_of_it(core: FakeCore) -> None:
    core.answers["enter_call"] = False
    pjit = module(pjit_p=SimpleNamespace(impl=lambda number, name: number))
    undo = jax_calls.record_transposed_calls(pjit)
    assert pjit.pjit_p.impl(7, name="loss") == 7
    undone(undo)
    assert core.calls == [("enter_call", "jit(loss)")]


@pytest.mark.parametrize(
    ("record", "lost"),
    [
        (jax_calls.record_calls, "their calls are not recorded"),
        (jax_calls.record_transposed_calls, "these calls are not recorded"),
        (jax_calls.record_compiled_calls, "these calls are not recorded"),
        (jax_calls.record_slow_compiled_calls, "calls of those that call back are missing"),
        (jax_calls.record_callbacks, "what these functions call counts for the call"),
    ],
)
def test_a_jax_that_calls_otherwise_is_said(
    core: FakeCore, capsys: pytest.CaptureFixture[str], record: Callable[..., Any], lost: str
) -> None:
    assert record(module()) is None
    assert lost in capsys.readouterr().err
    assert core.calls == []
