from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from bragg.record.hooks.jax import profiler as jax_profiler
from tests.unit.record.hooks.jax.test_programs import FakeCore


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore()
    monkeypatch.setattr(jax_profiler, "core", fake)
    return fake


def profiler() -> ModuleType:
    """A module with a profiler."""
    module = ModuleType("profiler")
    module.start_trace = lambda directory: directory  # type: ignore[attr-defined]

    def stop_trace() -> None:
        raise RuntimeError("no profile is recorded")

    module.stop_trace = stop_trace  # type: ignore[attr-defined]
    return module


def test_records_are_brought_before_the_profiler_and_taken_back_behind_it(
    core: FakeCore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, public = profiler(), ModuleType("jax.profiler")
    vars(public).update(start_trace=module.start_trace, stop_trace=module.stop_trace)
    monkeypatch.setitem(sys.modules, "jax.profiler", public)
    undo = jax_profiler.share_device_records(module)
    assert public.start_trace("folder") == "folder"
    with pytest.raises(RuntimeError, match="no profile"):
        module.stop_trace()
    assert core.calls == [("flush_device_records",), ("reclaim_device_records",)]
    assert "share one CUPTI" in capsys.readouterr().err
    undo()
    for each in (module, public):
        assert each.start_trace("again") == "again"
    assert len(core.calls) == 2


class Annotation:
    """As JAX's: made with a name and metadata."""

    def __init__(self, name: str, **metadata: Any) -> None:
        self.made = name, metadata
        self.is_open = False

    def __enter__(self) -> Annotation:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False


def test_annotations_are_scopes_until_it_is_undone(core: FakeCore) -> None:
    module = ModuleType("profiler")
    module.TraceAnnotation = type("TraceAnnotation", (Annotation,), {})  # type: ignore[attr-defined]
    early = module.TraceAnnotation("early")
    undo = jax_profiler.record_annotations(module)
    with early, module.TraceAnnotation("train", step_num=3) as train:
        assert train.made == ("train", {"step_num": 3})
        assert train.is_open
        undo()
    assert not train.is_open
    with module.TraceAnnotation("late"):
        pass
    assert core.calls == ["train", "enter", "exit"]
