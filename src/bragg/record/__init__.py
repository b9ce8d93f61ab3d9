"""From a live program to captures: configuration, sessions, launching the target, hooks into frameworks.

Names are loaded at first use: a recorded process passes through here and needs few of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bragg.record.config import RecordConfig
    from bragg.record.inside.session import Session
    from bragg.record.inside.sessions import Sessions
    from bragg.record.launcher.run import FinishedRun, RunResult, run_target

__all__ = ["FinishedRun", "RecordConfig", "RunResult", "Session", "Sessions", "run_target"]

_PLACES = {
    "FinishedRun": "bragg.record.launcher.run:FinishedRun",
    "RecordConfig": "bragg.record.config:RecordConfig",
    "Sessions": "bragg.record.inside.sessions:Sessions",
    "RunResult": "bragg.record.launcher.run:RunResult",
    "Session": "bragg.record.inside.session:Session",
    "run_target": "bragg.record.launcher.run:run_target",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'bragg.record' has no attribute {name!r}")
    from bragg.registry import load

    return globals().setdefault(name, load(_PLACES[name]))
