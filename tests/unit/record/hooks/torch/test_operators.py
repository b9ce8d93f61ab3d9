"""How PyTorch's operators come: observed where a trial goes well, else as ITT tasks, which is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.torch import operators as hooks
from bragg.record.inside import metadata


class Core:
    """The native core; `said` are the answers of the two halves of a trial."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.log: list[object] = []

    def begin_operator_trial(self, library: str) -> str:
        self.log.append(library)
        return self.said[0]

    def end_operator_trial(self, operator_name: str) -> str:
        self.log.append(operator_name)
        return self.said[1]

    def begin_input_trial(self, first: tuple[int, int, int], second: tuple[int, int, int]) -> None:
        self.log.append((first, second))

    def end_input_trial(self, output: tuple[int, int, int]) -> bool:
        self.log.append(output)
        return False

    def observe_operators(self, shapes: bool) -> bool:
        self.log.append(f"shapes: {shapes}")
        return not shapes

    def stop_observing_operators(self) -> None:
        self.log.append("stop")


def torch_that_runs(log: list[object]) -> Any:
    return SimpleNamespace(
        __version__="9.9",
        __file__="/site/torch/__init__.py",
        empty=lambda *_, **options: log.append(options),
        zeros=lambda *_, **__: tensor(1),
        cat=lambda _: tensor(2),
    )


def tensor(address: int) -> Any:
    storage = SimpleNamespace(_cdata=address * 10, data_ptr=lambda: address * 100)
    return SimpleNamespace(_cdata=address, untyped_storage=lambda: storage)


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done with ITT; nothing is told of earlier recordings."""
    log: list[str] = []
    monkeypatch.setattr(hooks, "tell_cost_of_observers", lambda *_: None)
    monkeypatch.setattr(hooks, "emit_operators", lambda torch: log.append(torch.__version__))
    monkeypatch.setattr(metadata, "_told", {})
    monkeypatch.setattr(hooks, "_OBSERVERS", hooks._Observers())
    monkeypatch.delenv("BRAGG_OPERATORS", raising=False)
    return log


def record(monkeypatch: pytest.MonkeyPatch, core: Core) -> Any:
    monkeypatch.setattr(hooks, "core", core)
    return hooks.record_operators(torch_that_runs(core.log))


def test_operators_are_observed_after_a_trial_until_it_is_undone(
    monkeypatch: pytest.MonkeyPatch, emitted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    core = Core("", "")
    record(monkeypatch, core)()
    trial = ["/site/torch/lib/libtorch_cpu.so", {"device": "cpu"}, "aten::empty"]
    assert core.log == [*trial, "shapes: False", "stop"]
    assert (emitted, metadata.told(hooks.TOLD), capsys.readouterr().err) == ([], "observers", "")


def test_recordings_share_the_observers_which_tell_shapes_while_one_of_them_wants_them(
    monkeypatch: pytest.MonkeyPatch, emitted: list[str]
) -> None:
    core = Core("", "")
    end_first = record(monkeypatch, core)
    core.log.clear()
    end_same = record(monkeypatch, core)
    end_shaped = hooks.record_shaped_operators(torch_that_runs([]))
    end_same()
    assert end_shaped is not None
    end_shaped()
    assert [entry for entry in core.log if isinstance(entry, str)] == ["stop", "shapes: True", "stop", "shapes: False"]
    core.log.clear()
    end_first()
    assert core.log == ["stop"]


@pytest.mark.parametrize("said", [("it lacks a function",), ("", "it calls no observer")])
def test_a_trial_that_fails_leads_to_itt_and_says_so(
    monkeypatch: pytest.MonkeyPatch, emitted: list[str], capsys: pytest.CaptureFixture[str], said: tuple[str, ...]
) -> None:
    core = Core(*said)
    record(monkeypatch, core)
    assert "shapes: False" not in core.log
    assert (emitted, metadata.told(hooks.TOLD)) == (["9.9"], f"itt ({said[-1]})")
    assert f"PyTorch 9.9: {said[-1]}; its operators are recorded through ITT" in capsys.readouterr().err


def test_a_trial_ends_when_its_operator_raises(monkeypatch: pytest.MonkeyPatch, emitted: list[str]) -> None:
    core = Core("", "its operators do not end as they begin")
    monkeypatch.setattr(hooks, "core", core)
    torch = torch_that_runs([])
    torch.empty = lambda *_, **__: 1 / 0
    with pytest.raises(ZeroDivisionError):
        hooks.record_operators(torch)
    assert core.log[-1] == "aten::empty"


def test_itt_is_used_without_a_trial_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, emitted: list[str]) -> None:
    monkeypatch.setenv("BRAGG_OPERATORS", "itt")
    core = Core()
    record(monkeypatch, core)
    assert core.log == []
    assert (emitted, metadata.told(hooks.TOLD)) == (["9.9"], "itt (BRAGG_OPERATORS=itt)")


def test_shapes_that_cannot_be_told_are_missed_aloud(
    monkeypatch: pytest.MonkeyPatch, emitted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    core = Core("", "")
    monkeypatch.setattr(hooks, "core", core)
    hooks.record_shaped_operators(torch_that_runs(core.log))
    assert core.log[-3:] == [((1, 10, 100), (1, 10, 100)), (2, 20, 200), "shapes: True"]
    said = capsys.readouterr().err
    assert "does not tell the shapes of tensors" in said
    assert "the producers of inputs are not recorded" in said
    monkeypatch.setattr(hooks, "core", Core("it lacks a function"))
    monkeypatch.setattr(hooks, "_OBSERVERS", hooks._Observers())
    hooks.record_shaped_operators(torch_that_runs([]))
    assert "ITT does not tell them" in capsys.readouterr().err
