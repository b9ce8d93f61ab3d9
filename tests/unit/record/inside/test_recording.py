"""Hooks that the sessions of several threads share."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import ModuleType

from bragg.record.inside.recording import _SharedHooks


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
