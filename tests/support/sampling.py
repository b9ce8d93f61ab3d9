"""What a program that `bragg run` records can see of what is sampled.

Self-contained, like `fake_cuda`, for scripts that are recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bragg.record.inside import autostart

_PATIENCE_S = 60.0


def told(part: str, session: Any = None) -> Any:
    """What the profile would say now of a part, such as `counters`: of a session, or of the run's; None: nothing."""
    recorded = session or autostart.current()
    assert recorded is not None
    assert recorded._recording is not None
    return recorded._recording.session.statistics().get(part)


def sampling() -> dict[str, Any]:
    """What the profile would say of its sampling now."""
    found: dict[str, Any] = told("sampling")
    return found


def wait_for(
    condition: Callable[[Any], object],
    part: str = "sampling",
    session: Any = None,
    meanwhile: Callable[[], object] = lambda: time.sleep(0.01),
) -> None:
    """Wait until what is told of a part meets a condition: how soon depends on the machine."""
    until = time.monotonic() + _PATIENCE_S
    while not condition(told(part, session)):
        if time.monotonic() > until:
            raise TimeoutError(str(told(part, session)))
        meanwhile()
