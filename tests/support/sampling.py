"""What a program that `bragg run` samples can see of it.

Self-contained, like `fake_cuda`, for scripts that are recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bragg.record.inside import autostart

_PATIENCE_S = 60.0


def sampling() -> dict[str, Any]:
    """What the profile would say of its sampling now."""
    recording = autostart.current()
    assert recording is not None
    assert recording._recording is not None
    found: dict[str, Any] = recording._recording.session.statistics()["sampling"]
    return found


def wait_for(condition: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until `sampling()` meets a condition."""
    until = time.monotonic() + _PATIENCE_S
    while not condition(sampling()):
        if time.monotonic() > until:
            raise TimeoutError(str(sampling()))
        time.sleep(0.01)
