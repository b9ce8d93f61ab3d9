"""Native sessions with their hooks, which the sessions of several threads share."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest

from bragg.core import core
from bragg.errors import NothingRecorded
from bragg.formats import read_capture
from bragg.record import RecordConfig
from bragg.record.inside.recording import Recording, _SharedHooks


def test_hook_that_one_thread_gives_up_while_another_one_asks_for_it_stays() -> None:
    installed: list[str] = []

    def install(module: ModuleType) -> Callable[[], None]:
        installed.append(module.__name__)
        return undo

    def undo() -> None:
        other.start()
        other.join(0.05)
        installed.clear()

    shared, hooks = _SharedHooks(), [("sys", install)]
    other = Thread(target=shared.acquire, args=[hooks])
    shared.acquire(hooks)
    shared.release(hooks)
    other.join()
    assert installed == ["sys"]


def test_process_that_is_not_recorded_is_not_sampled_before_its_pause_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*arguments: Any, **options: Any) -> object:
        session = begin(*arguments, **options)
        until_s = time.monotonic() + 0.1
        while time.monotonic() < until_s:
            pass
        return session

    begin = core.Session
    monkeypatch.setattr(core, "Session", start)
    capture = tmp_path / "idle.part"
    config = RecordConfig(backend="cpu", sample_interval_us=500)
    Recording(str(capture), config.options(), is_active=False).stop()
    with pytest.raises(NothingRecorded):
        read_capture(capture)
