"""Turns of `generate` are decoding steps, whatever loop they are of."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks import transformers
from bragg.record.hooks.transformers import record_decoding_steps


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    regions = SimpleNamespace(
        begin_decoding=lambda: calls.append("begin"), end_decoding_step=lambda: calls.append("end")
    )
    monkeypatch.setattr(transformers, "REGIONS", regions)
    return calls


def generation(**methods: Any) -> Any:
    module: Any = ModuleType("transformers.generation.utils")
    module.GenerationMixin = type("GenerationMixin", (), methods)
    return module


def test_each_turn_ends_a_step_until_it_is_undone(calls: list[str]) -> None:
    def update(self: object, outputs: str, kwargs: dict[str, int], *, num_new_tokens: int = 1) -> dict[str, int]:
        calls.append(outputs)
        return {**kwargs, "new": num_new_tokens}

    module = generation(_update_model_kwargs_for_generation=update)
    undo = record_decoding_steps(module)
    model = type("Model", (module.GenerationMixin,), {})()
    assert model._update_model_kwargs_for_generation("turn", {"a": 1}, num_new_tokens=3) == {"a": 1, "new": 3}
    assert calls == ["begin", "turn", "end"]
    assert undo is not None
    undo()
    model._update_model_kwargs_for_generation("turn", {})
    assert calls == ["begin", "turn", "end", "turn"]


def test_a_turn_that_raises_is_no_step(calls: list[str]) -> None:
    def update(*_: object) -> None:
        raise RuntimeError("out of memory")

    module = generation(_update_model_kwargs_for_generation=update)
    record_decoding_steps(module)
    with pytest.raises(RuntimeError, match="out of memory"):
        module.GenerationMixin()._update_model_kwargs_for_generation()
    assert calls == ["begin"]


def test_another_way_to_generate_is_said_and_costs_the_steps_alone(
    calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert record_decoding_steps(generation()) is None
    assert "its decoding steps are not counted" in capsys.readouterr().err
    assert calls == []
