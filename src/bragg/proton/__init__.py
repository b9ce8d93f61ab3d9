"""Drop-in for `triton.profiler`: `import bragg.proton as proton`.

The names, arguments, defaults, results and errors are Proton's; docs/reference/proton.md lists what differs, and why.
"""

from __future__ import annotations

import importlib
from typing import Any

from bragg.proton import context, data, flags, hooks, mode, specs
from bragg.proton.profile import DEFAULT_PROFILE_NAME, activate, deactivate, finalize, profile, start
from bragg.proton.scope import cpu_timed_scope, enter_scope, exit_scope, scope
from bragg.proton.state import enter_state, exit_state, metadata_state, state

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "activate",
    "context",
    "cpu_timed_scope",
    "data",
    "deactivate",
    "enter_scope",
    "enter_state",
    "exit_scope",
    "exit_state",
    "finalize",
    "flags",
    "hooks",
    "metadata_state",
    "mode",
    "profile",
    "scope",
    "specs",
    "start",
    "state",
]

# `language` needs Triton, `viewer` pandas and Hatchet.
_LATER = ("hook", "language", "libproton", "metric", "proton", "viewer")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
