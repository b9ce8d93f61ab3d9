"""From a live program to captures: configuration, sessions, launching the target, hooks into frameworks.

Names are loaded at first use: a recorded process passes through here and needs few of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bragg.record.config import RecordConfig
    from bragg.record.inside.recorder import Recorder
    from bragg.record.inside.session import Session
    from bragg.record.launcher.run import FinishedRun, RunResult, run_target

__all__ = ["FinishedRun", "RecordConfig", "Recorder", "RunResult", "Session", "run_target"]

_MODULES = {
    "FinishedRun": "launcher.run",
    "RecordConfig": "config",
    "Recorder": "inside.recorder",
    "RunResult": "launcher.run",
    "Session": "inside.session",
    "run_target": "launcher.run",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'bragg.record' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"bragg.record.{_MODULES[name]}"), name)
    return globals().setdefault(name, value)
