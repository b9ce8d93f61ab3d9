"""The hooks on a stand-in for PyTorch whose profiler obeys the same rule: one a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.torch import itt_operators as hooks


class FakeProfiler:
    """What `torch.autograd.profiler` is to the hooks; `log` holds what every thread enabled and disabled."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._thread = threading.local()
        profiler = self

        class EmitItt:
            def __enter__(self) -> None:
                profiler._enable_profiler("itt")

            def __exit__(self, *exception: object) -> None:
                profiler._disable_profiler()

        self.emit_itt = EmitItt
        self._enable_profiler: Callable[..., Any] = self.enable
        self._disable_profiler: Callable[..., Any] = self.disable

    def enable(self, kind: str) -> None:
        if kind == "broken":
            raise ValueError(kind)
        if getattr(self._thread, "kind", None) and kind != "nested":  # as Kineto, which takes the thread over
            raise RuntimeError("Profiler is already enabled on this thread")
        self._thread.kind = kind
        self.log.append(f"+{kind}")

    def disable(self) -> str:
        kind: str = self._thread.kind
        self._thread.kind = None
        self.log.append(f"-{kind}")
        return kind


class FakeEngine:
    def run_backward(self, *roots: int, keep_graph: bool) -> tuple[int, ...]:
        if not keep_graph:
            raise RuntimeError("second time")
        return roots


@pytest.fixture
def torch() -> Any:
    itt = SimpleNamespace(is_available=lambda: True)
    autograd = SimpleNamespace(
        profiler=FakeProfiler(), Variable=type("Variable", (), {"_execution_engine": FakeEngine()})
    )
    return SimpleNamespace(autograd=autograd, profiler=SimpleNamespace(itt=itt), __version__="9.9")


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    core = SimpleNamespace(lend_context=lambda: calls.append("lend"), return_context=lambda: calls.append("return"))
    monkeypatch.setattr(hooks, "core", core)
    return calls


def test_context_is_lent_while_the_engine_runs(torch: Any, lent: list[str]) -> None:
    hooks.inherit_context(torch)
    engine = torch.autograd.Variable._execution_engine
    assert isinstance(engine, FakeEngine)
    assert engine.run_backward(1, 2, keep_graph=True) == (1, 2)
    assert lent == ["lend", "return"]


def test_context_is_returned_when_backward_raises(torch: Any, lent: list[str]) -> None:
    hooks.inherit_context(torch)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.Variable._execution_engine.run_backward(keep_graph=False)
    assert lent == ["lend", "return"]


def test_engine_is_restored(torch: Any, lent: list[str]) -> None:
    undo = hooks.inherit_context(torch)
    assert undo is not None
    undo()
    torch.autograd.Variable._execution_engine.run_backward(keep_graph=True)
    assert lent == []


def test_version_without_the_engine_costs_a_note(torch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    del torch.autograd.Variable._execution_engine
    assert hooks.inherit_context(torch) is None
    assert "PyTorch 9.9 hides its autograd engine" in capsys.readouterr().err


@pytest.mark.parametrize("lacking", ["emit_itt", "_disable_profiler"])
def test_version_without_itt_costs_a_note(torch: Any, lacking: str, capsys: pytest.CaptureFixture[str]) -> None:
    delattr(torch.autograd.profiler, lacking)
    assert hooks.emit_operators(torch) is None
    assert "PyTorch 9.9 was built without ITT" in capsys.readouterr().err


def test_users_profiler_goes_first_and_ours_comes_back(torch: Any) -> None:
    profiler = torch.autograd.profiler
    undo = hooks.emit_operators(torch)
    profiler._enable_profiler("kineto")
    assert profiler._disable_profiler() == "kineto"
    assert undo is not None
    undo()
    assert profiler.log == ["+itt", "-itt", "+kineto", "-kineto", "+itt", "-itt"]
    assert profiler._enable_profiler == profiler.enable


def test_users_profilers_one_within_the_other_have_the_thread_to_the_end_of_the_outer_one(
    torch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    profiler = torch.autograd.profiler
    undo = hooks.emit_operators(torch)
    for _ in range(2):
        profiler._enable_profiler("kineto")
        profiler._enable_profiler("nested")
        profiler._disable_profiler()
        profiler._disable_profiler()
    assert undo is not None
    undo()
    assert profiler.log == ["+itt", *["-itt", "+kineto", "+nested", "-nested", "-None", "+itt"] * 2, "-itt"]
    assert capsys.readouterr().err.count("operators that come through ITT are missing while it runs") == 1


def test_users_profiler_that_fails_leaves_ours_running(torch: Any) -> None:
    profiler = torch.autograd.profiler
    undo = hooks.emit_operators(torch)
    with pytest.raises(ValueError, match="broken"):
        profiler._enable_profiler("broken")
    assert profiler.log == ["+itt", "-itt", "+itt"]
    assert undo is not None
    undo()


def test_users_second_profiler_is_refused_as_without_bragg(torch: Any) -> None:
    profiler = torch.autograd.profiler
    undo = hooks.emit_operators(torch)
    profiler._enable_profiler("kineto")
    with pytest.raises(RuntimeError, match="already enabled"):
        profiler._enable_profiler("nvtx")
    profiler._disable_profiler()
    assert profiler.log[-2:] == ["-kineto", "+itt"]
    assert undo is not None
    undo()


def test_threads_that_start_later_are_recorded_until_they_end(torch: Any) -> None:
    profiler = torch.autograd.profiler
    run = threading.Thread.run
    undo = hooks.emit_operators(torch)
    thread = threading.Thread(target=profiler.log.append, args=["work"])
    thread.start()
    thread.join()
    assert undo is not None
    undo()
    assert profiler.log == ["+itt", "+itt", "work", "-itt", "-itt"]
    assert threading.Thread.run is run


def test_our_own_range_is_no_other_user_of_the_gpu(
    torch: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[str] = []
    core = SimpleNamespace(
        flush_device_records=lambda: taken.append("flush"), reclaim_device_records=lambda: taken.append("reclaim")
    )
    monkeypatch.setattr(hooks, "core", core)
    hooks.share_device_records(torch)
    undo = hooks.emit_operators(torch)
    assert undo is not None
    assert (taken, capsys.readouterr().err) == ([], "")
    torch.autograd.profiler._enable_profiler("kineto")
    torch.autograd.profiler._disable_profiler()
    undo()
    assert taken == ["flush", "reclaim"]
    assert capsys.readouterr().err.count("share one CUPTI") == 1
