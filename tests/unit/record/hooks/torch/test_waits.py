"""Calls that wait for a GPU are scopes, except those that a compiler reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bragg.record.hooks.torch import waits
from tests.support.fake_core import FakeCore

NAMES = ["torch.cuda.synchronize", "torch.cuda.Stream.synchronize", "torch.cuda.Event.synchronize"]


def torch_with(core: FakeCore, *, is_compiling: bool = False) -> Any:
    def synchronize(*_: object, **__: object) -> str:
        core.calls.append("wait")
        return "done"

    kinds = [type(name, (), {"synchronize": synchronize}) for name in ("Stream", "Event")]
    cuda = SimpleNamespace(synchronize=synchronize, Stream=kinds[0], Event=kinds[1])
    return SimpleNamespace(cuda=cuda, compiler=SimpleNamespace(is_compiling=lambda: is_compiling))


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    fake = FakeCore()
    monkeypatch.setattr(waits, "core", fake)
    return fake


def test_a_wait_is_a_scope_until_it_is_undone(core: FakeCore) -> None:
    torch = torch_with(core)
    undo = waits.record_waits(torch)
    assert core.calls == NAMES
    core.calls.clear()
    assert [torch.cuda.synchronize(0), torch.cuda.Stream().synchronize(), torch.cuda.Event().synchronize()] == [
        "done"
    ] * 3
    assert core.calls == ["enter", "wait", "exit"] * 3
    undo()
    core.calls.clear()
    torch.cuda.synchronize(device=0)
    assert core.calls == ["wait"]


def test_what_a_compiler_reads_is_as_it_was(core: FakeCore) -> None:
    torch = torch_with(core, is_compiling=True)
    waits.record_waits(torch)
    core.calls.clear()
    torch.cuda.synchronize()
    assert core.calls == ["wait"]
