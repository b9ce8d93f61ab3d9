"""Arguments that are the same at each call of a jitted function."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bragg.record.hooks.jax import arguments
from tests.support.fake_core import FakeCore

jax = pytest.importorskip("jax")


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore()
    monkeypatch.setattr(arguments, "core", fake)
    return fake


def step(state: Any, fixed: Any, rate: float = 0.1) -> Any:
    return state


STEP = jax.jit(step)


def described(core: FakeCore) -> list[str]:
    return [call[3] for call in core.calls if call[0] == "describe_operator"]


def test_arrays_that_stay_the_same_are_told_by_jaxs_names(core: FakeCore) -> None:
    watch = arguments.ArgumentWatch("jit(step)", STEP)
    array = jax.numpy.arange
    fixed, changing = {"a": [array(3.0)]}, array(5.0)
    for number in range(3):
        assert watch(array(2.0), {**fixed, "b": changing}, rate=0.5)
        assert len(described(core)) == (number == 2)
    assert watch(array(2.0), {**fixed, "b": array(5.0)})
    assert described(core) == [" | fixed['a'][0] | fixed['b']", " | fixed['a'][0]"]


def test_a_program_whose_arguments_are_all_the_same_only_measures(core: FakeCore) -> None:
    watch = arguments.ArgumentWatch("jit(step)", STEP)
    state, fixed = jax.numpy.ones(2), jax.numpy.ones(3)
    for _ in range(4):
        assert watch(state, fixed)
    assert described(core) == []
    assert watch(jax.numpy.ones(2), fixed)
    assert described(core) == [" | fixed"]


def test_nothing_is_watched_once_all_arguments_have_changed(core: FakeCore) -> None:
    watch = arguments.ArgumentWatch("jit(step)", STEP)
    assert watch(jax.numpy.ones(2), 1.0)
    assert not watch(jax.numpy.ones(2), 1.0)
    assert described(core) == []


def test_the_first_calls_are_enough(core: FakeCore) -> None:
    watch = arguments.ArgumentWatch("jit(step)", STEP)
    fixed = jax.numpy.ones(3)
    seen = [watch(jax.numpy.ones(2), fixed) for _ in range(16)]
    assert seen == [True] * 15 + [False]


def test_a_call_that_fails_is_the_programs_own_matter(core: FakeCore, capfd: pytest.CaptureFixture[str]) -> None:
    assert not arguments.ArgumentWatch("jit(step)", STEP)(unknown=3)
    assert (core.calls, capfd.readouterr().err) == ([], "")


def test_static_arguments_that_are_new_at_each_of_the_first_calls_are_told(core: FakeCore) -> None:
    watch = arguments.ArgumentWatch("jit(step)", STEP, ("fixed", "rate"))
    for number in range(4):
        assert watch(jax.numpy.ones(2), "mean", rate=0.5 + number)
    assert ("describe_operator", "jit(step)", "static argument rate", "several values") in core.calls
    assert "static argument fixed" not in {call[2] for call in core.calls}


@dataclasses.dataclass
class Annealed:
    """A state of which JAX compiles a program for each temperature."""

    weights: Any
    noise: float = dataclasses.field(default=1.0, metadata={"pytree_node": False})
    kind: str = dataclasses.field(default="adam", metadata={"static": True})
    scale: float = dataclasses.field(default=1.0, metadata={"pytree_node": True})


def test_static_fields_that_differ_where_programs_are_compiled_again_are_told(core: FakeCore) -> None:
    jax.tree_util.register_dataclass(Annealed, ["weights", "scale"], ["noise", "kind"])
    core.answers["watch_arguments"] = True
    watch = arguments.ArgumentWatch("jit(step)", STEP)
    state = Annealed(jax.numpy.ones(2))
    assert watch(state, 1.0)
    assert not watch(dataclasses.replace(state, weights=jax.numpy.ones(2)), 1.0)
    told = ("describe_operator", "jit(step)", "static argument state.noise", "several values")
    for noise in (0.9, 0.8):
        assert told not in core.calls
        arguments.watch_again("jit_step")
        assert core.calls[-1][:2] == ("watch_arguments", STEP)
        assert not watch(dataclasses.replace(state, noise=noise, scale=noise), 1.0)
    assert core.calls.count(told) == 1
    assert described(core) == ["several values"]
    arguments.watch_again("jit_other")
    assert core.calls[-1] == told
